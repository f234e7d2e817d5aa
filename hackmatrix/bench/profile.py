"""Which part of the code the time of a step or an update goes to, from a profile by JAX.

The profiler says how long each compiled operation took, and the compiled program says which lines
of the code each operation comes from. XLA fuses neighbouring lines into one operation, which counts
for the function that most of it comes from.
"""

import gzip
import json
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import hackmatrix
from hackmatrix.bench.env import EnvBench
from hackmatrix.bench.options import ProfileOptions
from hackmatrix.runs import machine

_DEFAULT = ProfileOptions()
_PACKAGE = "hackmatrix/"
# What everything uses: the time counts for who uses it.
_TOOLS = ("bitboard.py", "dice.py", "control_flow.py", "state.py")
_NOWHERE = "XLA's own (copies, loops)"
_SHOWN = 25

Events = Iterable[dict[str, Any]]
Work = tuple[Callable[[], Any], str]  # runs what is profiled; its compiled program


class Profile(NamedTuple):
    """What was measured."""

    what: str
    seconds: dict[str, float]  # thread seconds in operations, by "file.py function"

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        total = sum(self.seconds.values())
        return {
            "what": self.what,
            "seconds": total,
            "shares": {place: seconds / total for place, seconds in self.seconds.items()},
            **machine.machine(),
            "versions": machine.versions(),
        }

    def text(self) -> str:
        """For people."""
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


def measure(
    what: str = _DEFAULT.what,
    num_envs: int = _DEFAULT.num_envs,
    num_steps: int = _DEFAULT.num_steps,
    play: str = _DEFAULT.play,
    output: Path | None = None,
) -> Profile:
    """Profile some steps of the environment, or one training update.

    Args:
        what: "env" or "train".
        num_envs: games at once.
        num_steps: steps of each.
        play: "random" or "harder", of the environment.
        output: folder to keep the profile in, for other viewers.
    """
    prepare = _env if what == "env" else _train
    work, program = prepare(num_envs, num_steps, play)
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(output or folder)
        with jax.profiler.trace(str(kept)):
            work()
        trace = max(kept.rglob("*.trace.json.gz"), key=lambda path: path.stat().st_mtime)
        events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    module = re.match(r"HloModule ([\w.-]+)", program)
    assert module is not None
    return Profile(what, seconds_by_place(events, module[1], places(program)))


def _env(num_envs: int, num_steps: int, play: str) -> Work:
    bench = EnvBench(num_envs, num_steps, play)
    return bench.repeat, bench.program()


def _train(num_envs: int, num_steps: int, play: str) -> Work:
    del play
    from hackmatrix.bench.settings import train_config
    from hackmatrix.learner.trainer import Trainer

    config = train_config(num_envs, num_steps, None, None, "float32", "classic")
    trainer = Trainer(hackmatrix.make(observation=config.observation), config)
    compiled = jax.jit(trainer.run).lower(trainer.init(config.seed), jnp.int32(1)).compile()
    state = jax.block_until_ready(compiled(trainer.init(config.seed), jnp.int32(1)))
    work = partial(compiled, state, jnp.int32(1))
    return lambda: jax.block_until_ready(work()), compiled.as_text() or ""


def seconds_by_place(events: Events, module: str, places: dict[str, str]) -> dict[str, float]:
    """Seconds of each place in the code; what runs inside an operation is not counted twice.

    Args:
        events: of a trace.
        module: the compiled program whose operations count.
        places: where its operations come from.
    """
    threads = defaultdict(list)
    for event in events:
        if event.get("args", {}).get("hlo_module") == module and "hlo_op" in event["args"]:
            threads[event["pid"], event["tid"]].append(event)
    seconds: Counter[str] = Counter()
    for thread in threads.values():
        open_: list[tuple[float, str]] = []  # end and place of the operations around
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
    """Where the operations of a compiled program (HLO text) come from, as "file.py function"."""
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
                own[name] = _NOWHERE  # what its body takes counts there
    for name, callee in called.items():
        if common := [it for it in inside[callee].most_common() if it[0] != _NOWHERE]:
            own[name] = common[0][0]
    return own


def _frames(program: str) -> dict[int, str]:
    """The tables at the head of the program: frame number to "file.py function"."""
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
    # Parents come before their children. Where some do not, XLA counts them from 1 as "none".
    first = int(any(parent >= number for number, _, parent in rows))
    frames = {
        number: (locations[str(location)], parent - first) for number, location, parent in rows
    }
    return {number: _place(number, frames) for number in frames}


def _place(number: int, frames: dict[int, tuple[tuple[str, str], int]]) -> str:
    """The innermost frame in the package that is no mere tool, else the innermost in it."""
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
