"""Games that move by index: on accelerators as rows of one matrix, on CPUs array by array."""

import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lockstep_starts import rich
from platforms import as_on_accelerators

from hackmatrix.game.engine.game import Game
from hackmatrix.game.jaxgame import batch
from hackmatrix.game.jaxgame.conversion import state_from_engine

pytestmark = pytest.mark.thorough

GAMES = 12


def numbers(rng: np.random.Generator, games: int) -> dict[str, jax.Array]:
    return {
        "flag": jnp.asarray(rng.random(games) < 0.5),
        "signed": jnp.asarray(rng.integers(-(2**31), 2**31, games), jnp.int32),
        "bits": jnp.asarray(rng.integers(0, 2**32, games), jnp.uint32),
        "byte": jnp.asarray(rng.integers(0, 256, games), jnp.uint8),
        "real": jnp.asarray(rng.normal(size=games), jnp.float32),
        "key": jax.random.split(jax.random.key(games), games),
        "half": jnp.asarray(rng.normal(size=games), jnp.bfloat16),
        "record": jnp.asarray(rng.integers(0, 256, (games, 5)), jnp.uint8),
    }


def plain(x: jax.Array) -> jax.Array:
    return jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x


def same(one: Any, other: Any) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(plain(a), plain(b)), one, other)
    assert jax.tree.map(lambda x: x.dtype, one) == jax.tree.map(lambda x: x.dtype, other)


def test_rows_move_what_arrays_do() -> None:
    """A place beyond the games, of which there may be several, is none to put anything in."""
    chosen, rng = [3, 0, 11, 12, 12], np.random.default_rng(1)
    games, part = numbers(rng, GAMES), numbers(rng, len(chosen))
    places = jnp.array(chosen)

    def both() -> Any:
        return batch._gather(games, places), batch._scatter(games, places, part)

    expected = both()
    clipped = np.minimum(chosen, GAMES - 1)
    same(expected[0], jax.tree.map(lambda x: x[clipped], games))
    with as_on_accelerators():
        same(both(), expected)


def test_games_without_scalars_move_array_by_array() -> None:
    games = {"record": jnp.arange(24, dtype=jnp.uint8).reshape(12, 2)}
    with as_on_accelerators():
        got = batch._gather(games, jnp.array([2, 12]))
    same(got, {"record": games["record"][jnp.array([2, 11])]})


@pytest.mark.slow
def test_steps_of_accelerators_are_those_of_cpus() -> None:
    rng = random.Random(5)
    games = [Game(rich(rng)) for _ in range(64)]
    actions = jnp.array([rng.choice(game.valid_actions()) for game in games], jnp.int32)
    states = [state_from_engine(game.state) for game in games]
    state = jax.tree.map(lambda *x: jnp.stack(x), *states)

    def after() -> Any:
        return jax.jit(lambda state: batch.step(state, actions, None, restarts=True))(state)

    expected = after()
    with as_on_accelerators():
        same(after(), expected)
