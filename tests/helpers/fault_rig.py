"""A run in a process of its own under a schedule of faults, resumed until it is done.

The processes are forked from one that has imported JAX but not used it: that saves three seconds
for each.
"""

import contextlib
import multiprocessing
import os
import random
import re
import resource
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

from failing_operations import install

from hackmatrix.runs.checkpoints import checkpoints_of
from hackmatrix.runs.metrics_file import read_metrics

UPDATES = 60
SETTINGS = [
    "--num-envs=16",
    "--num-steps=16",
    "--log-interval=1",
    "--save-interval=5",
    "--keep-checkpoints=3",
    "--normalize-observations",
    f"--total-timesteps={UPDATES * 256}",
    "--no-wandb",
    "--no-tensorboard",
    "--checkpoint-dir=runs",
    "--run-name=mine",
]
EVALUATED = [*SETTINGS, "--eval-interval=4", "--eval-episodes=8"]
RESUME = ["--resume", "runs/mine"]
RUN = Path("runs") / "mine"
PAUSE = 0.02  # seconds between two updates, so that faults meet a run under way
ABOUT_TO_FAIL = "operations fail"  # file beside `runs`: how many do not, and how many then do
PATIENCE = 180.0  # seconds, on a machine that has other work

KILLED = {-n for n in (signal.SIGKILL, signal.SIGHUP, signal.SIGINT, signal.SIGTERM)}


