"""`hackmatrix sb3 watch`: a saved model plays, deterministically, for people to look at."""

import sys
import time
from pathlib import Path
from typing import Any

from hackmatrix.errors import UserError
from hackmatrix.rules.actions import ACTION_NAMES
from hackmatrix.sb3.options import WatchOptions
from hackmatrix.sb3.packages import packages


def watch(options: WatchOptions) -> int:
    """Plays and shows the games; returns the exit code, 1 if there is no model.

    Raises:
        UserError: a package is missing, or the file is no model.
    """
    path = options.model or newest(options.model_dir)
    if path is None or not path.is_file():
        where = f"no model in {options.model_dir}" if path is None else f"no model {path}"
        print(f"hackmatrix sb3 watch: error: {where}: train one first", file=sys.stderr)
        return 1
    with packages():
        from sb3_contrib import MaskablePPO

        from hackmatrix.gym.game import GameEnv
    try:
        model = MaskablePPO.load(path)
    except Exception as error:
        why = " ".join(str(error).split())[:200]
        raise UserError(f"{path}: not a model of MaskablePPO: {why}") from error
    live = sys.stdout.isatty()
    env = GameEnv(render_mode="human" if live else None, **options.of_game())
    print(f"{path}: {options.episodes} games", flush=True)
    try:
        for number in range(options.episodes):
            print(f"game {number + 1}: {_play(options, model, env, number, live)}", flush=True)
    finally:
        env.close()
    return 0


def newest(folder: Path) -> Path | None:
    """The newest model in a folder of models or in the folders of its runs."""
    models = sorted(folder.glob("**/*.zip"), key=lambda path: path.stat().st_mtime)
    return models[-1] if models else None


def _play(options: WatchOptions, model: Any, env: Any, number: int, live: bool) -> str:
    """Plays a game; returns how it went, on one line."""
    observation, _ = env.reset(seed=options.seed + number)
    total, steps, done = 0.0, 0, False
    info: dict[str, Any] = {}
    while not done and steps < options.max_steps:
        masks = env.action_masks()
        action, _ = model.predict(observation, deterministic=True, action_masks=masks)
        observation, reward, done, _, info = env.step(int(action))
        total, steps = total + reward, steps + 1
        if live:
            print(f"{ACTION_NAMES[int(action)]} {reward:+.2f}", flush=True)
            time.sleep(options.delay)
    ending = "died" if info.get("death") else "won" if done else "cut off"
    stage = env.state().stage
    return f"{ending} in stage {stage} after {steps} actions, return {total:+.2f}"
