"""The native engine inside compiled programs: what it plays there is what it plays in NumPy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.game.native import batch, xla
from hackmatrix.game.native.layout import ENV_STATE

GAMES, STEPS = 200, 40
STREAMS, EPISODES = np.arange(GAMES, dtype=np.uint32), np.zeros(GAMES, np.uint32)


def lowest(mask: Any, step: Any) -> Any:
    """The first or another of the first five actions, which is often valid."""
    return ((mask >> step % 3) & 15).astype(np.int32) % 5


def test_reset_and_observe() -> None:
    games = jax.jit(xla.reset)(STREAMS, EPISODES)
    expected = batch.reset(STREAMS, EPISODES)
    assert np.asarray(games.states).tobytes() == expected.states.tobytes()
    for got, wanted in zip(jax.jit(xla.observe)(games), batch.observe(expected), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("settings", [{}, {"max_episode_steps": 9, "reward": "progress"}])
def test_a_scan(settings: dict[str, Any]) -> None:
    """A jitted `lax.scan` of steps, on two threads."""

    def play(streams: Any, episodes: Any) -> Any:
        games = xla.reset(streams, episodes)
        _, mask = xla.observe(games)

        def step(carry: Any, number: Any) -> Any:
            games, mask = carry
            games, made = xla.step(games, lowest(mask, number), threads=2, **settings)
            return (games, made.mask), made

        (games, _), steps = jax.lax.scan(step, (games, mask), jnp.arange(STEPS))
        return games, steps

    games, steps = jax.jit(play)(STREAMS, EPISODES)
    expected = batch.reset(STREAMS, EPISODES)
    _, mask = batch.observe(expected)
    for number in range(STEPS):
        made = batch.step(expected, lowest(mask, number), **settings)
        for name, got, wanted in zip(made._fields, steps, made, strict=True):
            np.testing.assert_array_equal(got[number], wanted, err_msg=name)
        mask = made.mask
    states = np.asarray(games.states).view(ENV_STATE)[:, 0]
    np.testing.assert_array_equal(states["game"]["dice"], expected.states["game"]["dice"])
    assert made.episode_length.max() > 3


def test_the_games_before_a_step_are_kept() -> None:
    """The step writes into its result in place only where nobody reads the argument any more."""
    games = jax.jit(xla.reset)(STREAMS, EPISODES)
    before = np.asarray(games.states).copy()
    after, _ = jax.jit(xla.step)(games, np.zeros(GAMES, np.int32))
    np.testing.assert_array_equal(games.states, before)
    assert (np.asarray(after.states) != before).any()
