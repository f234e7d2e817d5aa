"""Lessons: positions of games under way, and what a search says about them.

In half of the games the search's action is played, in the others one that the network samples: so
it is also taught where its own mistakes lead. Neither sees more than a player sees.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.agents.networks import distribution
from hackmatrix.agents.networks.network import encoded
from hackmatrix.agents.search.model import Searcher
from hackmatrix.agents.search.rollouts import improved
from hackmatrix.agents.search.undo_history import Memory
from hackmatrix.environments.hackmatrix.env import HackMatrixEnv
from hackmatrix.environments.interface.environment import PyTree
from hackmatrix.learning.ppo.keys import Purpose, keys_for

Array = jax.Array


class Lessons(NamedTuple):
    """B positions with a teacher's opinion."""

    observations: PyTree  # as the network reads them
    mask: Array  # uint32[B], the valid actions
    policy: Array  # float16[B, A], the teacher's probabilities
    value: Array  # float32[B], the return that the teacher expects of these probabilities


class Games(NamedTuple):
    """N games under way."""

    time: Array  # int32[], actions taken in each
    env_state: PyTree
    observations: PyTree
    memory: Memory


class Lecturer:
    """Plays games of training streams and has a search judge their positions; compiled once."""

    def __init__(self, searcher: Searcher, games: int, weight: float, seed: int) -> None:
        """Prepares this number of games; `weight` logits are worth a reward of 1 in lessons."""
        self._searcher = searcher
        self._weight = weight
        imagined = searcher.env
        self._env = HackMatrixEnv(
            layout=imagined.layout, reward=imagined.reward, win_worth=imagined.win_worth
        )
        self._numbers = jnp.arange(games)
        self._seed = seed
        self._give = jax.jit(self._give_some, static_argnums=2, donate_argnums=1)

    def begin(self) -> Games:
        """New games."""
        keys = keys_for(self._seed, Purpose.RESET, each=self._numbers)
        observations, env_state = jax.jit(jax.vmap(self._env.reset))(keys)
        memory = Memory.empty(self._numbers.size)
        return Games(jnp.int32(0), env_state, observations, memory)

    def give(self, params: PyTree, games: Games, moves: int) -> tuple[Games, Lessons]:
        """Plays some moves in each game; donates `games`.

        Returns:
            The games, and lessons of moves x N positions.
        """
        games, lessons = self._give(params, games, moves)
        return games, jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), lessons)

    def _give_some(self, params: PyTree, games: Games, moves: int) -> tuple[Games, Lessons]:
        def move(games: Games, _: None) -> tuple[Games, Lessons]:
            return self._move(params, games)

        return jax.lax.scan(move, games, None, length=moves)

    def _move(self, params: PyTree, games: Games) -> tuple[Games, Lessons]:
        searcher, seen = self._searcher, games.observations
        memory = games.memory.after(seen)
        masks = jax.vmap(self._env.action_mask)(games.env_state)
        keys = keys_for(self._seed, Purpose.ACTION, games.time, each=self._numbers)
        words, uniforms = jax.vmap(jax.random.bits)(keys), jax.vmap(jax.random.uniform)(keys)
        found, choice = searcher.search(params, memory, seen, masks, words)
        own = distribution.log_probabilities(found.logits, masks)
        sampled = distribution.sample(own, masks, uniforms)
        actions = jnp.where(self._numbers % 2 == 0, choice, sampled)
        keys = keys_for(self._seed, Purpose.ENVIRONMENT, games.time, each=self._numbers)
        stepped: Any = jax.vmap(self._env.step)(keys, games.env_state, actions)
        policy, value = improved(found, masks, self._weight)
        lesson = Lessons(
            encoded(searcher.network, seen),
            distribution.pack_mask(masks),
            policy.astype(jnp.float16),
            value,
        )
        return Games(games.time + 1, stepped[1], stepped[0], memory), lesson
