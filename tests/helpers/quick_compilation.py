"""Variables with which JAX compiles quickly what runs a few times on small batches.

The compiler leaves out what only makes programs fast, and doesn't split a program into parts for
many cores: the workers of a suite keep all of them busy.
"""

from importlib.metadata import version

_FLAGS = ["--xla_cpu_parallel_codegen_split_count=1"]
if tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11):
    # Later ones have no such flag, and a flag that is not known ends the process.
    _FLAGS.append("--xla_cpu_use_fusion_emitters=false")

COMPILED_QUICKLY = {
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "XLA_FLAGS": " ".join(_FLAGS),
}
