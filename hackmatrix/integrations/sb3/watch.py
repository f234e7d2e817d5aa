"""`hackmatrix sb3 watch`: a saved model plays, deterministically, for people to look at."""

import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from hackmatrix.core.errors import UserError
from hackmatrix.core.imports import need
from hackmatrix.game.rules.actions import ACTION_NAMES
from hackmatrix.integrations.sb3.options import SB3WatchOptions


def watch(options: SB3WatchOptions) -> int:
    """Plays and shows the games; returns the exit code, 1 if there is no model.

    Raises:
        UserError: a package is missing, or the file is no model.
    """
    path = options.model or newest(options.model_dir)
    if path is None or not path.is_file():
        where = f"no model in {options.model_dir}" if path is None else f"no model {path}"
        print(f"hackmatrix sb3 watch: error: {where}: train one first", file=sys.stderr)
        return 1
    need("sb3_contrib")
    from sb3_contrib import MaskablePPO

    from hackmatrix.integrations.gymnasium.game import GameEnv
    from hackmatrix.integrations.gymnasium.observation_spaces import layout_of
    from hackmatrix.integrations.sb3.model import SCHEDULES, describe_space

    try:
        model = MaskablePPO.load(path, custom_objects=SCHEDULES)
    except Exception as error:
        why = " ".join(str(error).split())[:200]
        raise UserError(f"{path}: not a model of MaskablePPO: {why}") from error
    layout = layout_of(model.observation_space)
    if layout is None:
        raise UserError(f"{path}: observes {describe_space(model.observation_space)}")
    live = sys.stdout.isatty()
    mode = "human" if live else None
    env = GameEnv(layout, render_mode=mode, **options.of_player())
    print(f"{path}: {options.episodes} games", flush=True)
    games = []
    try:
        for number in range(options.episodes):
            games.append(_play(options, model, env, number, live))
            print(f"game {number + 1}: {games[-1].text()}", flush=True)
    finally:
        env.close()
    print(f"mean: {_means(games)}", flush=True)
    return 0


def newest(folder: Path) -> Path | None:
    """The newest model in a folder of models or in the folders of its runs."""
    models = sorted(folder.glob("**/*.zip"), key=lambda path: path.stat().st_mtime)
    return models[-1] if models else None


class _WatchedGame(NamedTuple):
    """The length, return and ending of a game."""

    ending: str
    stage: int
    actions: int
    total: float  # the sum of the rewards

    @property
    def stages_cleared(self) -> int:
        """The stages that it cleared."""
        return self.stage - (self.ending != "won")

    def text(self) -> str:
        """One line."""
        where = f"{self.ending} in stage {self.stage} after {self.actions} actions"
        return f"{where}, return {self.total:+.2f}"


def _means(games: list[_WatchedGame]) -> str:
    cleared, total, won = (
        sum(numbers) / len(games)
        for numbers in zip(
            *((g.stages_cleared, g.total, g.ending == "won") for g in games), strict=True
        )
    )
    return f"{cleared:.2f} stages cleared, {won:.0%} won, return {total:+.2f}"


def _play(options: SB3WatchOptions, model: Any, env: Any, index: int, live: bool) -> _WatchedGame:
    """Plays a game."""
    observation, _ = env.reset(seed=options.seed + index)
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
    return _WatchedGame(ending, env.state().stage, steps, total)
