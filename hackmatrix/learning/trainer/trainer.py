"""The trainer: runs many updates in one compiled call."""

import copy
import dataclasses
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax.sharding import PartitionSpec
from jax.stages import Traced

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.network import Network, check_network, make_network, sharing_of
from hackmatrix.agents.networks.normalisation import FeatureScale, dense_features
from hackmatrix.core.devices import mesh
from hackmatrix.core.errors import UserError
from hackmatrix.core.jax_defaults import with_jax_defaults
from hackmatrix.environments.interface.environment import (
    Environment,
    Levels,
    PyTree,
    optional_members,
)
from hackmatrix.learning.reporting.metrics import device_metrics
from hackmatrix.learning.trainer import anomalies, measures, seeds
from hackmatrix.learning.trainer.algorithm import (
    Hyperparameters,
    Learned,
    Scalars,
    Setup,
    UpdateContext,
    make_algorithm,
)
from hackmatrix.learning.trainer.config import AlgorithmConfig, Course
from hackmatrix.learning.trainer.gradients import convert_params
from hackmatrix.learning.trainer.keys import Purpose, UpdateKeys, key_for
from hackmatrix.learning.trainer.rollout import Rollout, RolloutCarry, new_games, play
from hackmatrix.learning.trainer.tasks import RewardScale, number_of_tasks, of_games

# --- Rises through the levels of an environment, by the results of the games that begin at each ---


Array = jax.Array


class LevelProgress(struct.PyTreeNode):
    """An agent's level, and the results there that have been counted so far."""

    level: Array  # int32[], from 0
    total: Array  # float32[], sum of the results
    games: Array  # float32[], their number

    @classmethod
    def create(cls, levels: Levels) -> Self:
        """At the start of a run."""
        return cls(jnp.int32(levels.first), jnp.zeros(()), jnp.zeros(()))

    def updated(self, levels: Levels, results: Array) -> Self:
        """After an update; once enough games are counted they decide, and counting begins anew.

        Args:
            levels: what the results have to reach.
            results: float32[2], sum and number of the results of the update's games.
        """
        total, games = self.total + results[0], self.games + results[1]
        decides = games >= jnp.asarray(levels.games)[self.level]
        passed = decides & (total >= games * jnp.asarray(levels.at_least)[self.level])
        return self.replace(
            level=self.level + passed,
            total=jnp.where(decides, 0.0, total),
            games=jnp.where(decides, 0.0, games),
        )


# --- The trainer: runs many updates in one compiled call ------------------------------------------


class TrainState(struct.PyTreeNode):
    """All that one update hands to the next. Random keys are derived from `seed` and `update`.

    With K agents every array has a leading axis K; see `seeds.py`.
    """

    seed: Array  # uint32[]
    update: Array  # int32[], number of updates made
    learner: Any  # the algorithm's, which has the params
    averages: PyTree | None  # of the params, to export; None: without `params_average`
    reward_scale: RewardScale
    feature_scale: FeatureScale | None  # None: features are not normalised
    progress: LevelProgress | None  # None: the environment has no levels
    games: RolloutCarry
    sums: Any  # float32[M, 2], metrics since the last `take_sums`; of a gathered state, by name
    anomaly: Array  # int32[3], the first one found

    @property
    def params(self) -> PyTree:
        """The params that are learned."""
        return self.learner.params


