"""A training with a curriculum: what is evaluated, and what a resumed run takes from before."""

import io
import shutil
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
    run_of(tmp_path, TrainOptions(run_name="without"), total_timesteps=64)
    assert len(wrapped) == 1


@pytest.mark.thorough
def test_a_resumed_run_keeps_its_level_unless_the_curriculum_is_another(
    tmp_path: Path, wrapped: list[Any]
) -> None:
    begun = tmp_path / "begun"
    run_of(begun, env=probes.Ladder(), **SETTINGS | {"curriculum": FIRST})
    reached = level_of(begun / "mine", 12)
    assert reached >= 1
    cases: list[tuple[dict[str, Any], str, int]] = [
        ({}, "resuming", reached),
        ({"curriculum": OTHER}, "changed since: curriculum\n", 0),
        ({"curriculum": FIRST}, "resuming", reached),
        (
            {"curriculum": FIRST, "curriculum_start_level": 2},
            "changed since: curriculum_start_level 1 -> 2",
            0,
        ),
    ]
    for number, (changes, said, level) in enumerate(cases):
        output, folder = io.StringIO(), tmp_path / str(number)
        shutil.copytree(begun, folder)
        resumed, more = TrainOptions(resume=str(folder / "mine")), {"total_timesteps": 13 * 64}
        run_of(folder, resumed, output=output, env=probes.Ladder(), **more | changes)
        assert said in output.getvalue()
        assert wrapped[-1][1] == changes.get("curriculum", FIRST)
        assert rows_of(folder / "mine")[-1]["ladder/level"] == level
