"""HackMatrix as a search imagines it, with a trained network as its judge."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.agents.networks.network import Network, encoded
from hackmatrix.agents.networks.policy import Policy
from hackmatrix.agents.search.determinization import imagined
from hackmatrix.agents.search.searchable import check_searchable
from hackmatrix.agents.search.tree import Model, Settings, Tree, search
from hackmatrix.agents.search.undo_history import Memory
from hackmatrix.environments.hackmatrix.env import HackMatrixEnv
from hackmatrix.environments.hackmatrix.env_state import EnvState
from hackmatrix.environments.interface.environment import PyTree
from hackmatrix.game.jaxgame.dice import Dice
from hackmatrix.game.rules.observation import number_of
from hackmatrix.game.rules.training_reward import WIN_WORTH

Array = jax.Array

_WEIGHT = 30.0  # logits
_PATIENCE = 40.0  # turns of a stage


class Searcher(NamedTuple):
    """Searches with a network that was trained for HackMatrix."""

    env: HackMatrixEnv  # the games in its mind, with the reward that the network was trained on
    network: Network
    settings: Settings

    @classmethod
    def of(cls, policy: Policy, simulations: int) -> "Searcher":
        """A searcher with the network of a policy.

        Raises:
            UserError: it plays another game, or its values are not in units of the reward.
        """
        check_searchable(policy)
        _, network = policy.make()
        run: dict[str, Any] = policy.about["config"]
        env = HackMatrixEnv(
            layout=policy.observation,
            auto_reset=False,
            reward=run.get("reward", "game"),
            win_worth=run.get("win_worth", WIN_WORTH),
        )
        return cls(env, network, Settings(simulations, run["gamma"]))

    def search(
        self, params: PyTree, memory: Memory, observations: Array, masks: Array, words: Array
    ) -> tuple[Tree, Array]:
        """The tree of N games, and the valid actions int32[N] that it chooses.

        What it knows of the games are these observations, present and past.

        Args:
            params: the network's.
            memory: what the players remember, these observations included.
            observations: uint8[N, RECORD_SIZE].
            masks: bool[N, 28], the valid actions.
            words: uint32[N], from which hidden facts and dice are drawn.
        """
        return search(self._model(params, memory, words), self.settings, observations, masks)

    def _model(self, params: PyTree, memory: Memory, words: Array) -> Model:
        zero = jnp.zeros(words.shape, jnp.int32)

        def imagine(observations: Array, number: Array) -> EnvState:
            dice = Dice(words, number, jnp.zeros_like(words))
            games = self.env.games.from_state(imagined(observations, memory, dice))
            return EnvState(games, episode_return=zero, episode_length=zero)

        def step(states: EnvState, actions: Array) -> tuple[Array, EnvState, Array, Array]:
            stepped = jax.vmap(self.env.step, (None, 0, 0))(None, states, actions)
            observations, states, rewards, ended, *_ = stepped
            return observations, states, rewards, ended

        def judge(observations: Array) -> tuple[Array, Array]:
            logits, values, _ = self.network(params, encoded(self.network, observations), ())
            return logits, values

        return Model(imagine, step, jax.vmap(self.env.action_mask), judge, weight_of_returns)


def weight_of_returns(observations: Array) -> Array:
    """float32[N]: logits that a reward of 1 is worth to a search from these observations.

    The network's value is wrong in places where the network itself never goes. Where it promises
    more of staying than of leaving a stage, a search that believed it would stay for ever. So the
    longer a stage lasts, the less returns are worth beside the network's own choice.
    """
    turn = number_of(observations, "turn")
    return _WEIGHT * jnp.minimum(1, _PATIENCE / jnp.maximum(turn, 1))
