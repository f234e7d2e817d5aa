"""Analyses of one position, by a network and a search with it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.agents.networks import distribution
from hackmatrix.agents.networks.policy import Policy
from hackmatrix.agents.search.model import Searcher
from hackmatrix.agents.search.rollouts import NONE, SearchResult
from hackmatrix.environments.hackmatrix.imagination import UndoMemory
from hackmatrix.game.engine.game import Game
from hackmatrix.game.engine.observation import observe_saved


class SearchedAction(NamedTuple):
    """A valid action, as the network and the search see it."""

    action: int
    prior: float  # the network's probability
    visits: int  # simulations that began with it
    value: float | None  # their mean return; None if there was none
    line: tuple[int, ...]  # how a quarter of them or more went on, from this action on


class Analysis(NamedTuple):
    """Opinions on a position."""

    value: float  # the return that the network expects
    choices: tuple[SearchedAction, ...]  # the network's favourite first
    search: int  # the action that the search chooses

    @property
    def network(self) -> int:
        """The action that the network finds most probable."""
        return self.choices[0].action


class Analyst:
    """Analyses positions, compiled once."""

    def __init__(self, policy: Policy, simulations: int) -> None:
        """Prepares the search.

        Raises:
            UserError: the policy's network can't be searched with.
        """
        self._params = policy.params
        searcher = Searcher.of(policy, simulations)
        # Who asks about one position wants to see more than the action that the network is sure of.
        self._searcher = searcher._replace(settings=searcher.settings._replace(sure=1.0))
        self._search = jax.jit(self._search_one)

    def analyse(self, game: Game, seed: int = 0) -> Analysis:
        """Searches a running game; what is made up of it depends on the seed."""
        valid = game.valid_actions()
        mask = [action in valid for action in range(self._searcher.network.num_actions)]
        return self.analyse_record(game.observation(), observe_saved(game.state), mask, seed)

    def analyse_record(
        self, record: bytes, saved: Sequence[bytes], valid: Sequence[bool], seed: int = 0
    ) -> Analysis:
        """Searches what a player sees and remembers.

        Args:
            record: the observation (`game/rules/observation.py`).
            saved: the observations to which UNDO would lead back, oldest first.
            valid: the valid actions.
            seed: what is made up depends on it.
        """
        seen, memory = jnp.frombuffer(record, jnp.uint8), UndoMemory.of_records(saved)
        mask = jnp.asarray(valid, bool)
        results = self._search(self._params, memory, seen, mask, jnp.uint32(seed))
        result, priors, action = jax.device_get(results)
        choices = [_choice(result, int(each), priors) for each in np.flatnonzero(valid)]
        choices.sort(key=lambda choice: -choice.prior)
        return Analysis(float(result.values), tuple(choices), int(action))

    def _search_one(
        self, params: Any, memory: UndoMemory, record: Any, valid: Any, seed: Any
    ) -> Any:
        searcher, masks = self._searcher, valid[None]
        found, action = searcher.search(params, memory, record[None], masks, seed[None])
        priors = jnp.exp(distribution.log_probabilities(found.logits, masks))
        return jax.tree.map(lambda x: x[0], (found, priors, action))


def _choice(result: SearchResult, action: int, priors: Any) -> SearchedAction:
    visits = int(result.visits[action])
    value = float(result.totals[action]) / visits if visits else None
    lines = result.lines[result.lines[:, 0] == action]
    return SearchedAction(
        action, float(priors[action]), visits, value, (action, *sequel(lines[:, 1:]))
    )


def sequel(lines: Any) -> list[int]:
    """Action by action what most do of the lines int[L, M], as long as a quarter of all agrees."""
    followed, fewest = list[int](), len(lines) / 4
    while lines.size:
        actions, counts = np.unique(lines[:, 0], return_counts=True)
        action = int(actions[counts.argmax()])
        if action == NONE or counts.max() < fewest:
            break
        followed.append(action)
        lines = lines[lines[:, 0] == action, 1:]
    return followed
