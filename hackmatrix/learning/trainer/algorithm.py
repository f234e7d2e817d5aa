"""The interface of learning algorithms.

An algorithm is a class: it chooses actions, owns its state and learns from a rollout. The trainer
plays the rollouts with `choose`, and puts around an algorithm what is the same for all of them:
scales of rewards and features, levels, averages of params, checkpoints, metrics, devices. What
algorithms have in common (advantages, minibatches, gradient steps) are functions that they call.
"""

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import struct

from hackmatrix.agents.networks.architectures import find_algorithm, import_algorithm
from hackmatrix.agents.networks.network import Network
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import PRESENCE, options_of
from hackmatrix.environments.interface.environment import Environment, Imagination, PyTree
from hackmatrix.environments.interface.metric import Metric
from hackmatrix.environments.user_code import convert_errors
from hackmatrix.learning.trainer.config import SCHEDULES, AlgorithmConfig, Course
from hackmatrix.learning.trainer.keys import UpdateKeys

Array = jax.Array
Scalars = dict[str, Array]


class Setup(NamedTuple):
    """The environment, the network that learns it, and the settings."""

    env: Environment
    network: Network
    config: AlgorithmConfig
    detect_anomaly: bool = False  # whether to search for numbers that are not finite
    few_kernels: bool = False  # whether starting a kernel costs more than its work: on GPUs

    @property
    def searches(self) -> bool:
        """Whether the algorithm searches before each action."""
        return find_algorithm(self.config.algorithm).searches

    @property
    def imagination(self) -> Imagination:
        """The made-up games in which an algorithm searches."""
        env: Any = self.env  # that has it: see `trainer.py`
        games: Imagination = env.imagination()
        return games


