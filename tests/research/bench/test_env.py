"""`hackmatrix bench env`: what it prints is what it measured, and what it measured is the game."""

import json
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.cli.main import main
from hackmatrix.core.devices.mesh import on_devices
from hackmatrix.game.rules.observation import RECORD_SIZE
from hackmatrix.research.bench.env import EnvBench
from hackmatrix.research.bench.replayed_games import Record, ReplayError

pytestmark = pytest.mark.thorough

HARDER = ["--num-envs", "16", "--num-steps", "16", "--play", "harder", "--observation", "features"]


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


def test_env_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "env", *HARDER, "--repeats", "3", "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    figures = json.loads(out)
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


PLACES = ((3, 0), (11, 15))  # of a walker and of a rich game


@pytest.mark.parametrize(
    ("field", "place"), [(name, PLACES[i % 2]) for i, name in enumerate(Record._fields)]
)
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
