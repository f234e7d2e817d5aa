"""`hackmatrix bench`: a table of benchmarks, each a module with `measure`."""

import dataclasses
import difflib
import importlib
import json
import sys
from typing import Any, NamedTuple

from hackmatrix.bench import options
from hackmatrix.cli.arguments import parse
from hackmatrix.errors import UserError

FAILED = 1


class Benchmark(NamedTuple):
    """A module of `hackmatrix.bench` with `measure(**options)`, which returns a result.

    A result has `as_dict()` and `text()`.
    """

    options: type[options.Options]
    help: str
    example: str


BENCHMARKS = {
    "env": Benchmark(
        options.EnvOptions,
        "steps per second of the environment alone",
        "--num-envs 1024\n      steps per second of 1,024 games under random valid actions",
    ),
    "train": Benchmark(
        options.TrainOptions,
        "training steps per second, and what the network's products allow",
        "--num-envs 256 --epochs 4\n      a batch of 256 x 128 transitions, read four times",
    ),
    "memory": Benchmark(
        options.MemoryOptions,
        "bytes of a transition, and the most memory that training takes",
        "--num-envs 256\n      memory of training on 256 games",
    ),
    "compile": Benchmark(
        options.CompileOptions,
        "seconds to the first result of a new process, with and without the cache",
        "\n      starts each process with an empty cache folder, then with the one it filled",
    ),
    "scaling": Benchmark(
        options.ScalingOptions,
        "speed by number of games, and cost of a step by number of enemies",
        "--output plots\n      writes plots/scaling.json and two plots",
    ),
    "profile": Benchmark(
        options.ProfileOptions,
        "which functions the time of a step or of an update goes to",
        "--what train --num-steps 128\n      a training update of 2,048 x 128 transitions",
    ),
    "seeds": Benchmark(
        options.SeedsOptions,
        "training steps per second of many agents in one program",
        "--config configs/cartpole_best.yaml --num-seeds 10\n      ten agents beside one",
    ),
    "trackers": Benchmark(
        options.TrackersOptions,
        "what trackers cost a run",
        "--config configs/cpu.yaml\n      processor time for the rows of such a run",
    ),
    "classic": Benchmark(
        options.ClassicOptions,
        "how well classic control is learned, over many seeds",
        "--num-seeds 10\n      learning curves next to published results, benchmarks/classic.svg",
    ),
    "peers": Benchmark(
        options.PeersOptions,
        "this environment beside those of other libraries (make bench)",
        "--repeats 3\n      a quicker look",
    ),
}


def main(argv: list[str]) -> int:
    """Runs the command; exit code 1 if what was measured turned out wrong."""
    name, *rest = argv or ["--help"]
    if name in ("-h", "--help"):
        print(_help())
        return 0
    if name not in BENCHMARKS:
        raise UserError(_unknown(name))
    benchmark = BENCHMARKS[name]
    chosen = parse(
        benchmark.options,
        rest,
        command=f"hackmatrix bench {name}",
        purpose=f"Measures {benchmark.help}.",
        example=f"  hackmatrix bench {name} {benchmark.example}",
    )
    return _measure(name, chosen)


def _measure(name: str, chosen: options.Options) -> int:
    from hackmatrix.bench.replay import ReplayError
    from hackmatrix.storage.compilation_cache import enable_compilation_cache

    enable_compilation_cache()
    arguments: dict[str, Any] = dataclasses.asdict(chosen)
    as_json = arguments.pop("json")
    try:
        result = importlib.import_module(f"hackmatrix.bench.{name}").measure(**arguments)
    except ReplayError as error:
        print(f"hackmatrix bench: {error}", file=sys.stderr)
        return FAILED
    print(json.dumps(result.as_dict(), allow_nan=False) if as_json else result.text())
    return 0


def _help() -> str:
    width = max(map(len, BENCHMARKS))
    lines = [f"  {name:<{width}}  {benchmark.help}" for name, benchmark in BENCHMARKS.items()]
    return "\n".join(
        [
            "usage: hackmatrix bench WHAT [--json] ...",
            "",
            "Measures speed and memory. Figures are medians of repeats.",
            "",
            "what:",
            *lines,
            "",
            "`hackmatrix bench WHAT --help` lists its options.",
        ]
    )


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, BENCHMARKS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(BENCHMARKS)}"
    return f"nothing to measure is called {name!r}; {hint}"
