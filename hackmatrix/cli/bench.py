"""`hackmatrix bench`: a table of benchmarks; most are modules of `hackmatrix.research.bench`."""

import difflib
import importlib
import json
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from hackmatrix.cli.arguments import parse
from hackmatrix.cli.main import FAILED
from hackmatrix.cloud.targets.options import TargetOptions
from hackmatrix.core.errors import UserError
from hackmatrix.research.bench import options

Options = TypeVar("Options", bound=options.Options)


class BenchResult(Protocol):
    """The type that every `measure` returns."""

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""

    def text(self) -> str:
        """The figures as text."""


class Benchmark(NamedTuple):
    """The options of a benchmark, which its `measure` takes, and its help text."""

    options: type[options.Options]
    help: str
    example: str
    module: str = ""  # by default that of its name in `hackmatrix.research.bench`
    is_cached: bool = True  # whether it uses the compilation cache


BENCHMARKS = {
    "env": Benchmark(
        options.EnvOptions,
        "steps per second of the environment alone",
        "--num-envs 1024\n      steps per second of 1,024 games under random valid actions",
    ),
    "train": Benchmark(
        options.BenchTrainOptions,
        "training steps per second, and the limit set by the network's matrix products",
        "--num-envs 256 --epochs 4\n      a batch of 256 x 128 transitions, read four times",
    ),
    "memory": Benchmark(
        options.MemoryOptions,
        "bytes per transition, and peak memory of training",
        "--num-envs 256\n      memory of training on 256 games",
    ),
    "compile": Benchmark(
        options.CompileOptions,
        "seconds to the first result of a new process, with and without the cache",
        "\n      starts each process with an empty cache folder, then with the one it filled",
    ),
    "target": Benchmark(
        TargetOptions,
        "a TPU or GPU that is not here: memory, kernels and an estimate of speed",
        "v4-8\n      compiles the training of --config tpu_v4_8 for four chips",
        "hackmatrix.cloud.targets.estimate",
        is_cached=False,
    ),
}


def main(argv: list[str]) -> int:
    """Runs the command; the exit code is 1 if the two engines played a game differently."""
    name, *rest = argv or ["--help"]
    if name in ("-h", "--help"):
        print(_help())
        return 0
    if name not in BENCHMARKS:
        near = difflib.get_close_matches(name, BENCHMARKS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(BENCHMARKS)}"
        raise UserError(f"no benchmark is called {name!r}; {hint}")
    benchmark = BENCHMARKS[name]
    chosen = parse(
        benchmark.options,
        rest,
        command=f"hackmatrix bench {name}",
        purpose=f"Measures {benchmark.help}.",
        example=f"  hackmatrix bench {name} {benchmark.example}".replace(" \n", "\n"),
    )
    return run(measure_of(name), chosen, is_cached=benchmark.is_cached)


def measure_of(name: str) -> Callable[[Any], BenchResult]:
    """The function that measures, imported now: it imports JAX."""
    module = BENCHMARKS[name].module or f"hackmatrix.research.bench.{name}"
    measure: Callable[[Any], BenchResult] = importlib.import_module(module).measure
    return measure


def run(
    measure: Callable[[Options], BenchResult], chosen: Options, *, is_cached: bool = True
) -> int:
    """Runs a benchmark and prints the result; returns the exit code."""
    from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
    from hackmatrix.research.bench.replayed_games import ReplayError

    if is_cached:
        enable_compilation_cache()
    try:
        result = measure(chosen)
    except ReplayError as error:
        print(f"hackmatrix bench: {error}", file=sys.stderr)
        return FAILED
    print(json.dumps(result.as_dict(), allow_nan=False) if chosen.json else result.text())
    return 0


def _help() -> str:
    width = max(map(len, BENCHMARKS))
    lines = [f"  {name:<{width}}  {benchmark.help}" for name, benchmark in BENCHMARKS.items()]
    return "\n".join(
        [
            "usage: hackmatrix bench WHAT [--json] ...",
            "",
            "Measures speed and memory; figures are medians of repeats.",
            "",
            "what:",
            *lines,
            "",
            "`hackmatrix bench WHAT --help` lists its options.",
        ]
    )
