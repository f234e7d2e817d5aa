"""The trainer: many updates in one compiled call, on a state that holds all that a run is."""

import dataclasses

import jax
import jax.numpy as jnp
import optax
from flax import struct

from hackmatrix.agents.agent import Agent
from hackmatrix.agents.environment import Environment, PyTree
from hackmatrix.agents.networks import ActorCritic
from hackmatrix.training import measures, ppo
from hackmatrix.training.config import TrainConfig
from hackmatrix.training.keys import Purpose, key_for
from hackmatrix.training.reward_scale import RewardScale
from hackmatrix.training.rollout import Games, new_games, play

Array = jax.Array


class TrainState(struct.PyTreeNode):
    """All that continues from one update to the next. Random keys follow from seed and update."""

    seed: Array  # uint32[]
    update: Array  # int32[], updates made
    params: PyTree
    opt_state: optax.OptState
    reward_scale: RewardScale
    games: Games
    sums: measures.Measures  # since they were last taken


class Trainer:
    """PPO on an environment: `init` makes a state, `run` advances it by some updates.

    The number of updates of one call never changes results: the compiled loop is the same for all.
    """

    def __init__(self, env: Environment, config: TrainConfig) -> None:
        network = ActorCritic(
            env.num_actions, config.hidden_dim, config.num_layers, dtype=jnp.dtype(config.dtype)
        )
        self.config = config
        self.agent = Agent(env, network)
        self._env = env
        self._init = jax.jit(self._new_state)
        self._run = jax.jit(self._updates, donate_argnums=0)

    def init(self, seed: int) -> TrainState:
        """The state before the first update."""
        return self._init(jnp.uint32(seed))

    def run(self, state: TrainState, num_updates: int) -> TrainState:
        """Starts `num_updates` updates and returns at once; `state` is used up (donated)."""
        return self._run(state, jnp.int32(num_updates))

    def take_sums(self, state: TrainState) -> tuple[TrainState, measures.Measures]:
        """The sums of metrics so far, and the state with sums of nothing."""
        return dataclasses.replace(state, sums=measures.nothing_measured()), state.sums

    def _new_state(self, seed: Array) -> TrainState:
        params = self.agent.init(key_for(seed, Purpose.PARAMS))
        return TrainState(
            seed=seed,
            update=jnp.int32(0),
            params=params,
            opt_state=ppo.optimizer(self.config).init(params),
            reward_scale=RewardScale.create(),
            games=new_games(self._env, seed, self.config.num_envs),
            sums=measures.nothing_measured(),
        )

    def _updates(self, state: TrainState, num_updates: Array) -> TrainState:
        result: TrainState = jax.lax.fori_loop(0, num_updates, lambda _, s: self._update(s), state)
        return result

    def _update(self, state: TrainState) -> TrainState:
        config = self.config
        games, rollout = play(
            self._env,
            self.agent,
            state.params,
            state.games,
            state.seed,
            state.update,
            num_steps=config.num_steps,
            gamma=config.gamma,
        )
        reward_scale = state.reward_scale.updated(rollout.sum_of_squares, config.batch_size)
        params, opt_state, scalars = ppo.learn(
            state.params,
            state.opt_state,
            rollout,
            reward_scale.deviation,
            state.seed,
            state.update,
            agent=self.agent,
            config=config,
        )
        return TrainState(
            seed=state.seed,
            update=state.update + 1,
            params=params,
            opt_state=opt_state,
            reward_scale=reward_scale,
            games=games,
            sums=measures.added(state.sums, rollout.measures, measures.of_update(scalars)),
        )
