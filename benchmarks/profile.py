"""The share of each function in the time of a step or an update, from a profile by JAX.

The profiler gives the time of each compiled operation, and the compiled program the lines of code
from which each operation comes. XLA fuses neighbouring lines into one operation, which is
attributed to the function that most of it comes from.
"""

import gzip
import json
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
from jax.interpreters import batching

from benchmarks.command import run_command
from hackmatrix.core import machine
from hackmatrix.core.options import option
from hackmatrix.environments.hackmatrix import over_games
from hackmatrix.learning.ppo.trainer import Trainer
from hackmatrix.research.bench.env import EnvBench
from hackmatrix.research.bench.options import Options, UpdateOptions, train_config

_PACKAGE = "hackmatrix/"
# Helpers that all others use: their time is attributed to the caller.
_TOOLS = ("bitboard.py", "dice.py", "control_flow.py", "state.py")
_NOWHERE = "XLA's own (copies, loops)"
_SHOWN = 25

Events = Iterable[dict[str, Any]]
Work = tuple[Callable[[], Any], str]  # runs the profiled work; text of its compiled program


@dataclass(frozen=True)
class ProfileOptions(Options):
    """The options of the command."""

    what: Literal["env", "train"] = option("env", "steps of the environment, or a training update")
    num_envs: int = option(2_048, "games in parallel", at_least=1)
    num_steps: int = option(16, "steps of each game", at_least=1)
    play: Literal["random", "harder"] = option(
        "random", "as for `hackmatrix bench env`; not for training"
    )
    output: Path | None = option(None, "folder to keep the profile in, for other viewers")


class Profile(NamedTuple):
    """Time of each function, in thread seconds."""

    what: str
    seconds: dict[str, float]  # thread seconds in operations, by "file.py function"

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        total = sum(self.seconds.values())
        return {
            "what": self.what,
            "seconds": total,
            "shares": {place: seconds / total for place, seconds in self.seconds.items()},
            **machine.machine(),
            "versions": machine.versions(),
        }

    def text(self) -> str:
        """Shares by file and by function."""
        figures = self.as_dict()
        by_file: Counter[str] = Counter()
        for place, share in figures["shares"].items():
            by_file[place.split(" ")[0] if ".py " in place else place] += share
        lines = [f"{figures['seconds']:.3f} thread seconds in operations of {self.what}, by file"]
        lines += [f"{share:7.1%}  {file}" for file, share in by_file.most_common()]
        lines += ["", f"by function, the {_SHOWN} largest"]
        largest = Counter(figures["shares"]).most_common(_SHOWN)
        lines += [f"{share:7.1%}  {place}" for place, share in largest]
        return "\n".join([*lines, "", machine.line(figures, figures["versions"])])


def measure(options: ProfileOptions) -> Profile:
    """Profiles some steps of the environment, or one training update."""
    batching.primitive_batchers[over_games._over_games] = _traced_in_place
    try:
        work, program = _env(options) if options.what == "env" else _train(options)
    finally:
        batching.primitive_batchers[over_games._over_games] = over_games._play_mapped
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(options.output or folder)
        with jax.profiler.trace(str(kept)):
            work()
        trace = max(kept.rglob("*.trace.json.gz"), key=lambda path: path.stat().st_mtime)
        events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    module = re.match(r"HloModule ([\w.-]+)", program)
    assert module is not None
    return Profile(options.what, seconds_by_place(events, module[1], places(program)))


def _traced_in_place(leaves: Any, axes: Any, **params: Any) -> Any:
    """Maps the step of a batch of games without its primitive.

    Operations that are traced while JAX lowers a primitive all get the place of the primitive.
    """
    with mock.patch.object(over_games._over_games, "bind", over_games._play):
        return over_games._play_mapped(leaves, axes, **params)


def _env(options: ProfileOptions) -> Work:
    bench = EnvBench(options.num_envs, options.num_steps, options.play, engine="jax")
    return bench.repeat, bench.program()


def _train(options: ProfileOptions) -> Work:
    config = train_config(UpdateOptions(num_envs=options.num_envs, num_steps=options.num_steps))
    trainer = Trainer(config.environment.make(), config.ppo, config.network)
    compiled = jax.jit(trainer.run).lower(trainer.init(config.run.seed), jnp.int32(1)).compile()
    state = jax.block_until_ready(compiled(trainer.init(config.run.seed), jnp.int32(1)))
    work = partial(compiled, state, jnp.int32(1))
    return lambda: jax.block_until_ready(work()), compiled.as_text() or ""


