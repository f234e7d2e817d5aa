"""`hackmatrix tune`: searches for settings of training."""

import contextlib
import json
import signal
import sys
import threading
from collections.abc import Iterator

from hackmatrix.cli.arguments import parse
from hackmatrix.cli.main import FAILED
from hackmatrix.core.imports import need
from hackmatrix.research.tuning.plan import TuneOptions

_EXAMPLE = """\
  hackmatrix tune --config cartpole_best --search-space space.yaml --num-trials 30
      30 trials with Optuna's TPE; the same command continues after a kill
  hackmatrix tune --config cartpole_best --search-space space.yaml --sampler random
      adds a random search, in the same folder and the same report"""


def main(argv: list[str]) -> int:
    """Runs the command."""
    options = parse(
        TuneOptions,
        argv,
        command="hackmatrix tune",
        purpose="Searches for training settings, retrains the winner with fresh seeds, and "
        "writes the best settings as a file for `hackmatrix train --config`.",
        example=_EXAMPLE,
    )
    need("optuna", "jax")
    from hackmatrix.research.tuning.plan import plan_of
    from hackmatrix.research.tuning.results import TuningReport
    from hackmatrix.research.tuning.retraining import best_of, retrain
    from hackmatrix.research.tuning.shared_process import trainings
    from hackmatrix.research.tuning.study import studies
    from hackmatrix.research.tuning.worker import search
    from hackmatrix.runs.folder import TRIALS

    def say(text: str) -> None:
        if not options.json:
            print(text, flush=True)

    plan = plan_of(options)
    plan.write()
    stop = threading.Event()
    shared = trainings(options.jobs, options.together, plan.folder / TRIALS)
    with _interrupt_on_sigterm(), shared as start:
        missing = search(options, plan, stop, start, say)
        studies_by_name = dict(studies(options, plan))
        winners = {
            name: best for name, study in studies_by_name.items() if (best := best_of(study, plan))
        }
        fresh = {}
        if plan.fresh_seeds and winners:
            at_once = options.jobs * options.together
            fresh = retrain(plan, winners, stop, start, say, at_once=at_once)
    report = TuningReport(plan, studies_by_name, winners, fresh)
    files = report.write()
    if options.json:
        print(json.dumps(report.as_dict()))
    else:
        print(f"{report.text()}\nwritten {', '.join(files)}")
    for each in missing:
        print(f"hackmatrix tune: error: {each}; the same command makes it again", file=sys.stderr)
    if not winners:
        print(
            "hackmatrix tune: error: no trial has finished within the constraints", file=sys.stderr
        )
    return 0 if winners and not missing else FAILED


@contextlib.contextmanager
def _interrupt_on_sigterm() -> Iterator[None]:
    """SIGTERM ends the search as Ctrl+C does: trainings are stopped, trials are made again."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
