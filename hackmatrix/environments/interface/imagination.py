"""The interface of made-up games, which a search plays in place of the true ones."""

from typing import Protocol

import jax

from hackmatrix.environments.interface.environment import PyTree

Array = jax.Array


class Imagination(Protocol):
    """Games made up from what their players have seen, and from nothing else.

    So a search through them can't tell what is hidden: it is given observations, never a state.
    """

    def begin(self, num_games: int) -> PyTree:
        """The memory of N players who have seen nothing yet; every array has the leading axis N."""

    def after(self, memory: PyTree, observations: PyTree) -> PyTree:
        """The memory after N more observations, which may be the first ones of new games."""

    def imagine(
        self, memory: PyTree, observations: PyTree, which: Array, seeds: Array, worlds: Array
    ) -> PyTree:
        """The states of L made-up games that look like some of N true ones.

        Args:
            memory: what the players remember, `observations` included.
            observations: of the N games.
            which: int32[L], the true game that each looks like.
            seeds: uint32[N], random; what is hidden in a made-up game, and its chance later on,
                depend on the word of the true one and on the world alone.
            worlds: uint32[L].
        """

    def step(self, states: PyTree, actions: Array) -> tuple[PyTree, PyTree, Array, Array]:
        """Takes actions int32[L]: observations, states, rewards float32[L], ended bool[L].

        A game that has ended stays so, with reward 0.
        """

    def valid(self, states: PyTree) -> Array:
        """bool[L, A], the valid actions."""
