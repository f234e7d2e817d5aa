"""The interface of learning algorithms.

An algorithm is a class: it chooses actions, owns its state and learns from a rollout. The trainer
plays the rollouts with `choose`, and puts around an algorithm what is the same for all of them:
scales of rewards and features, levels, averages of params, checkpoints, metrics, devices. What
algorithms have in common (advantages, minibatches, gradient steps) are functions that they call.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol

import jax
import optax
from flax import struct

from hackmatrix.agents.networks.algorithms import find_algorithm, import_algorithm
from hackmatrix.agents.networks.network import Network
from hackmatrix.core.errors import UserError
from hackmatrix.environments.interface.environment import Environment, PyTree
from hackmatrix.environments.interface.imagination import Imagination
from hackmatrix.environments.interface.metric import Metric
from hackmatrix.environments.user_code import convert_errors
from hackmatrix.learning.trainer.config import AlgorithmConfig
from hackmatrix.learning.trainer.hyperparameters import Hyperparameters
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
