"""Processor time of the game process: to start, and for a step with its valid actions.

Processor time, not the clock, as that depends on what else the machine does.
"""

import json
import random
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.command import run_command
from hackmatrix.core import machine
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import option
from hackmatrix.game.engine import Game
from hackmatrix.integrations.process.session import Session
from hackmatrix.research.bench.options import Options


@dataclass(frozen=True)
class BridgeOptions(Options):
    """The options of the command."""

    steps: int = option(5_000, "steps of random valid play in a repeat", at_least=100)
    repeats: int = option(7, "timed repeats", at_least=1)
    starts: int = option(15, "times that the process is started", at_least=1)


class BridgeBench(NamedTuple):
    """Processor time in milliseconds, one number a repeat."""

    start: list[float]  # of the process, from exec to exit without a request
    step: list[float]  # of a step and the valid actions after it, requests and answers included
    engine: list[float]  # the engine's share of a step

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        return {
            **{name: summary(times) for name, times in self._asdict().items()},
            "unit": "ms",
            **machine.machine(),
            "versions": machine.versions(),
        }

    def text(self) -> str:
        """The figures as text."""
        rows = [
            f"{name:<8}{each['min']:>8.3f}{each['median']:>8.3f}{each['max']:>8.3f}"
            for name, each in ((name, summary(times)) for name, times in self._asdict().items())
        ]
        return "\n".join([f"{'ms':<8}{'min':>8}{'median':>8}{'max':>8}", *rows])


def summary(times: list[float]) -> dict[str, float]:
    """The least, the median and the greatest."""
    return {"min": min(times), "median": statistics.median(times), "max": max(times)}


def measure(options: BridgeOptions) -> BridgeBench:
    """Measures start, step and the engine's share of a step."""
    binary = Path(sys.executable).with_name("hackmatrix-game")
    found = str(binary) if binary.exists() else shutil.which("hackmatrix-game")
    if found is None:
        raise UserError("there is no hackmatrix-game beside this Python: pip install -e .")
    return BridgeBench(
        [start(found) for _ in range(options.starts)],
        [process_step(options.steps) for _ in range(options.repeats)],
        [engine_step(options.steps) for _ in range(options.repeats)],
    )


def start(binary: str) -> float:
    """Ms to start the process and to end it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([binary, "--headless-cli"], stdin=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def process_step(steps: int) -> float:
    """Ms a step from request to answer, as `serve` calls the session; new games are not counted."""
    session, rng = Session(exact_breakdown=True), random.Random(0)
    spent, done, seed, valid = 0.0, 0, 0, list[int]()
    while done < steps:
        if not valid:
            session.answer(b'{"action":"reset","seed":%d}\n' % seed)
            valid = json.loads(session.answer(b'{"action":"getValidActions"}\n'))["validActions"]
            seed += 1
        request = b'{"action":"step","actionIndex":%d}\n' % rng.choice(valid)
        begin = time.process_time()
        session.answer(request).encode()
        answer = session.answer(b'{"action":"getValidActions"}\n').encode()
        spent += time.process_time() - begin
        valid = json.loads(answer)["validActions"]
        done += 1
    return 1e3 * spent / steps


def engine_step(steps: int) -> float:
    """Ms of the same steps in the engine alone."""
    rng = random.Random(0)
    spent, done, seed, game = 0.0, 0, 0, Game.new(0)
    valid = game.valid_actions()
    while done < steps:
        if not valid:
            seed += 1
            game = Game.new(seed)
            valid = game.valid_actions()
        action = rng.choice(valid)
        begin = time.process_time()
        game.step(action)
        valid = game.valid_actions()
        spent += time.process_time() - begin
        done += 1
    return 1e3 * spent / steps


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "bridge",
        measure,
        BridgeOptions,
        argv,
        purpose="Measures processor time of the game process: its start, and a step.",
        example="--steps 20000\n      plays longer, which steadies the figures",
    )


if __name__ == "__main__":
    sys.exit(main())