class Hyperparameters(struct.PyTreeNode):
    """The settings that a compiled update takes as inputs: one program serves all of their values.

    Python numbers on the host; in a compiled update arrays, float32[] or int32[].

    Those of the settings that are inputs are attributes: `hyper.gamma`. They are the fields of the
    algorithm's `Config` that are numbers with `compiled=False` or `PRESENCE`.
    """

    settings: dict[str, Any]  # by name; one that is None is 0 and not read
    lr_schedule: Any  # number of its name in `SCHEDULES`
    ent_coef_log_change: Any  # logarithm of the factor by which it changes in the whole run
    # The course of the run, in updates of the present batch size.
    first_update: Any
    made_before: Any  # of a resumed run: the transitions before `first_update`
    num_updates: Any  # of the whole run

    @classmethod
    def of(cls, config: AlgorithmConfig, course: Course) -> Self:
        """Those of a run with these settings."""
        made_before = course.first_timesteps / course.batch_size
        return cls(
            settings={
                name: getattr(config, name) or 0.0
                for name, option in options_of(type(config)).items()
                if option.value_type is float and option.compiled in (False, PRESENCE)
            },
            lr_schedule=SCHEDULES.index(config.lr_schedule),
            ent_coef_log_change=_log_change(config),
            first_update=course.first_update,
            made_before=made_before,
            num_updates=course.num_updates - course.first_update + made_before,
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "settings":  # as when it is unpickled
            raise AttributeError(name)
        try:
            return self.settings[name]
        except KeyError:
            raise AttributeError(f"{name} is no setting that an update takes as input") from None

    def as_arrays(self) -> Self:
        """NumPy arrays with the dtypes of the compiled update."""
        floats = {name: np.float32(x) for name, x in self.settings.items()}
        return self.replace(
            settings=floats,
            lr_schedule=np.int32(self.lr_schedule),
            ent_coef_log_change=np.float32(self.ent_coef_log_change),
            first_update=np.int32(self.first_update),
            made_before=np.float32(self.made_before),
            num_updates=np.float32(self.num_updates),
        )

    def learning_rate(self, update: Any, xp: ModuleType = jnp) -> Any:
        """Learning rate of an update (counted from 0); `xp` is jnp, or NumPy on the host."""
        progress = self.progress(update)
        factors = {
            "constant": xp.ones_like(progress),
            "linear": 1 - progress,
            "cosine": 0.5 * (1 + xp.cos(xp.pi * progress)),
        }
        return self.lr * xp.stack([factors[name] for name in SCHEDULES])[self.lr_schedule]

    def entropy_coef(self, update: Any, xp: ModuleType = jnp) -> Any:
        """Weight of the entropy bonus in an update; arguments as `learning_rate`."""
        return self.ent_coef * xp.exp(self.ent_coef_log_change * self.progress(update))

    def shaping(self, update: Any) -> Any:
        """Part of a shaping reward that counts in an update."""
        return 1 + self.progress(update) * (self.final_shaping - 1)

    def epsilon(self, update: Any, xp: ModuleType = jnp) -> Any:
        """Chance of a random action in an update, of epsilon-greedy play; arguments likewise."""
        part = xp.minimum(self.progress(update) / self.exploration_fraction, 1.0)
        change = self.exploration_final_eps - self.exploration_initial_eps
        return self.exploration_initial_eps + part * change

    def progress(self, update: Any) -> Any:
        """The part of the run that is done before an update."""
        return (update - self.first_update + self.made_before) / self.num_updates


class InformationState(NamedTuple):
    """Knowledge of the players of N games, for an algorithm that searches; see `Imagination`."""

    observations: PyTree  # as the environment gives them
    memory: PyTree  # with these observations


class PolicyOutput(NamedTuple):
    """N games before an action, and what the network says of them."""

    logits: Array  # float32[N, A]
    value: Array  # float32[N]
    mask: Array  # bool[N, A], the valid actions
    uniform: Array  # float32[N], random, from 0 to 1
    information: InformationState | None  # None unless the algorithm searches
    seeds: Array  # uint32[N], random, for what a search makes up


class SampledActions(NamedTuple):
    """The actions of N games."""

    action: Array  # int32[N]
    stored: dict[str, Array]  # float32[N, ...] by name: what the algorithm keeps of each


class LearnerState(struct.PyTreeNode):
    """State of an algorithm that changes its params by gradients. Others add fields."""

    params: PyTree
    opt_state: optax.OptState


class UpdateContext(NamedTuple):
    """The inputs of an update besides the state and the rollout."""

    keys: UpdateKeys  # random keys of the update
    hyper: Hyperparameters
    learning_rate: Array  # float32[], of the schedule in this update
    network_params: Callable[[PyTree], PyTree]  # of learned params those that the network takes


class Learned(NamedTuple):
    """Result of one update."""

    state: Any
    scalars: Scalars  # by the names of `SCALARS`
    anomalies: Array | None = None  # int32[S], for each gradient step; None: nothing is searched


class Algorithm(Protocol):
    """The members of an algorithm's class.

    One of the user's own may also have `GREEDY = True` (evaluations take its most probable
    actions), `SEARCHES = True` (`choose` reads `PolicyOutput.information`) and `SETTINGS`, a
    dictionary of the settings of a new run that are not the general defaults.
    """

    Config: ClassVar[type[AlgorithmConfig]]  # its settings
    STORED: ClassVar[tuple[str, ...]]  # names of what `choose` stores besides what all store
    SCALARS: ClassVar[tuple[str, ...]]  # what an update measures: metrics without their `train/`
    LOSSES: ClassVar[tuple[str, ...]]  # those of them that are searched for NaN and infinity
    METRICS: ClassVar[tuple[Metric, ...]]  # of those that `LEARNER_METRICS` lacks
    PER_GAME: ClassVar[tuple[str, ...]]  # fields of its state whose arrays begin with the games

    def __init__(self, setup: Setup) -> None: ...

    def init(self, params: PyTree, num_envs: int) -> Any:
        """The state at the start of a run: a `flax.struct` dataclass with the field `params`.

        Args:
            params: the network's first ones.
            num_envs: games of this device.
        """

    def choose(
        self, params: PyTree, position: PolicyOutput, hyper: Hyperparameters, update: Array
    ) -> SampledActions:
        """The actions of a step of the rollout.

        Args:
            params: those that the network was applied with.
            position: where the games are, and the network's output.
            hyper: settings that are inputs of the update.
            update: int32[], updates made before.
        """

    def update(self, state: Any, rollout: Any, context: UpdateContext) -> Learned:
        """Learns from a rollout of this device's games.

        Args:
            state: as `init` made it or the last update left it.
            rollout: the `Rollout`; its rewards are scaled.
            context: random keys, settings, and how the network takes the params.
        """


def make_algorithm(setup: Setup) -> Algorithm:
    """The algorithm that the settings name.

    Raises:
        UserError: it is the user's own, and lacks a member, or fails; so do its methods then.
    """
    name = setup.config.algorithm
    algorithm_class = import_algorithm(name)
    if not setup.config.is_own:
        built_in: Algorithm = algorithm_class(setup)
        return built_in
    members = (*Algorithm.__annotations__, "init", "choose", "update")
    if missing := [member for member in members if not hasattr(algorithm_class, member)]:
        raise UserError(f"algorithm {name}: has no {', '.join(missing)}; see `Algorithm`")
    with convert_errors(f"algorithm {name}"):
        own: Any = OwnAlgorithm(f"algorithm {name}", algorithm_class(setup))
    algorithm: Algorithm = own
    return algorithm


class OwnAlgorithm:
    """An algorithm of the user's own; its errors name the place in the user's code."""

    def __init__(self, prefix: str, algorithm: Algorithm) -> None:
        self._prefix = prefix
        self._algorithm = algorithm
        for member in Algorithm.__annotations__:
            setattr(self, member, getattr(algorithm, member))

    def init(self, params: PyTree, num_envs: int) -> Any:
        """See `Algorithm`."""
        with convert_errors(self._prefix):
            return self._algorithm.init(params, num_envs)

    def choose(
        self, params: PyTree, position: PolicyOutput, hyper: Hyperparameters, update: Array
    ) -> SampledActions:
        """See `Algorithm`."""
        with convert_errors(self._prefix):
            return self._algorithm.choose(params, position, hyper, update)

    def update(self, state: Any, rollout: Any, context: UpdateContext) -> Learned:
        """See `Algorithm`."""
        with convert_errors(self._prefix):
            return self._algorithm.update(state, rollout, context)


def _log_change(config: Any) -> float:
    """Of the weight of the entropy bonus; 0 for an algorithm that has none."""
    first = getattr(config, "ent_coef", 0.0)
    final = getattr(config, "final_ent_coef", None)
    return math.log(final / first) if first and final is not None else 0.0
