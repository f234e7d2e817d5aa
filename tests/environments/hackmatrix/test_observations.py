"""`observation=` means one thing: a name is the same numbers wherever it is an argument."""

import re
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from paths import DOCS

import hackmatrix
import hackmatrix.integrations.gymnasium
from hackmatrix.cli.main import main
from hackmatrix.core.errors import UserError
from hackmatrix.environments.hackmatrix import HackMatrixEnv
from hackmatrix.environments.hackmatrix.observations import (
    NUM_PLANES,
    OBSERVATIONS,
    bounds_of,
    observations_of,
    planes,
)
from hackmatrix.game import native
from hackmatrix.game.engine import Game
from hackmatrix.game.foresight.features import features
from hackmatrix.game.rules.board import CELLS
from hackmatrix.game.rules.observation import FEATURE_SIZE, RECORD_SIZE

GAMES, STEPS = 4, 12
INVALID = 27  # HACK is never owned at the start


def first_valid(env: Any, state: Any) -> jax.Array:
    return jnp.argmax(jax.vmap(env.action_mask)(state), axis=1)


def played(env: HackMatrixEnv, steps: int = STEPS) -> tuple[Any, ...]:
    """The first observations of some games, then those of a step in which game 0 ends."""
    streams = jnp.arange(GAMES, dtype=jnp.uint32)
    first, state = jax.vmap(env.reset_game, (0, None))(streams, jnp.uint32(0))
    step = jax.jit(jax.vmap(env.step, (None, 0, 0)))
    for _ in range(steps):
        _, state, *_ = step(None, state, first_valid(env, state))
    actions = first_valid(env, state).at[0].set(INVALID)
    observation, state, _, terminated, _, info = step(None, state, actions)
    assert terminated.tolist() == [True] + [False] * (GAMES - 1)
    return first, observation, info["final_observation"], jax.vmap(env.observe)(state)


@pytest.fixture(scope="module")
def records() -> list[np.ndarray]:
    return [np.asarray(seen) for seen in played(hackmatrix.make())]


@pytest.mark.slow
@pytest.mark.parametrize("name", OBSERVATIONS)
def test_it_is_what_reset_step_and_observe_return(name: str, records: list[np.ndarray]) -> None:
    env = hackmatrix.make(observation=name)
    for seen, record in zip(played(env), records, strict=True):
        assert jax.vmap(env.observation_space.contains)(seen).all()
        np.testing.assert_allclose(seen, observations_of(record, name), atol=1e-6)
    assert (records[1][0] != records[2][0]).any()  # another game has begun


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["compact", "tactical", "planes"])
def test_the_spec_says_so_and_features_are_the_numbers_in_a_row(name: str) -> None:
    env = hackmatrix.make(observation=name)
    assert env.spec.observation == env.spec.info["final_observation"] == env.observation_space
    seen, _ = env.reset(jax.random.key(0))
    read = env.features(seen)
    assert (read.shape, read.dtype) == ((env.feature_size,), jnp.float32)
    if name != "compact":
        assert read.tolist() == seen.ravel().tolist()


def test_a_layout_is_of_the_features_that_are_made_of_compact_observations() -> None:
    env = hackmatrix.make(layout="tactical")
    seen, state = env.reset(jax.random.key(1))
    assert (seen.dtype, seen.shape) == (jnp.uint8, (RECORD_SIZE,))
    shown = hackmatrix.make(observation="tactical").observe(state)
    assert env.features(seen).tolist() == shown.tolist()
    assert hackmatrix.make().layout == "full"


def test_planes_are_the_features_of_each_cell_the_player_and_the_numbers() -> None:
    game = Game.new(3)
    full = np.array(features(game.observation(), "full"), np.float32)
    seen = planes(full)
    assert seen.shape == (6, 6, NUM_PLANES)
    first, extra = 33, FEATURE_SIZE["classic"]
    here = game.state.player.cell
    for cell in range(CELLS):
        row, col = divmod(cell, 6)
        of_cell = [*full[first + 42 * cell :][:42], *full[extra + 10 * cell :][:10]]
        numbers = [*full[:first], *full[extra + 10 * CELLS :]]
        assert seen[row, col].tolist() == [*of_cell, float(cell == here), *numbers]
    np.testing.assert_array_equal(jnp.asarray(seen), planes(jnp.asarray(full)))
    np.testing.assert_array_equal(planes(np.stack([full, full]))[1], seen)


@pytest.mark.parametrize("name", OBSERVATIONS)
def test_they_are_within_bounds_and_the_same_without_the_native_engine(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = np.stack([np.frombuffer(Game.new(n).observation(), np.uint8) for n in range(3)])
    seen, (low, high) = observations_of(records, name), bounds_of(name)
    assert low.shape == high.shape == seen.shape[-1:]
    assert (low <= seen).all()
    assert (seen <= high).all()
    monkeypatch.setattr(native, "available", False)
    np.testing.assert_allclose(observations_of(records, name), seen, atol=1e-6)


def test_wrong_ones_are_told() -> None:
    with pytest.raises(UserError, match="layout goes with observation='compact', not with 'full'"):
        hackmatrix.make(observation="full", layout="classic")
    with pytest.raises(UserError, match="layout must be one of classic, full, tactical, got 'p"):
        hackmatrix.make(layout="planes")
    for make in (hackmatrix.make, lambda **options: gymnasium.make("HackMatrix-v1", **options)):
        with pytest.raises(UserError, match=r"observation must be one of .*tactical.*, got"):
            make(observation="rgb")


def test_every_list_has_every_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["data", "export", "--help"])
    shown = capsys.readouterr().out
    assert all(name in re.findall(r"\w+", shown) for name in OBSERVATIONS)
    for document in ("environment.md", "clients.md"):
        text = (DOCS / document).read_text()
        row = next(line for line in text.splitlines() if line.startswith("| `observation` |"))
        assert all(f"`{name}`" in row for name in OBSERVATIONS), document
