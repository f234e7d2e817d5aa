"""A training with a curriculum: what is evaluated, and what a resumed run takes from before."""

import io
from pathlib import Path
from typing import Any

import probe_environments as probes
import pytest
from small_runs import rows_of, run_of

from hackmatrix.agents.networks.network import Network
from hackmatrix.environments.curriculum.levels import Curriculum
from hackmatrix.environments.interface.environment import Environment
from hackmatrix.learning.run.loop import Evaluate
from hackmatrix.learning.settings.config import TrainConfig, TrainOptions
from hackmatrix.runs.checkpoints import load_checkpoint

pytestmark = pytest.mark.usefixtures("shared_programs")

FIRST, OTHER = (Curriculum.of([{"advance": {"win_rate": rate}}, {}]) for rate in (0.5, 0.75))
SETTINGS: dict[str, Any] = {"lr": 0.05, "log_interval": 1, "total_timesteps": 12 * 64}


@pytest.fixture(autouse=True)
def wrapped(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The environments wrapped so far; a ladder stands for HackMatrix with its starts."""
    calls: list[Any] = []

    def with_curriculum(*args: Any) -> Environment:
        calls.append(args)
        return probes.Ladder()

    monkeypatch.setattr("hackmatrix.environments.curriculum.env.with_curriculum", with_curriculum)
    return calls


def level_of(run: Path, update: int) -> int:
    arrays, _ = load_checkpoint(run / "checkpoints" / str(update))
    return int(arrays["progress.level"])


@pytest.mark.thorough
def test_evaluations_play_the_real_game(tmp_path: Path, wrapped: list[Any]) -> None:
    real, evaluated = probes.Ladder(), []

    def make_evaluate(env: Environment, network: Network, config: TrainConfig) -> Evaluate:
        del network, config
        evaluated.append(env)
        return lambda _: {"mean_return": 0.0}

    changes = SETTINGS | {"curriculum": FIRST, "curriculum_start_level": 2, "eval_interval": 6}
    run_of(tmp_path, env=real, make_evaluate=make_evaluate, **changes)
    assert wrapped == [(real, FIRST, 2)]
    assert evaluated == [real]


@pytest.mark.thorough
def test_without_a_curriculum_nothing_is_wrapped(tmp_path: Path, wrapped: list[Any]) -> None:
    run_of(tmp_path, total_timesteps=64)
    assert wrapped == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("changes", "said", "begins_anew"),
    [
        ({}, "resuming", False),
        ({"curriculum": OTHER}, "changed since: curriculum\n", True),
        ({"curriculum": FIRST}, "resuming", False),
        (
            {"curriculum": FIRST, "curriculum_start_level": 2},
            "changed since: curriculum_start_level 1 -> 2",
            True,
        ),
    ],
)
def test_a_resumed_run_keeps_its_level_unless_the_curriculum_is_another(
    tmp_path: Path, wrapped: list[Any], changes: dict[str, Any], said: str, begins_anew: bool
) -> None:
    run_of(tmp_path, env=probes.Ladder(), **SETTINGS | {"curriculum": FIRST})
    run = tmp_path / "mine"
    assert level_of(run, 12) >= 1
    output = io.StringIO()
    resumed = TrainOptions(resume=str(run))
    more = {"total_timesteps": 13 * 64} | changes
    run_of(tmp_path, resumed, output=output, env=probes.Ladder(), **more)
    assert said in output.getvalue()
    assert wrapped[-1][1] == changes.get("curriculum", FIRST)
    shown = rows_of(run)[-1]["ladder/level"]
    assert shown == (0 if begins_anew else level_of(run, 12))
