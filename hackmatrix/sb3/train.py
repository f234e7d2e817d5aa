"""`hackmatrix sb3 train`: MaskablePPO, with its files, from the first step to the last."""

import contextlib
import dataclasses
import sys
import traceback
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

from hackmatrix.errors import UserError, in_words
from hackmatrix.runs.names import check_word, next_name
from hackmatrix.runs.trackers import TrackedRun, Trackers
from hackmatrix.sb3.options import Sb3TrainOptions
from hackmatrix.sb3.packages import packages
from hackmatrix.settings.config import MAX_SEED

PREFIX = "hackmatrix"
FAILED, INTERRUPTED = 1, 130


def train(options: Sb3TrainOptions) -> int:
    """Trains and returns the exit code: 0, 130 after Ctrl+C, 1 after a failure.

    Raises:
        UserError: a package is missing, the model to resume can't be used, or options don't fit.
    """
    with packages():
        from hackmatrix.sb3.callbacks import Progress
        from hackmatrix.sb3.model import model_of

    with _environment(options) as env:
        model = model_of(options, env)
        name = take_name(options)
        models, logs = options.model_dir / name, options.log_dir / name
        where = f"{options.games} x {options.player}"
        _say(f"{name}: {where}, models in {models}, logs in {logs}")
        if model.num_timesteps:
            _say(f"continues {options.resume} after {model.num_timesteps:,} steps")
        progress = Progress(options.timesteps, _say)
        config = {**_facts(options), "wandb": options.wandb, "project": PREFIX}
        tracked = TrackedRun(logs, config, update=model.num_timesteps)
        with Trackers.open(tracked, _say) as trackers:
            return _learn(options, model, models, _callbacks(options, name, trackers), progress)


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
    from hackmatrix.sb3.envs import JaxVecEnv, singles

    games, most, seen = options.games, options.max_episode_steps, options.of_game()
    env = (
        JaxVecEnv(games, most, **seen)
        if options.player == "jax"
        else singles(games, most, **seen, **options.of_player())
    )
    try:
        yield env
    finally:
        env.close()


def _callbacks(options: Sb3TrainOptions, name: str, trackers: Trackers) -> list[Any]:
    from hackmatrix.sb3.callbacks import Checkpoints, Episodes, Evaluation
    from hackmatrix.sb3.envs import singles
    from hackmatrix.sb3.history import History

    models, logs = options.model_dir / name, options.log_dir / name
    every: list[Any] = [
        Episodes(name, logs, History(options.log_dir), trackers),
        Checkpoints(options.save_freq, models),
    ]
    if options.eval_freq:
        game = options.of_game(evaluation=True) | options.of_player(evaluation=True)
        env = singles(1, options.max_episode_steps, **game)
        env.seed(options.seed % MAX_SEED)
        every.append(Evaluation(env, options.eval_freq, options.games, models, logs))
    return every


def _learn(
    options: Sb3TrainOptions, model: Any, models: Path, callbacks: list[Any], progress: Any
) -> int:
    """Trains, and saves the model whatever ends it."""
    saved, code, why = "final_model", 0, ""
    try:
        model.learn(options.timesteps, callback=[*callbacks, progress], reset_num_timesteps=False)
    except KeyboardInterrupt:
        saved, code = "interrupted_model", INTERRUPTED
    except Exception as error:
        saved, code = "crash_recovery_model", FAILED
        why = in_words(error) if isinstance(error, OSError) else " ".join(str(error).split())
        why = f"{type(error).__name__}: {why}"
        if options.debug:
            traceback.print_exc()
    finally:
        progress.close()
    for callback in callbacks:
        callback.close()
    model.save(models / f"{saved}.zip")
    _say(progress.line())
    _say(f"saved {models / saved}.zip")
    if why:
        print(f"hackmatrix sb3 train: error: {why}", file=sys.stderr)
    return code


def _say(line: str) -> None:
    print(line, flush=True)
