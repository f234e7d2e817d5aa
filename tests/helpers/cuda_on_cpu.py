"""The kernels for NVIDIA's GPUs on a CPU: their source as C++, and the handlers that launch them.

A process with the folder of `build(FOLDER)` in LD_LIBRARY_PATH plays by the kernels after
`install(FOLDER)`, which comes before the native engine is imported.
"""

import ctypes
import os
import shlex
import subprocess
import sys
from pathlib import Path

import jax

from hackmatrix.game.native import _native, constants, cuda

HELPERS = Path(__file__).parent
ENGINE = Path(cuda.__file__).parent
FLAGS = ("-std=c++17", "-fno-strict-aliasing", "-ffp-contract=off", "-fPIC", "-shared")
DRIVER = ("-O1", "-nostdinc", "-Wno-unknown-pragmas", "-Wl,-Bsymbolic", "cuda_driver.cpp")


def build(folder: Path) -> None:
    """Compiles the driver and the handlers into a folder."""
    sources = folder / "sources"
    sources.mkdir()
    for name, text in cuda.sources().items():
        (sources / name).write_text(text)
    constants.write(folder)
    includes = [f"-I{ENGINE}", f"-I{folder}", f"-isystem{jax.ffi.include_dir()}"]
    commands = {
        "libcuda.so.1": [f"-I{sources}", *DRIVER],
        "handlers.so": ["-O0", *includes, "cuda_handlers.cpp"],
    }
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    for name, arguments in commands.items():
        command = [*compiler, *FLAGS, *arguments, "-o", str(folder / name)]
        subprocess.run(command, check=True, cwd=HELPERS)


def install(folder: Path) -> None:
    """From now on the native engine's custom calls on CPUs are those for GPUs.

    Raises:
        RuntimeError: the driver does not take the kernels.
    """
    if "hackmatrix.game.native.xla" in sys.modules:
        raise RuntimeError("install() comes before what imports the native engine's custom calls")
    library = ctypes.CDLL(str(folder / "handlers.so"))
    library.load.restype, library.handler_of.restype = ctypes.c_char_p, ctypes.c_void_p
    if why := library.load(b""):
        raise RuntimeError(why.decode())
    for name in _native.XLA_HANDLERS:
        if (handler := library.handler_of(name.encode())) is None:
            continue  # a call that GPUs do not have
        _native.XLA_HANDLERS[name] = jax.ffi.pycapsule(ctypes.c_void_p(handler))
