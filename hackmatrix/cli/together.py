"""A process of `hackmatrix tune --together`: several trainings with the same compiled programs.

It reads orders, a JSON object a line: `{"number": 1, "argv": [...], "log": PATH}` begins a training
with arguments of `hackmatrix train`, `{"number": 1}` ends it with a checkpoint. It answers with
`{"number": 1, "code": 0}` when that training has ended. At the end of its input it ends all of
them.

Each training has a thread; they take turns, one compiled call each.
"""

import json
import os
import sys
import threading
import traceback
from contextlib import nullcontext
from pathlib import Path
from signal import SIGTERM, Signals
from typing import Any, TextIO

from hackmatrix.agents.networks.network import Network
from hackmatrix.cli import train as command
from hackmatrix.cli.main import FAILED, USAGE_ERROR
from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
from hackmatrix.core.errors import UserError
from hackmatrix.core.files import open_no_link
from hackmatrix.environments.interface.environment import Environment
from hackmatrix.learning.reporting.console import Console
from hackmatrix.learning.run.loop import Evaluate, train
from hackmatrix.learning.run.schedule import SharedPrograms
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.research.evaluation.jax_agents import make_evaluate

Order = dict[str, Any]


class TrainingStop:
    """The request to end one training."""

    signal: Signals | None = None

    @property
    def is_requested(self) -> bool:
        """Whether it is to end."""
        return self.signal is not None


class Together:
    """The trainings of this process, by number."""

    def __init__(self, answers: TextIO) -> None:
        """No training yet; `answers` is where to write that they ended."""
        self.programs = SharedPrograms()
        self._answers = answers
        self._evaluations: dict[Any, Evaluate] = {}
        self._open: dict[int, tuple[threading.Thread, TrainingStop]] = {}
        self._lock = threading.Lock()

    def obey(self, order: Order) -> None:
        """Begins or ends a training."""
        training_id = order["number"]
        with self._lock:
            if "argv" in order:
                stop = TrainingStop()
                thread = threading.Thread(target=self._answer, args=(order, stop))
                self._open[training_id] = thread, stop
                thread.start()
            elif training_id in self._open:
                self._open[training_id][1].signal = SIGTERM

    def end(self) -> None:
        """Ends all trainings."""
        with self._lock:
            for _, stop in self._open.values():
                stop.signal = SIGTERM

    def join(self) -> None:
        """Waits until all trainings have ended."""
        with self._lock:
            threads = [thread for thread, _ in self._open.values()]
        for thread in threads:
            thread.join()

    def _answer(self, order: Order, stop: TrainingStop) -> None:
        """Trains, and says how it ended."""
        training_id = order["number"]
        code = self._train(order["argv"], Path(order["log"]), stop)
        with self._lock:
            del self._open[training_id]
            print(json.dumps({"number": training_id, "code": code}), file=self._answers, flush=True)

    def _train(self, argv: list[str], path: Path, stop: TrainingStop) -> int:
        """Trains as `hackmatrix train` does with these arguments; returns its exit code."""
        with open(path, "a", encoding="utf-8", opener=open_no_link) as log:
            try:
                return self._train_with_log(argv, log, stop)
            except (UserError, OSError) as error:
                print(f"hackmatrix train: error: {error}", file=log)
                return USAGE_ERROR if isinstance(error, UserError) else FAILED
            except Exception as error:
                traceback.print_exception(error, file=log)
                return FAILED

    def _train_with_log(self, argv: list[str], log: TextIO, stop: TrainingStop) -> int:
        parsed = command.parse(argv)
        with parsed.open() as run, Console(log) as console:
            config, notes = command.prepare(parsed, run.options, run.start)
            for note in notes:
                console.say(note)
            outcome = train(
                config,
                run.options,
                console,
                start=run.start,
                make_evaluate=self._make_evaluate,
                stopping=nullcontext(stop),
                programs=self.programs,
            )
            for line in command.summary(outcome, run.start.course(config.learning), config):
                console.say(line)
        return command.code_of(outcome)

    def _make_evaluate(self, env: Environment, network: Network, config: TrainConfig) -> Evaluate:
        """The function that evaluates params: compiled once for all that play the same games."""
        how = id(network), config.report.eval_episodes, config.run.seed
        with self._lock:
            if how not in self._evaluations:
                self._evaluations[how] = make_evaluate(env, network, config)
            return self._evaluations[how]


def main() -> int:
    """Obeys the orders on standard input, to its end."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever else prints is no answer
    enable_compilation_cache()
    together = Together(answers)
    for line in sys.stdin:
        together.obey(json.loads(line))
    together.end()
    together.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
