"""The trainer: many updates in one compiled call, on a state that holds all that a run is."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import struct
from jax.sharding import PartitionSpec

from hackmatrix.agents.agent import Agent
from hackmatrix.agents.networks import ActorCritic
from hackmatrix.agents.normalisation import FeatureScale
from hackmatrix.interface.environment import Environment, PyTree
from hackmatrix.learner import anomalies, measures, mesh, ppo, seeds
from hackmatrix.learner.keys import Purpose, key_for
from hackmatrix.learner.reward_scale import RewardScale
from hackmatrix.learner.rollout import Games, Rollout, new_games, play
from hackmatrix.reporting.metrics import metrics_of
from hackmatrix.settings.config import Course, TrainConfig

Array = jax.Array


class TrainState(struct.PyTreeNode):
    """All that continues from one update to the next. Random keys follow from seed and update.

    That of K agents has a leading axis K everywhere; see `seeds.py`.
    """

    seed: Array  # uint32[]
    update: Array  # int32[], updates made
    params: PyTree
    opt_state: optax.OptState
    reward_scale: RewardScale
    feature_scale: FeatureScale | None  # None: features are taken as they are
    games: Games
    sums: measures.Measures  # since they were last taken
    anomaly: Array  # int32[3], the first one found


class Trainer:
    """PPO on an environment: `init` makes a state, `run` advances it by some updates.

    The number of updates of one call never changes results: the compiled loop is the same for all.
    Nor does the number of devices, within float error, nor who else is trained (`num_seeds`).
    """

    def __init__(
        self,
        env: Environment,
        config: TrainConfig,
        devices_: Sequence[jax.Device] | None = None,
        course: Course | None = None,
        *,
        detect_anomaly: bool = False,
        over_agents: seeds.OverAgents | None = None,
    ) -> None:
        """Prepares the programs; they are compiled when they are first called.

        Args:
            env: what to train on.
            config: settings.
            devices_: share the games, see `devices.find`; by default JAX's first one.
            course: of the run, where it goes on with another batch than it began with.
            detect_anomaly: whether every update is searched for numbers that are not finite.
            over_agents: makes of an update of one agent that of many; by default what is fastest on
                the devices.
        """
        network = ActorCritic(
            env.num_actions,
            config.hidden_dim,
            config.num_layers,
            activation=config.activation,
            dtype=jnp.dtype(config.dtype),
        )
        self.config = config
        self.metrics = metrics_of(env)
        self.agent = Agent(env, network)
        self.mesh = mesh.mesh_of(devices_ or jax.devices()[:1])
        self._env = env
        self._course = course
        self._detect_anomaly = detect_anomaly
        self._share = config.num_envs // self.mesh.size  # games of one device
        self._over_agents = over_agents or seeds.fastest(self.mesh.devices.flat[0].platform)
        specs = _specs(config.num_seeds)
        self._shardings = mesh.shardings(self.mesh, specs)
        self._init = mesh.on_devices(self._new_states, self.mesh, mesh.REPLICATED, specs)
        self._run = mesh.on_devices(
            self._updates, self.mesh, (specs, mesh.REPLICATED), specs, donate_argnums=0
        )

    def init(self, seed: int, update: int = 0) -> TrainState:
        """The state of a run that begins before this update: fresh params, new games.

        Its agents have the seeds `seed`, `seed + 1`, ...
        """
        return self._init(jnp.uint32(seed), jnp.int32(update))

    def run(self, state: TrainState, num_updates: int) -> TrainState:
        """Starts `num_updates` updates and returns at once; `state` is used up (donated)."""
        return self._run(state, jnp.int32(num_updates))

    def take_sums(self, state: TrainState) -> tuple[TrainState, measures.Measures]:
        """The sums of metrics so far, and the state with sums of nothing."""
        nothing = measures.nothing_measured()
        if (count := self.config.num_seeds) > 1:
            nothing = {name: jnp.broadcast_to(x, (count, *x.shape)) for name, x in nothing.items()}
        nothing = jax.device_put(nothing, self._shardings.sums)
        return dataclasses.replace(state, sums=nothing), state.sums

    def state_shape(self) -> TrainState:
        """Shapes and dtypes of a state."""
        return jax.eval_shape(self._init, jnp.uint32(0), jnp.int32(0))

    def on_devices(self, state: TrainState) -> TrainState:
        """A state of NumPy arrays, put where `run` wants it."""
        put: TrainState = jax.device_put(state, self._shardings)
        return put

    def network_params(self, state: TrainState) -> PyTree:
        """The params with which the network reads features as they are."""
        if state.feature_scale is None or self.config.num_seeds == 1:
            return _network_params(state)(state.params)
        return jax.vmap(FeatureScale.folded)(state.feature_scale, state.params)

    def anomaly(self, state: TrainState) -> tuple[int, anomalies.Anomaly] | None:
        """The first number that was not finite, if there was one and it was looked for.

        Returns:
            The seed of the agent, and where it was.
        """
        of_agents = seeds.split(np.asarray(state.anomaly), self.config.num_seeds)
        for seed, found in zip(self.config.seeds, of_agents, strict=True):
            if (anomaly := anomalies.read(found, state.params)) is not None:
                return seed, anomaly
        return None

    def _new_states(self, seed: Array, update: Array) -> TrainState:
        count = self.config.num_seeds
        if count == 1:
            return self._new_state(seed, update)
        # Never at once: a batch of orthogonal matrices can block jaxlib's CPU threads for ever.
        each = seeds.one_by_one(lambda seed: self._new_state(seed, update))
        states: TrainState = each(seed + jnp.arange(count, dtype=jnp.uint32))
        return states

    def _new_state(self, seed: Array, update: Array) -> TrainState:
        params = self.agent.init(key_for(seed, Purpose.PARAMS))
        config = self.config
        return TrainState(
            seed=seed,
            update=update,
            params=params,
            opt_state=ppo.optimizer(config).init(params),
            reward_scale=RewardScale.create(),
            feature_scale=(
                FeatureScale.create(self._env.feature_size)
                if config.normalize_observations
                else None
            ),
            games=new_games(self._env, seed, update, self._numbers()),
            sums=measures.nothing_measured(),
            anomaly=anomalies.nothing_found(),
        )

    def _numbers(self) -> Array:
        """int32[N], the numbers of this device's games."""
        return mesh.first_index(self._share) + jnp.arange(self._share)

    def _updates(self, state: TrainState, num_updates: Array) -> TrainState:
        update = self._update if self.config.num_seeds == 1 else self._over_agents(self._update)
        result: TrainState = jax.lax.fori_loop(0, num_updates, lambda _, s: update(s), state)
        return result

    def _update(self, state: TrainState) -> TrainState:
        config = self.config
        network_params = _network_params(state)
        games, rollout = play(
            self._env,
            self.agent,
            network_params(state.params),
            state.games,
            state.seed,
            state.update,
            numbers=self._numbers(),
            num_steps=config.num_steps,
            gamma=config.gamma,
        )
        reward_scale = state.reward_scale
        if config.normalize_rewards:
            squares = mesh.psum(rollout.sum_of_squares)
            reward_scale = reward_scale.updated(squares, config.batch_size)
        deviation = reward_scale.deviation if config.normalize_rewards else jnp.ones(())
        learned = ppo.learn(
            state.params,
            state.opt_state,
            ppo.flat_batch(rollout, deviation, config),
            state.seed,
            state.update,
            agent=self.agent,
            network_params=network_params,
            config=config,
            course=self._course,
            detect_anomaly=self._detect_anomaly,
        )
        scalars = learned.scalars | {"reward_scale": deviation}
        return TrainState(
            seed=state.seed,
            update=state.update + 1,
            params=learned.params,
            opt_state=learned.opt_state,
            reward_scale=reward_scale,
            feature_scale=self._rescaled(state.feature_scale, rollout),
            games=games,
            sums=measures.added(
                state.sums,
                measures.over_devices(rollout.measures),
                measures.of_update(scalars),
            ),
            anomaly=self._searched(state, rollout, learned),
        )

    def _rescaled(self, scale: FeatureScale | None, rollout: Rollout) -> FeatureScale | None:
        """With the rollout's observations; they take effect with the next update."""
        if scale is None:
            return None

        def add(sums: tuple[Array, Array], obs: PyTree) -> tuple[tuple[Array, Array], None]:
            features = jax.vmap(self._env.features)(obs) - scale.mean
            return (sums[0] + features.sum(axis=0), sums[1] + (features**2).sum(axis=0)), None

        zeros = jnp.zeros(self._env.feature_size)
        sums, _ = jax.lax.scan(add, (zeros, zeros), rollout.steps.obs)
        sums, squares = mesh.psum(sums)
        return scale.updated(sums, squares, self.config.batch_size)

    def _searched(self, state: TrainState, rollout: Rollout, learned: ppo.Learned) -> Array:
        if not self._detect_anomaly:
            return state.anomaly
        tensors = anomalies.tensors_before_learning(state.params, rollout)
        before = anomalies.first_of(tensors)
        return anomalies.earliest(state.anomaly, state.update, before, learned.anomalies)


def _network_params(state: TrainState) -> Any:
    return (lambda params: params) if state.feature_scale is None else state.feature_scale.folded


def _specs(num_agents: int) -> Any:
    """Games are shared among the devices; everything else is the same on each."""
    same: dict[str, Any] = {field.name: mesh.REPLICATED for field in dataclasses.fields(TrainState)}
    games = mesh.SHARDED if num_agents == 1 else PartitionSpec(None, *mesh.SHARDED)
    return TrainState(**same | {"games": games})
