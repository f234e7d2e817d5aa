"""The JAX engine as rule cases and lockstep play it: one compiled batch of the environment.

A step of the environment takes longest to compile of all, so everything that only plays games does
it in this batch, in which a game that has ended stays as it is. The reward is `progress`; what the
game pays is in its parts.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import hackmatrix
from hackmatrix.environments.hackmatrix import EnvState
from hackmatrix.environments.interface.spaces import StepSpec
from hackmatrix.game.engine.state import State
from hackmatrix.game.jaxgame.conversion import state_from_engine
from hackmatrix.game.rules.rewards import UNIT

GAMES = 128
ENV = hackmatrix.make(auto_reset=False, reward="progress", engine="jax")

_step = jax.jit(jax.vmap(ENV.step, (None, 0, 0)))
masks = jax.jit(jax.vmap(ENV.action_bits))
observations = jax.jit(jax.vmap(ENV.observe))


def begin(states: list[State]) -> EnvState:
    """Games from the Python engine's states; too few of them are played several times."""
    repeated = np.arange(GAMES) % len(states)
    made = (state_from_engine(state) for state in states)
    batched = jax.tree.map(lambda *leaves: np.stack(leaves)[repeated], *made)
    nothing = jnp.zeros(GAMES, jnp.int32)
    return EnvState(batched, episode_return=nothing, episode_length=nothing)


def step(state: EnvState, actions: np.ndarray) -> StepSpec:
    """Takes an action in each game."""
    return StepSpec(*_step(None, state, jnp.asarray(actions, jnp.int32)))


def parts_of(info: dict[str, Any]) -> np.ndarray:
    """int32[GAMES, parts]: the parts of the rewards in units of 0.005."""
    parts = np.rint(np.asarray(info["reward_parts"]) / np.float32(UNIT))
    np.testing.assert_array_equal(parts * np.float32(UNIT), info["reward_parts"])
    return parts.astype(np.int32)
