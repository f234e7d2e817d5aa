"""Made-up games of an environment whose observation says all that the future depends on."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from hackmatrix.core.jax_defaults import with_jax_defaults
from hackmatrix.environments.interface.environment import Environment, PyTree
from hackmatrix.environments.wrappers import NoAutoReset, OneEpisode

Array = jax.Array
State = tuple[OneEpisode, Array]  # of the environment, and the key of its next step


@with_jax_defaults
class SeenGames:
    """Games as one observation shows them, with their own dice; see `Imagination`."""

    def __init__(self, env: Environment, state_of: Callable[[PyTree], PyTree]) -> None:
        """Makes up games of `env`; `state_of` makes a running game's state of its observation."""
        self._env = NoAutoReset(env)
        self._state_of = state_of

    def begin(self, num_games: int) -> PyTree:
        """Nothing needs to be remembered."""
        del num_games
        return ()

    def after(self, memory: PyTree, observations: PyTree) -> PyTree:
        """Nothing needs to be remembered."""
        del observations
        return memory

    def imagine(
        self, memory: PyTree, observations: PyTree, which: Array, seeds: Array, worlds: Array
    ) -> State:
        """States of L games that look alike, each with its own key."""
        del memory

        def game(observation: PyTree, word: Array, world: Array) -> State:
            _, state = self._env.wrap_reset(observation, self._state_of(observation))
            return state, jax.random.fold_in(jax.random.key(word), world)

        seen = jax.tree.map(lambda x: x[which], observations)
        games: State = jax.vmap(game)(seen, seeds[which], worlds)
        return games

    def step(self, states: State, actions: Array) -> tuple[PyTree, State, Array, Array]:
        """Takes actions int32[L]."""
        games, keys = states
        now, later = jnp.moveaxis(jax.vmap(jax.random.split)(keys), 1, 0)
        stepped = jax.vmap(self._env.step)(now, games, actions)
        observations, games, rewards, terminated, *_ = stepped
        return observations, (games, later), rewards, terminated

    def valid(self, states: State) -> Array:
        """bool[L, A], the valid actions."""
        masks: Array = jax.vmap(self._env.action_mask)(states[0])
        return masks
