"""Games as a search imagines them, with a network as its judge."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.agents.networks.network import Network, encode_observations
from hackmatrix.agents.networks.policy import Policy
from hackmatrix.agents.search.rollouts import Model, SearchResult, SearchSettings, search
from hackmatrix.agents.search.searchable import check_searchable
from hackmatrix.environments.hackmatrix.env import HackMatrixEnv
from hackmatrix.environments.interface.environment import Imagination, PyTree
from hackmatrix.game.jaxgame.dice import draw
from hackmatrix.game.rules.chance import Site
from hackmatrix.game.rules.observation import number_of
from hackmatrix.game.rules.training_reward import PROGRAM_WORTH, WIN_WORTH

Array = jax.Array

_WEIGHT = 100.0  # logits that a stage is worth
_STAGES_OF_A_GAME = 13.0  # a win's worth in stages: 8 of them, and 5 for the win itself
_PATIENCE = 40.0  # turns of a stage


class Searcher(NamedTuple):
    """Searches with a network on games made up from what their players have seen."""

    imagination: Imagination  # with the reward that the network was trained on
    network: Network
    settings: SearchSettings
    weight: Callable[[PyTree], Array]  # see `Model`

    @classmethod
    def of(cls, policy: Policy, simulations: int) -> "Searcher":
        """A searcher of HackMatrix with the network of a policy.

        Raises:
            UserError: it plays another game, or its values are not in units of the reward.
        """
        check_searchable(policy)
        _, network = policy.make()
        run: dict[str, Any] = policy.about["config"]
        reward = run.get("reward", "game")
        env = HackMatrixEnv(
            layout=policy.observation,
            reward=reward,
            win_worth=run.get("win_worth", WIN_WORTH),
            program_worth=run.get("program_worth", PROGRAM_WORTH),
        )
        settings = SearchSettings.of(simulations, run["gamma"])
        return cls(env.imagination(), network, settings, partial(weight_of_returns, reward))

    def search(
        self, params: PyTree, memory: PyTree, observations: PyTree, masks: Array, seeds: Array
    ) -> tuple[SearchResult, Array]:
        """What it finds of N games, and the valid actions int32[N] that it chooses.

        What it knows of the games are these observations, present and past.

        Args:
            params: the network's.
            memory: what the players remember, these observations included.
            observations: what they see.
            masks: bool[N, A], the valid actions.
            seeds: uint32[N], from which hidden facts and dice are drawn.
        """
        model = self._model(params, memory, observations, seeds)
        return search(model, self.settings, observations, masks)

    def _model(self, params: PyTree, memory: PyTree, observations: PyTree, seeds: Array) -> Model:
        def imagine(which: Array, worlds: Array) -> PyTree:
            return self.imagination.imagine(memory, observations, which, seeds, worlds)

        def uniform(which: Array, worlds: Array, move: Array) -> Array:
            # A hash of all three, at a site that is no draw of the game.
            drawn = draw(seeds[which], worlds, move.astype(jnp.uint32), len(Site), 0)
            return (drawn >> 9).astype(jnp.float32) / (1 << 23)

        def judge(observations: PyTree) -> tuple[Array, Array]:
            logits, values, _ = self.network(
                params, encode_observations(self.network, observations), ()
            )
            return logits, values

        own = self.imagination
        return Model(imagine, uniform, own.step, own.valid, judge, self.weight)


def weight_of_returns(reward: str, observations: Array) -> Array:
    """float32[N]: logits that 1 of this reward is worth to a search from these observations.

    Of rewards that pay for the outcome alone, 1 is a whole game. The longer a stage lasts, the less
    returns are worth beside the network's own choice: otherwise a search that believes the best to
    be still to come would stay for ever.
    """
    turn = number_of(observations, "turn")
    stages = _STAGES_OF_A_GAME if reward in ("win", "score") else 1.0
    return _WEIGHT * stages * jnp.minimum(1, _PATIENCE / jnp.maximum(turn, 1))