def process_of(folder: Path, arguments: list[str]) -> BaseProcess:
    """A process that trains; its output goes to `output.txt`."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        [
            "jax",
            "orbax.checkpoint",
            "hackmatrix.learning.run.loop",
            "hackmatrix.research.evaluation.jax_agents",
        ]
    )
    process = context.Process(target=_train, args=(str(folder), arguments))
    process.start()
    return process


def _train(folder: str, arguments: list[str]) -> None:
    os.setsid()
    os.chdir(folder)
    output = os.open("output.txt", os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
    for stream in (0, 1, 2):
        os.dup2(output, stream)
    from grid_command import wait_at_gate  # puts the grid in place of the game

    from hackmatrix.cli.main import main
    from hackmatrix.learning.trainer.trainer import Trainer

    assert wait_at_gate is not None
    run, now = Trainer.run, time.time
    failing, order = install(RUN), Path(ABOUT_TO_FAIL)

    def slow(self: Trainer, state: object, num_updates: int) -> object:
        time.sleep(PAUSE)
        if order.exists():
            skip, count = map(int, order.read_text().split())
            order.unlink()
            failing.arm(skip, count)
        return run(self, state, num_updates)  # type: ignore[arg-type]

    Trainer.run = slow  # type: ignore[assignment, method-assign]
    time.time = lambda: now() - 86_400 * Path("clock was set back").exists()
    sys.exit(main(["train", *arguments]))


class Lost(AssertionError):
    """A fault cost more than was promised."""


@dataclass
class Rig:
    """A run, the process that trains it, and what was done to it."""

    folder: Path
    chance: random.Random
    process: BaseProcess | None = None
    starts: int = 0  # how many processes had trained the run before this one
    met: list[str] = field(default_factory=list)  # the faults that met the run
    was_full: bool = False  # whether the disk of the process has been full, or has failed
    settings: list[str] = field(default_factory=lambda: SETTINGS)

    @property
    def run(self) -> Path:
        return self.folder / RUN

    def start(self, *more: str) -> None:
        """Starts a process that trains the run, or goes on with it."""
        begun = (self.run / "config.yaml").exists()
        self.was_full = False
        self.starts = self.starts_recorded()
        self.process = process_of(self.folder, [*(RESUME if begun else self.settings), *more])

    @property
    def code(self) -> int | None:
        assert self.process is not None
        return self.process.exitcode

    @property
    def update(self) -> int:
        return max((row["update"] for row in read_metrics(self.run)), default=0)

    @property
    def pid(self) -> int:
        assert self.process is not None
        assert self.process.pid is not None
        return self.process.pid

    def until(self, condition: Callable[[], object]) -> None:
        give_up = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > give_up:
                raise Lost(f"it hangs: {self.output()[-2000:]}")
            time.sleep(0.01)

    def starts_recorded(self) -> int:
        path = self.run / "starts.jsonl"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def reach(self, update: int) -> bool:
        """Waits until this process has made this update; False if it ended before."""
        self.until(
            lambda: (
                self.code is not None
                or (self.starts_recorded() > self.starts and self.update >= update)
            )
        )
        return self.code is None

    def end(self, *codes: int) -> None:
        """Waits until the process has ended, with one of these codes.

        It may also end with 1, which stands for a save that failed, if its disk has failed.
        """
        self.until(lambda: self.code is not None)
        codes = (*codes, 1) if self.was_full else codes
        if self.code not in codes:
            raise Lost(f"exit code {self.code}, expected {codes}: {self.output()[-2000:]}")

    def output(self) -> str:
        path = self.folder / "output.txt"
        return path.read_text(errors="replace") if path.exists() else ""

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()


# --- faults: each is done to a run under way -----------------------------------------------------


def _killed(rig: Rig) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(rig.pid, signal.SIGKILL)
    rig.end(0, *KILLED)  # 0: it had just come to its end


def _killed_early(rig: Rig) -> None:
    """Killed, and killed again while the next process starts, compiles and prepares the folder."""
    _killed(rig)
    _go_on(rig)
    time.sleep(rig.chance.uniform(0, 3))
    _killed(rig)


def _stopped_by(number: signal.Signals) -> Callable[[Rig], None]:
    def fault(rig: Rig) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(rig.pid, number)
        rig.end(0, 128 + number, -number)  # 0: it had just made its last update

    return fault


def _hurried(rig: Rig) -> None:
    """Ctrl+C twice: the second ends it at once."""
    os.kill(rig.pid, signal.SIGINT)
    time.sleep(rig.chance.uniform(0, 0.05))
    with contextlib.suppress(ProcessLookupError):
        os.kill(rig.pid, signal.SIGINT)
    rig.end(0, 130)


def _full(rig: Rig) -> None:
    """Files can't grow beyond 4 KiB for some updates, as on a full disk."""
    rig.was_full = True
    _, most = resource.prlimit(rig.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(rig.pid, resource.RLIMIT_FSIZE, (4096, most))
    time.sleep(rig.chance.uniform(0, 0.5))
    resource.prlimit(rig.pid, resource.RLIMIT_FSIZE, (most, most))


def _failing(rig: Rig) -> None:
    """One file operation of the next ones fails, or some in a row."""
    rig.was_full = True
    skip, count = rig.chance.randrange(150), rig.chance.choice((1, 1, 1, 20))
    (rig.folder / ABOUT_TO_FAIL).write_text(f"{skip} {count}")


def _moved(rig: Rig) -> None:
    """The folder is moved away, and comes back when the process has noticed."""
    aside = rig.folder / "aside"
    rig.run.rename(aside)
    rig.end(0, 1)
    if rig.run.exists():  # a save under way may have made an empty one
        if any(path.is_file() for path in rig.run.rglob("*")):
            raise Lost("a process wrote into a folder that is not its own")
        rig.run.rename(rig.folder / "empty")
    aside.rename(rig.run)


def _damaged(rig: Rig) -> None:
    """After a kill, a bit of the newest checkpoint is found flipped."""
    _killed(rig)
    checkpoints = checkpoints_of(rig.run)
    if len(checkpoints) < 2:
        return
    files = [path for path in checkpoints[-1].path.rglob("*") if path.stat().st_size]
    path = rig.chance.choice(sorted(path for path in files if path.is_file()))
    content = bytearray(path.read_bytes())
    content[rig.chance.randrange(len(content))] ^= 1 << rig.chance.randrange(8)
    path.write_bytes(bytes(content))


def _back_in_time(rig: Rig) -> None:
    (rig.folder / "clock was set back").touch()


class Fault(NamedTuple):
    """A kind of fault, and what does it."""

    name: str
    do: Callable[[Rig], None]


FAULTS = (
    Fault("kill -9", _killed),
    Fault("kill -9 at the start", _killed_early),
    Fault("SIGTERM", _stopped_by(signal.SIGTERM)),
    Fault("SIGINT", _stopped_by(signal.SIGINT)),
    Fault("SIGINT twice", _hurried),
    Fault("SIGHUP", _stopped_by(signal.SIGHUP)),
    Fault("disk full", _full),
    Fault("folder moved", _moved),
    Fault("bit flipped", _damaged),
    Fault("clock set back", _back_in_time),
)


# For runs with evaluations: that the best agent is kept hangs on many operations.
OF_EVALUATED = (*FAULTS, *[Fault("operations fail", _failing)] * len(FAULTS))


def endure(folder: Path, seed: int, *, evaluated: bool = False) -> list[str]:
    """Trains a run under the schedule of a seed until it is done; the faults that met it.

    Raises:
        Lost: a process hangs, ends in another way than is promised, or prints a traceback.
    """
    chance = random.Random(seed)
    rig = Rig(folder, chance, settings=EVALUATED if evaluated else SETTINGS)
    faults = OF_EVALUATED if evaluated else FAULTS
    moments = sorted(chance.randrange(1, UPDATES) for _ in range(chance.randint(1, 5)))
    try:
        rig.start()
        for moment in moments:
            if not rig.reach(moment):
                _go_on(rig)
                if not rig.reach(moment):
                    break
            time.sleep(chance.uniform(0, 0.05))
            fault = chance.choice(faults)
            rig.met.append(fault.name)
            with contextlib.suppress(ProcessLookupError):  # it has just come to its end
                fault.do(rig)
            if rig.code is not None:
                _go_on(rig)
        for _ in range(5):
            rig.until(lambda: rig.code is not None)
            if rig.code == 0:
                break
            _go_on(rig)
        rig.end(0)
    except Lost as lost:
        raise Lost(f"seed {seed}, {', '.join(rig.met)}: {lost}") from None
    finally:
        rig.close()
    if "Traceback" in rig.output():
        raise Lost(f"seed {seed}, {', '.join(rig.met)}: {rig.output()[-3000:]}")
    return rig.met


def _go_on(rig: Rig) -> None:
    """Resumes the run, as a person would who reads what the command says."""
    rig.start(*advice(rig))


def advice(rig: Rig) -> list[str]:
    """The flag to give with `--resume`, as the refusal of the command says it."""
    from hackmatrix.core.errors import UserError
    from hackmatrix.learning.run.start import find_start, open_run_folder
    from hackmatrix.learning.settings.config import TrainOptions
    from hackmatrix.learning.settings.resolve import resolve

    if not (rig.run / "config.yaml").exists():
        return []
    options = TrainOptions(resume=str(rig.run))
    try:
        start = find_start(options, rig.folder / "runs")
        config, _ = resolve({}, None, start.settings)
        with open_run_folder(config, options, start):
            return []
    except UserError as error:
        if found := re.search(r"--resume (\S+) --rewind", str(error)):
            return ["--resume", found[1], "--rewind"]
        if "--rewind drops what came after" in str(error):
            return ["--rewind"]
        raise Lost(str(error)) from None
