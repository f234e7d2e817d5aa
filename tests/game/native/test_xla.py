"""The native engine inside compiled programs: what it plays there is what it plays in NumPy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.game.native import batch, xla
from hackmatrix.game.native.layout import STATE

GAMES, STEPS = 200, 40
STREAMS, EPISODES = np.arange(GAMES, dtype=np.uint32), np.zeros(GAMES, np.uint32)


def lowest(mask: Any, step: Any) -> Any:
    """The first or another of the first five actions, which is often valid."""
    return ((mask >> step % 3) & 15).astype(np.int32) % 5


def test_reset_and_observe() -> None:
    games = jax.jit(xla.reset)(STREAMS, EPISODES)
    expected = batch.reset(STREAMS, EPISODES)
    assert np.asarray(games.states).tobytes() == expected.states.tobytes()
    observed = jax.jit(xla.observe)(games), games.mask
    for got, wanted in zip(observed, batch.observe(expected), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.thorough
@pytest.mark.parametrize("settings", [{}, {"max_episode_steps": 9, "progress": True}])
def test_a_scan(settings: dict[str, Any]) -> None:
    """A jitted `lax.scan` of steps."""

    def play(streams: Any, episodes: Any) -> Any:
        nothing = jnp.zeros(GAMES, jnp.int32)

        def step(carry: Any, number: Any) -> Any:
            games, *sums = carry
            *carry, made = xla.step(games, *sums, lowest(games.mask, number), **settings)
            return tuple(carry), made

        start = xla.reset(streams, episodes), nothing, nothing
        (games, *_), steps = jax.lax.scan(step, start, jnp.arange(STEPS))
        return games, steps

    games, steps = jax.jit(play)(STREAMS, EPISODES)
    expected = batch.reset(STREAMS, EPISODES)
    _, mask = batch.observe(expected)
    reward = "progress" if settings.pop("progress", False) else "game"
    for number in range(STEPS):
        made = batch.step(expected, lowest(mask, number), reward=reward, **settings)
        for name, got, wanted in zip(made._fields, steps, made, strict=True):
            np.testing.assert_array_equal(got[number], wanted, err_msg=name)
        mask = made.mask
    states = np.asarray(games.states).view(STATE)[:, 0]
    np.testing.assert_array_equal(states["dice"], expected.states["dice"])
    assert made.episode_length.max() > 3


def test_the_games_before_a_step_are_kept() -> None:
    """The step writes into its result in place only where nobody reads the argument any more."""
    games = jax.jit(xla.reset)(STREAMS, EPISODES)
    before = np.asarray(games.states).copy()
    nothing = np.zeros(GAMES, np.int32)
    after = jax.jit(xla.step)(games, nothing, nothing, nothing)
    np.testing.assert_array_equal(games.states, before)
    assert (np.asarray(after.games.states) != before).any()
