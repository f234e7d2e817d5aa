"""Random play in the environment, in JAX and in the native engine, compared after every step."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import hackmatrix
from hackmatrix.game.native import batch
from hackmatrix.game.native.__main__ import random_actions


def play(games: int, steps: int, exact_rewards: bool = True, **settings: Any) -> int:
    """Plays the same games in both; returns how many have ended.

    Args:
        games: how many.
        steps: actions in each game.
        exact_rewards: whether the rewards are equal to the last bit.
        settings: of the environment.
    """
    env = hackmatrix.make(**settings)
    reset, step = jax.jit(jax.vmap(env.reset_game)), jax.jit(jax.vmap(partial(env.step, None)))
    masks, rng = jax.jit(jax.vmap(env.action_bits)), np.random.default_rng(0)
    streams, episodes = np.arange(games, dtype=np.uint32), np.zeros(games, np.uint32)
    observation, state = reset(jnp.asarray(streams), jnp.asarray(episodes))
    played, ended = batch.reset(streams, episodes), 0
    native_observation, mask = batch.observe(played)
    np.testing.assert_array_equal(native_observation, observation)
    out = batch.empty_step(games)
    for _ in range(steps):
        actions = random_actions(mask, rng)
        observation, state, reward, terminated, truncated, info = step(state, jnp.asarray(actions))
        batch.step(played, actions, out=out, **settings)
        found = {
            "observation": observation,
            "mask": masks(state),
            "reward": reward,
            "terminated": terminated,
            "truncated": truncated,
            **info,
        }
        assert set(found) == set(out._fields)
        for name, wanted in found.items():
            got = getattr(out, name)
            if name == "reward" and not exact_rewards:
                np.testing.assert_allclose(got, wanted, atol=1e-6)
            else:
                np.testing.assert_array_equal(got, np.asarray(wanted), err_msg=name)
                assert got.dtype == wanted.dtype, name
        mask = out.mask
        ended += int(out.episode_done.sum())
    return ended
