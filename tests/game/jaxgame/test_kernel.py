"""The step that is one kernel on TPUs does what `batch.step` does; JAX plays it here."""

import random
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lockstep_starts import new, next_to_the_exit, quiet, rich

from hackmatrix.game.foresight import jax_layout
from hackmatrix.game.foresight import kernel as tactical
from hackmatrix.game.jaxgame import batch, kernel, mosaic, undo
from hackmatrix.game.jaxgame.actions import valid_actions
from hackmatrix.game.jaxgame.bitboard import of_cell
from hackmatrix.game.jaxgame.control_flow import repeat_while
from hackmatrix.game.jaxgame.conversion import state_from_engine
from hackmatrix.game.rules.actions import NUM_ACTIONS

BLOCK = mosaic.GAMES_OF_A_BLOCK
STARTS = (new, rich, quiet, next_to_the_exit)


def games(number: int, different: int) -> Any:
    """Some positions of each kind, repeated, each with dice of its own."""
    rng = random.Random(7)
    states = [state_from_engine(STARTS[i % len(STARTS)](rng)) for i in range(different)]
    repeated = [states[i % different] for i in range(number)]
    batched = jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *repeated)
    dice = batched.dice._replace(episode=jnp.arange(number, dtype=jnp.uint32))
    return replace(batched, dice=dice)


def same(one: Any, other: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, one, other)
    assert jax.tree.map(lambda x: x.dtype, one) == jax.tree.map(lambda x: x.dtype, other)


@jax.jit
def choose(state: Any, key: jax.Array) -> jax.Array:
    """A random valid action of each game, more often a program; rarely any action."""
    any_key, sometimes, key = jax.random.split(key, 3)
    valid = valid_actions(state)[:, None] >> jnp.arange(NUM_ACTIONS, dtype=jnp.uint32) & 1
    likes = jax.random.uniform(key, valid.shape) + 0.3 * (jnp.arange(NUM_ACTIONS) > 4)
    action = jnp.argmax(jnp.where(valid == 1, likes, -1), axis=1)
    anything = jax.random.randint(any_key, action.shape, 0, NUM_ACTIONS)
    return jnp.where(jax.random.bernoulli(sometimes, 0.002, action.shape), anything, action)


@pytest.mark.thorough
def test_games_with_masks_and_bytes_of_a_kernel() -> None:
    state = undo.without_rows(games(2 * BLOCK, different=32))
    rows = jnp.asarray(np.random.default_rng(0).integers(0, 256, (12, 2 * BLOCK)), jnp.uint8)

    def rule(state: Any, words: jax.Array) -> Any:
        return state, (valid_actions(state), mosaic.Bytes(words ^ 0x01020304, 12, np.int8))

    in_kernel = jax.jit(partial(mosaic.in_blocks, rule, interpret=True))
    after, (masks, made) = in_kernel(state, rows)
    same(after, state)
    same(masks, jax.jit(valid_actions)(state))
    flips = np.tile(np.array([4, 3, 2, 1], np.uint8), 3)[:, None]
    same(made, (np.asarray(rows) ^ flips).view(np.int8))


@pytest.mark.thorough
def test_what_mosaic_does_not_take_is_put_otherwise() -> None:
    numbers = jnp.arange(BLOCK, dtype=jnp.int32) % 50 - 3

    def rule(nothing: None, number: jax.Array) -> Any:
        def halve(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            left, is_odd = carry
            return left >> 1, is_odd ^ (left & 1 == 1)

        def goes_on(carry: tuple[jax.Array, jax.Array]) -> jax.Array:
            return carry[0] > 0

        start = jnp.maximum(number, 0), number != number
        _, is_odd = repeat_while(goes_on, halve, start)
        return nothing, (of_cell(number), is_odd, jax.lax.select(is_odd, number > 9, number > 19))

    _, made = jax.jit(partial(mosaic.in_blocks, rule, None, interpret=True))(numbers)
    same(made, jax.jit(partial(rule, None))(numbers)[1])


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("restarts", [True, False])
def test_lockstep_of_4096_games(restarts: bool) -> None:
    state = games(4 * BLOCK, different=256)
    expected = jax.jit(partial(batch.step, restarts=restarts))
    in_kernel = jax.jit(partial(kernel.step, restarts=restarts, interpret=True))
    ended = stages = 0
    for number in range(60):
        key = jax.random.key(number)
        stops = jax.random.bernoulli(key, 0.01, (4 * BLOCK,))
        action = choose(state, key)
        made = expected(state, action, stops)
        same(in_kernel(state, action, stops), made)
        state, done = made
        ended, stages = ended + (done.over != 0).sum(), stages + done.stage_completed.sum()
    assert ended > 2_000
    assert stages > 500


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_tactical_numbers_of_4096_records() -> None:
    state = games(4 * BLOCK, different=1_024)
    records = jax.jit(batch.observations)(state)
    expected = jax.jit(jax_layout.tactical_numbers)(records)
    same(jax.jit(partial(tactical.tactical_numbers, interpret=True))(records), expected)