def seconds_by_place(events: Events, module: str, places: dict[str, str]) -> dict[str, float]:
    """Seconds of each place in the code; nested operations are not counted twice.

    Args:
        events: the events of a trace.
        module: name of the compiled program whose operations are counted.
        places: the place of each of its operations.
    """
    threads = defaultdict(list)
    for event in events:
        if event.get("args", {}).get("hlo_module") == module and "hlo_op" in event["args"]:
            threads[event["pid"], event["tid"]].append(event)
    seconds: Counter[str] = Counter()
    for thread in threads.values():
        open_: list[tuple[float, str]] = []  # end and place of the enclosing operations
        for event in sorted(thread, key=lambda event: (event["ts"], -event["dur"])):
            place = places.get(event["args"]["hlo_op"], _NOWHERE)
            while open_ and open_[-1][0] <= event["ts"]:
                open_.pop()
            if open_:
                seconds[open_[-1][1]] -= event["dur"] * 1e-6
            seconds[place] += event["dur"] * 1e-6
            open_.append((event["ts"] + event["dur"], place))
    return dict(seconds)


def places(program: str) -> dict[str, str]:
    """The place, "file.py function", of each operation of a compiled program (HLO)."""
    frames = _frames(program)
    own: dict[str, str] = {}
    inside: dict[str, Counter[str]] = defaultdict(Counter)  # by computation
    called: dict[str, str] = {}
    computation = ""
    for line in program.splitlines():
        if header := re.match(r"(?:ENTRY )?%?([\w.-]+) \(.*\{$", line):
            computation = str(header[1])
        elif operation := re.match(r"\s+(?:ROOT )?%?([\w.-]+) = ", line):
            name = str(operation[1])
            if frame := re.search(r"stack_frame_id=(\d+)", line):
                own[name] = frames.get(int(frame[1]), _NOWHERE)
                inside[computation][own[name]] += 1
            if call := re.search(r" (?:fusion|call)\(.*(?:calls|to_apply)=%?([\w.-]+)", line):
                called[name] = str(call[1])
            if re.search(r" (?:while|conditional)\(", line):
                own[name] = _NOWHERE  # the time of its body is attributed there
    for name, callee in called.items():
        if common := [it for it in inside[callee].most_common() if it[0] != _NOWHERE]:
            own[name] = common[0][0]
    return own


def _frames(program: str) -> dict[int, str]:
    """The place of each stack frame, "file.py function", from the tables at the program's head."""
    files = dict(re.findall(r'^(\d+) "(.*\.py)"$', program, re.M))
    head = program[: program.find("StackFrames")]
    functions = dict(re.findall(r'^(\d+) "(.*)"$', head[head.find("FunctionNames") :], re.M))
    locations = {
        number: (files.get(file, ""), functions.get(function, ""))
        for number, file, function in re.findall(
            r"^(\d+) \{file_name_id=(\d+) function_name_id=(\d+)", program, re.M
        )
    }
    pattern = r"^(\d+) \{file_location_id=(\d+) parent_frame_id=(\d+)"
    rows = [tuple(map(int, row)) for row in re.findall(pattern, program, re.M)]
    # Parents come before their children. If some do not, XLA numbers parents from 1, with 0 for
    # none.
    first = int(any(parent >= number for number, _, parent in rows))
    frames = {
        number: (locations[str(location)], parent - first) for number, location, parent in rows
    }
    return {number: _place(number, frames) for number in frames}


def _place(number: int, frames: dict[int, tuple[tuple[str, str], int]]) -> str:
    """The innermost frame in the package, outside `_TOOLS` if possible."""
    tool = _NOWHERE
    while number in frames:
        (file, function), parent = frames[number]
        name = f"{file.rpartition('/')[2]} {function.replace('.<locals>', '')}"
        if _PACKAGE in file:
            if not file.endswith(_TOOLS):
                return name
            tool = name if tool == _NOWHERE else tool
        number = parent
    return tool


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "profile",
        measure,
        ProfileOptions,
        argv,
        purpose="Measures the share of each function in the time of a step or of an update.",
        example="--what train --num-steps 128\n      a training update of 2,048 x 128 transitions",
    )


if __name__ == "__main__":
    sys.exit(main())
