"""HackMatrix as a search imagines it, with a trained network as its judge."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.agents.networks.network import Network, encoded
from hackmatrix.agents.networks.policy import Policy
from hackmatrix.agents.search.rollouts import Found, Model, Settings, search
from hackmatrix.agents.search.searchable import check_searchable
from hackmatrix.agents.search.undo_history import Memory
from hackmatrix.environments.hackmatrix.env import HackMatrixEnv
from hackmatrix.environments.hackmatrix.env_state import EnvState
from hackmatrix.environments.interface.environment import PyTree
from hackmatrix.game.jaxgame.dice import draw
from hackmatrix.game.rules.chance import Site
from hackmatrix.game.rules.observation import number_of
from hackmatrix.game.rules.training_reward import WIN_WORTH

Array = jax.Array


# Moves of a simulation: the value after more of them is a better one, but it takes more simulations
# to read it through the luck of all these moves.
_MOST_MOVES = 24
_WEIGHT = 100.0  # logits that a stage is worth
_STAGES_OF_A_GAME = 13.0  # a win's worth in stages: 8 of them, and 5 for the win itself
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
        moves = min(max(1, simulations // 4), _MOST_MOVES)
        return cls(env, network, Settings(simulations, run["gamma"], moves))

    def search(
        self, params: PyTree, memory: Memory, observations: Array, masks: Array, words: Array
    ) -> tuple[Found, Array]:
        """What it finds of N games, and the valid actions int32[N] that it chooses.

        What it knows of the games are these observations, present and past.

        Args:
            params: the network's.
            memory: what the players remember, these observations included.
            observations: uint8[N, RECORD_SIZE].
            masks: bool[N, 28], the valid actions.
            words: uint32[N], from which hidden facts and dice are drawn.
        """
        model = self._model(params, memory, observations, words)
        return search(model, self.settings, observations, masks)

    def _model(self, params: PyTree, memory: Memory, seen: Array, words: Array) -> Model:
        def imagine(which: Array, worlds: Array) -> EnvState:
            known = seen[which], memory.records[which], memory.saved[which]
            zero = jnp.zeros(which.shape, jnp.int32)
            games = self.env.games.imagined(*known, words[which], worlds)
            return EnvState(games, episode_return=zero, episode_length=zero)

        def uniform(which: Array, worlds: Array, move: Array) -> Array:
            # The dice of the made-up game, thrown for what is no draw of the game.
            drawn = draw(words[which], worlds, move.astype(jnp.uint32), len(Site), 0)
            return (drawn >> 9).astype(jnp.float32) / (1 << 23)

        def step(states: EnvState, actions: Array) -> tuple[Array, EnvState, Array, Array]:
            stepped = jax.vmap(self.env.step, (None, 0, 0))(None, states, actions)
            observations, states, rewards, ended, *_ = stepped
            return observations, states, rewards, ended

        def judge(observations: Array) -> tuple[Array, Array]:
            logits, values, _ = self.network(params, encoded(self.network, observations), ())
            return logits, values

        return Model(
            imagine,
            uniform,
            step,
            jax.vmap(self.env.action_mask),
            judge,
            partial(weight_of_returns, self.env.reward),
        )


def weight_of_returns(reward: str, observations: Array) -> Array:
    """float32[N]: logits that 1 of this reward is worth to a search from these observations.

    Of rewards that pay for the outcome alone, 1 is a whole game. The longer a stage lasts, the less
    returns are worth beside the network's own choice: otherwise a search that believes the best to
    be still to come would stay for ever.
    """
    turn = number_of(observations, "turn")
    stages = _STAGES_OF_A_GAME if reward in ("win", "score") else 1.0
    return _WEIGHT * stages * jnp.minimum(1, _PATIENCE / jnp.maximum(turn, 1))
