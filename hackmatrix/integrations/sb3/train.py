"""`hackmatrix sb3 train`: MaskablePPO, with its files, from the first step to the last."""

import contextlib
import dataclasses
import sys
import traceback
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hackmatrix.core.errors import UserError, in_words
from hackmatrix.core.imports import need
from hackmatrix.integrations.sb3.options import OF_MANY, Sb3TrainOptions
from hackmatrix.learning.settings.config import MAX_SEED
from hackmatrix.runs.folder import RunFolder
from hackmatrix.runs.names import check_word, next_name
from hackmatrix.runs.trackers import TrackedRun, Trackers

if TYPE_CHECKING:
    from hackmatrix.integrations.sb3.callbacks import History, ProgressCallback, StopCallback

PREFIX = "hackmatrix"
FAILED, BY_SIGNAL = 1, 128  # + the signal's number, as shells count


def train(options: Sb3TrainOptions) -> int:
    """Trains and returns the exit code: 0, 128 + the number of a signal, 1 after a failure.

    Raises:
        UserError: a package is missing, the model to resume can't be used, its run is being
            trained by another process, or options don't fit.
    """
    need("sb3_contrib")
    from hackmatrix.integrations.sb3.callbacks import History, ProgressCallback, StopCallback
    from hackmatrix.integrations.sb3.model import model_of

    with _environment(options) as env:
        model = model_of(options, env)
        name = take_name(options)
        models, logs = options.model_dir / name, options.log_dir / name
        with closing(RunFolder(logs)) as run, closing(History(options.log_dir)) as history:
            where = f"{options.games} x {options.player}"
            _say(f"{name}: {where}, models in {models}, logs in {logs}")
            steps = model.num_timesteps
            if options.resume:
                _say(f"continues {options.resume} after {steps:,} steps")
            is_cut = bool(options.resume) and _cut(run, history, steps)
            config = {**_facts(options), "wandb": options.wandb, "project": PREFIX}
            tracked = TrackedRun(logs, config, update=steps, rewind=is_cut)
            with Trackers.open(tracked, _say) as trackers:
                progress, stopping = ProgressCallback(options.timesteps, _say), StopCallback()
                callbacks = _callbacks(options, run, history, trackers, stopping)
                return _learn(options, model, models, callbacks, progress, stopping)


def _cut(run: RunFolder, history: "History", steps: int) -> bool:
    """Drops what a run recorded after the steps of the model that it goes on from.

    It will be made again, and would count twice.
    """
    rows = run.metrics()
    kept = [row for row in rows if (row.get("timesteps") or 0) <= steps]
    dropped, episodes = len(rows) - len(kept), history.cut(run.path.name, steps)
    if dropped:
        run.write_metrics(kept)
    if dropped or episodes:
        what = f"{dropped:,} rows of metrics and {episodes:,} episodes after step {steps:,}"
        _say(f"{what} are dropped; their steps are made again")
    return bool(dropped or episodes)


def take_name(options: Sb3TrainOptions) -> str:
    """The name of the run, whose folders it makes.

    It is that of the folder of the resumed model, if that is a run of `--model-dir`, else the next
    one of today.

    Raises:
        UserError: the suffix can't be part of a folder's name, or a folder can't be made.
    """
    if options.run_suffix is not None:
        check_word("--run-suffix", options.run_suffix)
    folder = options.resume and options.resume.resolve().parent
    try:
        if folder and folder.parent == options.model_dir.resolve():
            (options.log_dir / folder.name).mkdir(parents=True, exist_ok=True)
            return folder.name
        for parent in (options.model_dir, options.log_dir):
            parent.mkdir(parents=True, exist_ok=True)
        while True:
            name = _next_name(options)
            with contextlib.suppress(FileExistsError):  # another run was faster: the next one
                (options.model_dir / name).mkdir()
                (options.log_dir / name).mkdir(exist_ok=True)
                return name
    except OSError as error:
        raise UserError(in_words(error)) from error


def _next_name(options: Sb3TrainOptions) -> str:
    parents = options.model_dir, options.log_dir
    existing = [each.name for parent in parents for each in parent.iterdir()]
    name = next_name(existing, date.today(), PREFIX)
    return f"{name}-{options.run_suffix}".lower() if options.run_suffix else name


def _facts(options: Sb3TrainOptions) -> dict[str, str]:
    return {name: str(value) for name, value in dataclasses.asdict(options).items()}


@contextlib.contextmanager
def _environment(options: Sb3TrainOptions) -> Iterator[Any]:
    from hackmatrix.integrations.sb3.envs import JaxVecEnv, singles

    games, most, seen = options.games, options.max_episode_steps, options.of_game()
    env = (
        JaxVecEnv(games, most, **seen)
        if options.player in OF_MANY
        else singles(games, most, **seen, **options.of_player())
    )
    try:
        yield env
    finally:
        env.close()


def _callbacks(
    options: Sb3TrainOptions,
    run: RunFolder,
    history: "History",
    trackers: Trackers,
    stopping: "StopCallback",
) -> list[Any]:
    from hackmatrix.integrations.sb3.callbacks import Checkpoints, Episodes, Evaluation
    from hackmatrix.integrations.sb3.envs import singles

    models = options.model_dir / run.path.name
    every: list[Any] = [Episodes(run, history, trackers), Checkpoints(options.save_freq, models)]
    if options.eval_freq:
        game = options.of_game(evaluation=True) | options.of_player(evaluation=True)
        env = singles(1, options.max_episode_steps, **game)
        env.seed(options.seed % MAX_SEED)
        every.append(Evaluation(env, options.eval_freq, options.games, models, run.path, stopping))
    return every


def _learn(
    options: Sb3TrainOptions,
    model: Any,
    models: Path,
    callbacks: list[Any],
    progress: "ProgressCallback",
    stopping: "StopCallback",
) -> int:
    """Trains, and saves the model whatever ends it."""
    from hackmatrix.integrations.sb3.callbacks import save

    failure: Exception | None = None
    callbacks = [*callbacks, progress, stopping]
    with stopping.request:
        try:
            model.learn(options.timesteps, callback=callbacks, reset_num_timesteps=False)
        except KeyboardInterrupt:
            pass  # by `stopping`
        except Exception as error:
            failure = error
        stopping.close()
        saved, code = "final_model", 0
        if stopping.signal is not None:  # games that the signal reached too may have failed
            saved, code, failure = "interrupted_model", BY_SIGNAL + stopping.signal, None
        elif failure is not None:
            saved, code = "crash_recovery_model", FAILED
        save(model, models / f"{saved}.zip")
    for callback in callbacks:
        callback.close()
    if line := progress.line():
        _say(line)
    _say(f"saved {models / saved}.zip")
    if failure is not None:
        if options.debug:
            traceback.print_exception(failure)
        text = in_words(failure) if isinstance(failure, OSError) else " ".join(str(failure).split())
        print(f"hackmatrix sb3 train: error: {type(failure).__name__}: {text}", file=sys.stderr)
    return code


def _say(line: str) -> None:
    print(line, flush=True)
