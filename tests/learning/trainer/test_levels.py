"""Levels: an agent rises by the results of its games, exactly again when it is resumed."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import probe_environments as probes
import pytest
from sharing_trainer import SharingTrainer
from small_runs import assert_same_run, config_in, rows_of, run_of

from hackmatrix.environments.interface.environment import Levels
from hackmatrix.learning.settings.config import TrainOptions
from hackmatrix.learning.trainer.trainer import LevelProgress
from hackmatrix.runs.checkpoints import load_checkpoint

pytestmark = [pytest.mark.usefixtures("shared_programs"), pytest.mark.thorough]

LEVELS = Levels("ladder/right", 1, np.float32([0.5, 0.75, np.inf]), np.float32([4, 8, 2]))
SETTINGS: dict[str, Any] = {"lr": 0.05, "log_interval": 1, "total_timesteps": 24 * 64}


def progress_after(*results: tuple[float, float]) -> tuple[int, float, float]:
    progress = LevelProgress.create(LEVELS)
    for pair in results:
        progress = progress.updated(LEVELS, jnp.float32(pair))
    return int(progress.level), float(progress.total), float(progress.games)


def test_enough_games_decide_and_are_not_counted_again() -> None:
    assert progress_after() == (1, 0, 0)
    assert progress_after((7, 7)) == (1, 7, 7)
    assert progress_after((7, 7), (0, 2)) == (2, 0, 0)
    assert progress_after((5, 7), (1, 2)) == (1, 0, 0)
    assert progress_after((5, 7), (1, 2), (6, 8)) == (2, 0, 0)
    assert progress_after((8, 8), (9, 9)) == (2, 0, 0), "there is no level after the last"


def test_an_agent_rises_through_the_levels_also_when_it_is_resumed(tmp_path: Path) -> None:
    whole = run_of(tmp_path / "whole", env=probes.Ladder(), **SETTINGS).run
    shown = [row["ladder/level"] for row in rows_of(whole)]
    assert shown == sorted(shown)
    assert (shown[0], shown[-1]) == (0, probes.Ladder.last)
    arrays, _ = load_checkpoint(whole / "checkpoints" / "24")
    assert arrays["progress.level"] == probes.Ladder.last

    settings = SETTINGS | {"total_timesteps": 3 * 64}
    run = run_of(tmp_path / "parts", env=probes.Ladder(), **settings).run
    arrays, _ = load_checkpoint(run / "checkpoints" / "3")
    assert arrays["progress.games"] > 0, "in the midst of counting"
    resumed = TrainOptions(resume=str(run))
    run_of(tmp_path / "parts", resumed, env=probes.Ladder(), total_timesteps=24 * 64)
    assert_same_run(whole, run, 24)


def test_the_state_of_an_environment_without_levels_has_none(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    trainer = SharingTrainer(probes.Grid(), config.learning, config.network)
    assert trainer.state_shape().progress is None