@with_jax_defaults
class Trainer:
    """Learning on an environment: `init` makes a state, `run` advances it by some updates.

    Results depend neither on how many updates one call makes (the compiled loop is the same for
    all) nor on which other agents are trained, nor, within float error, on the number
    of devices.
    """

    def __init__(
        self,
        env: Environment,
        config: AlgorithmConfig,
        network: Network | NetworkConfig,
        devices: Sequence[jax.Device] | None = None,
        course: Course | None = None,
        *,
        agents: range = range(1),
        detect_anomaly: bool = False,
        over_agents: seeds.OverAgents | None = None,
    ) -> None:
        """Prepares the programs; they are compiled when they are first called.

        Args:
            env: what to train on.
            config: settings.
            network: the network to train, or its settings.
            devices: devices that share the games, see `learning/settings/devices.py`;
                default: JAX's first.
            course: the run's course, if it resumed with another batch size than it began with.
            agents: the seeds of the agents.
            detect_anomaly: whether to search every update for numbers that are not finite.
            over_agents: maps the update of one agent over many; by default the fastest way on
                the devices.

        Raises:
            UserError: the network is not one for this environment; `config` normalises
                observations, but this network does not allow it; or the network is recurrent and
                `num_minibatches` does not divide `num_envs`.
        """
        self.mesh = mesh.mesh_of(devices or jax.devices()[:1])
        self._set_inputs(config, course or config.course)
        if isinstance(network, NetworkConfig):
            with jax.default_device(self.mesh.local_devices[0]):  # where it will run
                network = make_network(env, network)
        check_network(env, network)
        self.agents = agents
        self.network = network
        platform = self.mesh.devices.flat[0].platform
        self.setup = Setup(env, network, config, detect_anomaly, few_kernels=platform == "gpu")
        _check(self.setup)
        self.algorithm = make_algorithm(self.setup)
        self.metrics = measures.metrics_of(env, self.algorithm)
        self._members = optional_members(env)
        self._share = config.num_envs // self.mesh.size  # games of one device
        self._over_agents = over_agents or seeds.fastest(platform)
        specs = self._specs()
        self._shardings = mesh.shardings(self.mesh, specs)
        self._init = mesh.on_devices(self._new_states, self.mesh, mesh.REPLICATED, specs)
        self._run = mesh.on_devices(
            self._updates,
            self.mesh,
            (specs, mesh.REPLICATED, mesh.REPLICATED),
            specs,
            donate_argnums=0,
        )
        self._gather = jax.jit(
            lambda games: games, out_shardings=mesh.shardings(self.mesh, mesh.REPLICATED)
        )
        self._portable, self._from_portable = (
            mesh.on_devices(convert, self.mesh, specs.games, specs.games) if convert else _same
            for convert in (self._members.portable, self._members.from_portable)
        )

    def with_inputs(self, config: AlgorithmConfig, course: Course, agents: range) -> Self:
        """A trainer of as many agents with other hyperparameters; it shares the programs."""
        other = copy.copy(self)
        other.agents = agents
        other._set_inputs(config, course)
        return other

    def _set_inputs(self, config: AlgorithmConfig, course: Course) -> None:
        self.config = config
        self._hyper = Hyperparameters.of(config, course).as_arrays()

    @property
    def hyper(self) -> Hyperparameters:
        """The hyperparameters, on the devices."""
        placed: Hyperparameters = mesh.put(self._hyper, mesh.shardings(self.mesh, mesh.REPLICATED))
        return placed

    def init(self, seed: int, update: int = 0) -> TrainState:
        """The state of a run that starts at this update: fresh params, new games.

        Its agents have the seeds `seed`, `seed + 1`, ...
        """
        made: TrainState = self._init(jnp.uint32(seed), jnp.int32(update))
        return made

    def start(self, seed: int) -> TrainState:
        """The state of a new run, as `init` makes it, while a thread compiles `run`."""
        # Python traces one function at a time, so first what takes longest to compile.
        lowered = self.traced().lower()
        with ThreadPoolExecutor(1) as thread:
            compiled = thread.submit(lowered.compile)  # JAX keeps it where `run` finds it
            state = self.init(seed)
            compiled.result()
        return state

    def traced(self) -> Traced:
        """The program of `run`, traced: nothing of it runs, so the devices need not be there."""
        whole = mesh.shardings(self.mesh, mesh.REPLICATED)
        hyper = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=whole), self._hyper
        )
        count = jax.ShapeDtypeStruct((), jnp.int32)
        made: Traced = self._run.trace(self.state_shape(), count, hyper)
        return made

    def run(self, state: TrainState, num_updates: int) -> TrainState:
        """Starts `num_updates` updates without waiting for them; donates the buffers of `state`."""
        made: TrainState = self._run(state, jnp.int32(num_updates), self.hyper)
        return made

    def take_sums(self, state: TrainState) -> tuple[TrainState, measures.Measures]:
        """The state with sums of zero, and the sums, NumPy arrays; waits for them."""
        nothing = mesh.put(np.zeros(state.sums.shape, np.float32), self._shardings.sums)
        return dataclasses.replace(state, sums=nothing), self._sums_by_name(state)

    def _sums_by_name(self, state: TrainState) -> measures.Measures:
        return measures.by_name(np.asarray(mesh.local(state.sums)), self.metrics)

    def state_shape(self, *, portable: bool = False) -> TrainState:
        """Shapes, dtypes and shardings of a training state, or of what `gathered` makes of one."""
        shapes = jax.eval_shape(self._init, jnp.uint32(0), jnp.int32(0))
        if portable:
            games = jax.eval_shape(self._portable, shapes.games)
            sums: Any = jax.eval_shape(partial(measures.by_name, metrics=self.metrics), shapes.sums)
            shapes = dataclasses.replace(shapes, games=games, sums=sums)
        return jax.tree.map(
            lambda sharding, part: jax.tree.map(
                lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), part
            ),
            self._shardings,
            shapes,
        )

    def on_devices(self, state: TrainState) -> TrainState:
        """Puts a gathered state on the devices, with the shardings that `run` expects."""
        each = device_metrics(self.metrics)
        sums: Any = np.stack([np.asarray(state.sums[metric.name]) for metric in each], axis=-2)
        put = mesh.put(dataclasses.replace(state, sums=sums), self._shardings)
        return dataclasses.replace(put, games=self._from_portable(put.games))

    def gathered(self, state: TrainState) -> TrainState:
        """The state for a file, with all games where this process can read them.

        All processes call it.
        """
        games = self._portable(state.games)
        if self.mesh.is_multi_process:
            games, learner = mesh.local(self._gather((games, state.learner)))
            state = dataclasses.replace(state, learner=learner)
        return dataclasses.replace(state, games=games, sums=self._sums_by_name(state))

    def network_params(self, state: TrainState) -> PyTree:
        """The params to export: averages, if there are, with the feature normalisation folded in.

        The network then reads raw features.
        """
        params = state.params if state.averages is None else state.averages
        params, scale = mesh.local((params, state.feature_scale))
        if scale is None:
            return params
        fold = FeatureScale.fold if len(self.agents) == 1 else jax.vmap(FeatureScale.fold)
        return fold(scale, params)

    def anomaly(self, state: TrainState) -> tuple[int, anomalies.Anomaly] | None:
        """The first number that was not finite, if one was found.

        Returns:
            The agent's seed and the place of the anomaly; None if there is none.
        """
        of_agents = seeds.split(np.asarray(state.anomaly), len(self.agents))
        for seed, found in zip(self.agents, of_agents, strict=True):
            if (anomaly := anomalies.read(found, state.params, self.algorithm)) is not None:
                return seed, anomaly
        return None

    def _new_states(self, seed: Array, update: Array) -> TrainState:
        count = len(self.agents)
        if count == 1:
            return self._new_state(seed, update)
        # One by one, so that each is to the last bit what its seed alone makes.
        each = seeds.one_by_one(lambda seed: self._new_state(seed, update))
        states: TrainState = each(seed + jnp.arange(count, dtype=jnp.uint32))
        return states

    def _new_state(self, seed: Array, update: Array) -> TrainState:
        params = self.network.init(key_for(seed, Purpose.PARAMS))
        config = self.config
        return TrainState(
            seed=seed,
            update=update,
            learner=self.algorithm.init(params, self._share),
            averages=None if config.params_average is None else params,
            reward_scale=RewardScale.create(number_of_tasks(self.setup.env)),
            feature_scale=(
                FeatureScale.create(self.setup.env.feature_size, self._members.feature_owners)
                if config.normalize_observations
                else None
            ),
            progress=LevelProgress.create(levels) if (levels := self._members.levels) else None,
            games=new_games(self.setup, UpdateKeys(seed, update), self._game_indices()),
            sums=measures.zero_sums(self.metrics),
            anomaly=anomalies.no_anomaly(),
        )

    def _specs(self) -> Any:
        """Partition specs of a state: games are sharded over the devices, all else is replicated.

        So are the fields of an algorithm's state that are `PER_GAME`.
        """
        names = {field.name for field in dataclasses.fields(TrainState)}
        same: dict[str, Any] = dict.fromkeys(names, mesh.REPLICATED)
        games = mesh.SHARDED if len(self.agents) == 1 else PartitionSpec(None, *mesh.SHARDED)
        if self.algorithm.PER_GAME:
            params = jax.eval_shape(self.network.init, jax.random.key(0))
            learner = jax.eval_shape(partial(self.algorithm.init, num_envs=self._share), params)
            fields = {f.name: mesh.REPLICATED for f in dataclasses.fields(learner)}
            same["learner"] = learner.replace(
                **fields | dict.fromkeys(self.algorithm.PER_GAME, games)
            )
        return TrainState(**same | {"games": games})

    def _game_indices(self) -> Array:
        """Indices of this device's games, int32[N]."""
        return mesh.first_index(self._share) + jnp.arange(self._share)

    def _updates(self, state: TrainState, num_updates: Array, hyper: Hyperparameters) -> TrainState:
        def of_agent(state: TrainState) -> TrainState:
            return self._update(state, hyper)

        update = of_agent if len(self.agents) == 1 else self._over_agents(of_agent)
        with jax.named_scope("updates"):
            result: TrainState = jax.lax.fori_loop(0, num_updates, lambda _, s: update(s), state)
        return result

    def _update(self, state: TrainState, hyper: Hyperparameters) -> TrainState:
        keys, fold = UpdateKeys(state.seed, state.update), _network_params(state)
        with jax.named_scope("rollout"):
            games, rollout = play(
                *(self.setup, self.algorithm, fold(state.params), self._games(state)),
                *(keys, self._game_indices(), hyper),
            )
        reward_scale, deviation = self._scale_rewards(state.reward_scale, rollout)
        sharing = sharing_of(self.network)
        context = UpdateContext(
            keys,
            hyper,
            hyper.learning_rate(keys.update),
            network_params=lambda params: fold(sharing.whole(params)),
        )
        steps = rollout.steps
        scaled = steps.reward / of_games(deviation, rollout.tasks)
        with jax.named_scope("learning"):
            learned = self.algorithm.update(
                convert_params(state.learner, sharing.independent),
                rollout.replace(steps=steps.replace(reward=scaled)),
                context,
            )
            learner = convert_params(learned.state, sharing.whole)
        _check_scalars(self.config.algorithm, self.algorithm.SCALARS, learned.scalars)
        measured = measures.over_devices(rollout.measures, self.metrics)
        scalars = measures.of_update(learned.scalars | {"reward_scale": jnp.mean(deviation)})
        measured += measures.rows(scalars, self.metrics)  # of which the rollout measures none
        return TrainState(
            seed=state.seed,
            update=state.update + 1,
            learner=learner,
            averages=_averaged(state, learner.params, hyper),
            reward_scale=reward_scale,
            feature_scale=self._rescaled(state.feature_scale, rollout),
            progress=self._advanced(state.progress, measured),
            games=games,
            sums=measures.accumulate(state.sums, measured, self.metrics),
            anomaly=self._searched(state, rollout, learned),
        )

    def _scale_rewards(self, scale: RewardScale, rollout: Rollout) -> tuple[RewardScale, Array]:
        """The scale after the rollout's rewards, and what they are divided by."""
        if not self.config.normalize_rewards:
            return scale, jnp.ones_like(scale.deviation)
        squares = mesh.psum(rollout.sum_of_squares)
        scale = scale.updated(squares, self._steps(rollout))
        return scale, scale.deviation

    def _games(self, state: TrainState) -> RolloutCarry:
        """The games, those that begin in this update at the agent's level."""
        games, at_level = state.games, self._members.at_level
        if state.progress is None or at_level is None:
            return games
        at_levels = jax.vmap(at_level, (0, None))
        return games.replace(env_state=at_levels(games.env_state, state.progress.level))

    def _advanced(self, progress: LevelProgress | None, measured: Array) -> LevelProgress | None:
        if progress is None or (levels := self._members.levels) is None:
            return None
        return progress.updated(levels, measures.by_name(measured, self.metrics)[levels.result])

    def _steps(self, rollout: Rollout) -> int | Array:
        """Steps of the rollout on all devices; float32[K] where they are of K tasks."""
        if rollout.tasks is None:
            return self.config.batch_size
        steps: Array = mesh.psum(jnp.sum(rollout.tasks, axis=0)) * self.config.num_steps
        return steps

    def _rescaled(self, scale: FeatureScale | None, rollout: Rollout) -> FeatureScale | None:
        """The scale after the rollout's observations; it takes effect with the next update."""
        if scale is None:
            return None

        def add(sums: tuple[Array, Array], obs: PyTree) -> tuple[tuple[Array, Array], None]:
            features = (dense_features(self.setup.env, obs) - scale.mean) * counted
            return (sums[0] + features.sum(axis=0), sums[1] + (features**2).sum(axis=0)), None

        counted = scale.feature_counts(rollout.tasks)
        zeros = jnp.zeros(self.setup.env.feature_size)
        sums, _ = jax.lax.scan(add, (zeros, zeros), rollout.steps.obs)
        sums, squares = mesh.psum(sums)
        return scale.update(sums, squares, scale.feature_counts(self._steps(rollout)))

    def _searched(self, state: TrainState, rollout: Rollout, learned: Learned) -> Array:
        if learned.anomalies is None:
            return state.anomaly
        tensors = anomalies.tensors_before_learning(state.params, rollout)
        before = anomalies.first_of(tensors)
        return anomalies.earliest(state.anomaly, state.update, before, learned.anomalies)


