"""A process of `hackmatrix tune --together`: several trainings with the same compiled programs.

It reads orders, a JSON object a line: `{"number": 1, "argv": [...], "log": PATH}` begins a training
with arguments of `hackmatrix train`, `{"number": 1}` ends it with a checkpoint. It answers with
`{"number": 1, "code": 0}` when that training has ended. At the end of its input it ends all of
them.

Trainings take turns, one compiled call each.
"""

import json
import os
import queue
import sys
import threading
import traceback
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from pathlib import Path
from signal import SIGTERM, Signals
from typing import Any, NamedTuple, TextIO

from hackmatrix.agents.networks.network import Network
from hackmatrix.cli import train
from hackmatrix.cli.main import FAILED, USAGE_ERROR
from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
from hackmatrix.core.errors import UserError
from hackmatrix.core.files import open_no_link
from hackmatrix.environments.interface.environment import Environment
from hackmatrix.learning.reporting.console import Console
from hackmatrix.learning.run.chunks import Call, CallResult
from hackmatrix.learning.run.loop import Evaluate, Programs, training
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.research.evaluation.selection import make_evaluate

Order = dict[str, Any]


class TrainingStop:
    """The request to end one training."""

    signal: Signals | None = None

    @property
    def is_requested(self) -> bool:
        """Whether it is to end."""
        return self.signal is not None


class Running(NamedTuple):
    """A training under way."""

    run: Generator[Call, CallResult, int]  # returns the exit code
    stop: TrainingStop
    call: Call  # that it waits for


class Together:
    """The trainings of this process, by number."""

    def __init__(self, answers: TextIO) -> None:
        """No training yet; `answers` is where to write that they ended."""
        self._answers = answers
        self._programs: Programs = {}
        self._evaluations: dict[Any, Evaluate] = {}
        self._open: dict[int, Running] = {}

    @property
    def is_idle(self) -> bool:
        """Whether no training is under way."""
        return not self._open

    def obey(self, order: Order) -> None:
        """Begins or ends a training."""
        training_id = order["number"]
        if "argv" in order:
            stop = TrainingStop()
            run = self._train(order["argv"], Path(order["log"]), stop)
            self._go_on(training_id, run, stop, None)
        elif training_id in self._open:
            self._open[training_id].stop.signal = SIGTERM

    def end(self) -> None:
        """Ends all trainings."""
        for each in self._open.values():
            each.stop.signal = SIGTERM

    def turn(self) -> None:
        """Makes one call of each training."""
        for training_id, (run, stop, call) in list(self._open.items()):
            try:
                result = call.run()
            except Exception as error:
                self._go_on(training_id, run, stop, error)
            else:
                self._go_on(training_id, run, stop, result)

    def _go_on(
        self,
        training_id: int,
        run: Generator[Call, CallResult, int],
        stop: TrainingStop,
        result: CallResult | Exception | None,
    ) -> None:
        """Lets a training have the result of its call, until it asks for the next one or ends."""
        try:
            if isinstance(result, Exception):
                call = run.throw(result)
            else:
                call = next(run) if result is None else run.send(result)
            self._open[training_id] = Running(run, stop, call)
        except StopIteration as end:
            self._open.pop(training_id, None)
            print(
                json.dumps({"number": training_id, "code": end.value}),
                file=self._answers,
                flush=True,
            )

    def _train(
        self, argv: list[str], path: Path, stop: TrainingStop
    ) -> Generator[Call, CallResult, int]:
        """A training as `hackmatrix train` with these arguments makes it; returns its exit code."""
        with open(path, "a", encoding="utf-8", opener=open_no_link) as log:
            try:
                return (yield from self._with_log(argv, log, stop))
            except (UserError, OSError) as error:
                print(f"hackmatrix train: error: {error}", file=log)
                return USAGE_ERROR if isinstance(error, UserError) else FAILED
            except Exception as error:
                traceback.print_exception(error, file=log)
                return FAILED

    def _with_log(
        self, argv: list[str], log: TextIO, stop: TrainingStop
    ) -> Generator[Call, CallResult, int]:
        command = train.parse(argv)
        with command.open() as run, Console(log) as console:
            config, notes = train.prepare(command, run.options, run.start)
            for note in notes:
                console.say(note)
            outcome = yield from training(
                config,
                run.options,
                console,
                nullcontext(stop),
                start=run.start,
                make_evaluate=self._make_evaluate,
                programs=self._programs,
            )
            for line in train.summary(outcome, run.start.course(config.learning), config):
                console.say(line)
        return train.code_of(outcome)

    def _make_evaluate(self, env: Environment, network: Network, config: TrainConfig) -> Evaluate:
        """The function that evaluates params: compiled once for all that play the same games."""
        how = id(network), config.report.eval_episodes, config.run.seed
        if how not in self._evaluations:
            self._evaluations[how] = make_evaluate(env, network, config)
        return self._evaluations[how]


def main() -> int:
    """Obeys the orders on standard input, to its end."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever else prints is no answer
    enable_compilation_cache()
    orders: queue.SimpleQueue[Order | None] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(orders,), daemon=True).start()
    together, is_over = Together(answers), False
    while not (is_over and together.is_idle):
        for order in _waiting(orders, waits=together.is_idle and not is_over):
            if order is None:
                is_over = True
                together.end()
            else:
                together.obey(order)
        together.turn()
    return 0


def _read(orders: "queue.SimpleQueue[Order | None]") -> None:
    for line in sys.stdin:
        orders.put(json.loads(line))
    orders.put(None)


def _waiting(orders: "queue.SimpleQueue[Order | None]", *, waits: bool) -> Iterator[Order | None]:
    """The orders that have come; `waits` for the first one."""
    while waits or not orders.empty():
        yield orders.get()
        waits = False


if __name__ == "__main__":
    sys.exit(main())
