"""`hackmatrix bench env`: what it prints is what it measured, and what it measured is the game."""

import json
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from suites import first_quickly

from hackmatrix.cli.main import main
from hackmatrix.core.devices.mesh import on_devices
from hackmatrix.game.engine import Game
from hackmatrix.game.rules.observation import RECORD_SIZE
from hackmatrix.research.bench.env import EnvBench, crowded_position
from hackmatrix.research.bench.replayed_games import Record, ReplayError

pytestmark = pytest.mark.thorough

SMALL = ["--num-envs", "16", "--num-steps", "16"]
HARDER = [*SMALL, "--play", "harder", "--observation", "features"]


@pytest.fixture(scope="module", autouse=True)
def shared_programs() -> Iterator[None]:
    """Benches with the same settings share what is compiled; `tests/commands` replaces nothing."""
    programs: dict[Any, Any] = {}

    def shared(function: Any, *specs: Any, **options: Any) -> Any:
        made = function.__self__
        key = (made.num_envs, made.num_steps, made.play, made.observation, len(made._positions))
        program = on_devices(function, *specs, **options)
        return programs.setdefault((function.__name__, *key), program)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("hackmatrix.research.bench.env.on_devices", shared)
        yield


def figures_of(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert main(["bench", *argv, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


@pytest.mark.parametrize("flags", [pytest.param(SMALL, marks=pytest.mark.slow), HARDER])
def test_env_as_json(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    figures = figures_of(capsys, "env", *flags, "--repeats", "3")
    assert (figures["num_envs"], figures["repeats"]) == (16, 3)
    assert figures["min"] <= figures["median"] <= figures["max"]
    assert figures["steps_per_second"] == figures["median"] > 0
    assert figures["replayed_steps"] == 16 * 16 * 4  # the run that compiles is replayed too
    assert {"device", "versions", "mean_episode_length", "stages_per_step"} <= set(figures)


@pytest.fixture(scope="module")
def harder() -> EnvBench:
    """Two timed runs of harder play with features."""
    bench = EnvBench(num_envs=16, num_steps=16, play="harder", observation="features")
    bench.repeat()
    return bench


def test_harder_play_is_harder(harder: EnvBench) -> None:
    speed = harder.result()
    assert speed.totals.steps == 16 * 16 * 2
    assert speed.totals.enemies / speed.totals.steps > 3
    assert speed.totals.stage / speed.totals.steps > 2
    assert speed.totals.stages > 0


@pytest.mark.parametrize("field", first_quickly(Record._fields, 2))
@pytest.mark.parametrize("place", [(3, 0), (11, 15)], ids=["walker", "rich game"])
def test_any_difference_from_the_python_engine_is_an_error(
    harder: EnvBench, monkeypatch: pytest.MonkeyPatch, field: str, place: tuple[int, int]
) -> None:
    records = [Record(*map(np.array, record)) for record in harder._records]
    changed = getattr(records[1], field)
    changed[place] = ~changed[place] if changed.dtype == bool else changed[place] + 1
    monkeypatch.setattr(harder, "_records", records)
    with pytest.raises((ReplayError, ValueError)):  # ValueError: there is no such action
        harder.result()


def test_wrong_features_are_an_error(harder: EnvBench, monkeypatch: pytest.MonkeyPatch) -> None:
    carry = harder._carry
    monkeypatch.setattr(harder, "_carry", carry._replace(features=carry.features + 0.01))
    with pytest.raises(ReplayError, match="features"):
        harder.result()


def test_the_sums_cover_all_that_a_step_makes(harder: EnvBench) -> None:
    run = jax.eval_shape(harder._timed, harder._carry, harder._starts, jnp.uint32(0))
    shapes = {name: leaf.shape for name, leaf in run.sums.items()}
    env = harder._env
    assert shapes["observation"] == (RECORD_SIZE // 4,)
    assert shapes["features"] == (env.feature_size,)
    assert shapes["mask"] == (env.num_actions,)
    assert shapes["parts"] == (15,)


def test_a_difference_is_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Game, "observation", lambda _: bytes(RECORD_SIZE))
    assert main(["bench", "env", *HARDER, "--repeats", "1"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "observation" in err


@pytest.mark.slow
def test_positions_with_enemies_are_put_back() -> None:
    bench = EnvBench(16, 16, positions=[crowded_position(number, 5, 12) for number in range(3)])
    seen = bench.result().totals
    assert seen.stage / seen.steps > 3
    assert seen.enemies / seen.steps > 5