def _check_scalars(algorithm: str, names: Sequence[str], scalars: Scalars) -> None:
    """Raises `UserError` if an update measures other scalars than its algorithm names."""
    if differing := set(names).symmetric_difference(scalars):
        raise UserError(
            f"algorithm {algorithm}: its SCALARS and the scalars of an update differ in "
            f"{', '.join(sorted(differing))}"
        )


def _check(setup: Setup) -> None:
    env, network, config = setup.env, setup.network, setup.config
    if config.num_envs < (tasks := number_of_tasks(env) or 1):
        raise UserError(f"--num-envs {config.num_envs}: each of {tasks} tasks needs a game")
    if config.normalize_observations and not network.reads_features:
        raise UserError(
            "--normalize-observations works with networks that read features by their first "
            "layer alone, such as mlp; leave it off"
        )
    if setup.searches and network.recurrent:
        raise UserError(
            f"--algorithm {config.algorithm} searches, which goes with networks without memory"
        )
    if setup.searches and optional_members(env).imagination is None:
        raise UserError(
            f"--algorithm {config.algorithm} searches games that are made up from what a player "
            f"sees, and {optional_members(env).id} has no `imagination` that makes them up"
        )
    if network.recurrent and config.num_envs % config.num_minibatches:
        raise UserError(
            "a recurrent network learns from whole games: --num-minibatches "
            f"{config.num_minibatches} must divide --num-envs {config.num_envs}"
        )


def _same(games: RolloutCarry) -> RolloutCarry:
    return games


def _network_params(state: TrainState) -> Any:
    return (lambda params: params) if state.feature_scale is None else state.feature_scale.fold


def _averaged(state: TrainState, params: PyTree, hyper: Hyperparameters) -> PyTree | None:
    """The averages after an update, which made `params`.

    Exponential ones over a window that grows with the run, so that neither its beginning nor its
    length matters (Polyak and Juditsky 1992; the growing window: Shamir and Zhang 2013,
    https://arxiv.org/abs/1212.1824).
    """
    if state.averages is None:
        return None
    weight = 1 / jnp.maximum(hyper.params_average * (state.update + 1), 1)
    return jax.tree.map(lambda mean, new: mean + weight * (new - mean), state.averages, params)
