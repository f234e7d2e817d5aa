"""The interface of environments for the learner and the evaluation."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from hackmatrix.environments.interface.metric import Metric
from hackmatrix.environments.interface.report import Breakdown, Column, PlayedGames

Array = jax.Array
PyTree = Any
Step = tuple[PyTree, PyTree, Array, Array, Array, dict[str, PyTree]]

MAX_ACTIONS = 32  # a mask is kept as the bits of one uint32


class StepRecord(NamedTuple):
    """One step of one game, the argument of `Environment.measure`."""

    action: Array  # int32
    mask: Array  # bool[A], before the step
    previous_mask: Array  # bool[A], before the game's previous step; all False in its first one
    reward: Array  # float32
    ended: Array  # bool, terminated or truncated
    info: dict[str, PyTree]  # what `step` returned


class FeatureRows(Protocol):
    """Features as a dense part plus a sum of a few rows of a constant table.

    The feature vector of an observation is zero, plus `dense` at `dense_columns`, plus for each of
    its `rows` r the values `weights[r]` at `columns[r]`. Row 0 adds nothing.
    """

    size: int  # length of the feature vector
    columns: np.ndarray  # int32[R, J]; shorter rows are padded with column 0, weight 0
    weights: np.ndarray  # float32[R, J]
    dense_columns: np.ndarray  # int32[D]

    def __call__(self, observation: PyTree) -> tuple[Array, Array]:
        """`dense` float32[D] and `rows` int32[P] of an observation.

        `rows` may contain zeros anywhere.
        """


class FeatureIntegers(Protocol):
    """Features as small integers, which rollouts store so that they are worked out once."""

    scales: np.ndarray  # float32[F]; the features are the integers times these
    largest: np.ndarray  # int[F], no integer's absolute value is above it

    def __call__(self, observation: PyTree) -> Array:
        """int8[F] of an observation."""


class Reflections(NamedTuple):
    """R ways to mirror a game: one that is mirrored goes on mirrored.

    Each is its own inverse, and their order does not matter.
    """

    features: np.ndarray  # int[R, F]; feature i says of the mirrored game what these say of it
    actions: np.ndarray  # int[R, A], likewise


class Levels(NamedTuple):
    """The levels 0..L-1 of an environment, and what the games at each have to reach."""

    result: str  # the metric over chances that has a game's result, where it counts
    first: int  # level of a new run
    at_least: np.ndarray  # float32[L], the mean result that leads to the next level; inf: none
    games: np.ndarray  # float32[L], number of results of which the mean is taken


class Environment(Protocol):
    """One game with actions 0..num_actions-1; `jax.vmap` of its methods plays many.

    Any object with these members can be trained on. The value used after a step is that of the next
    observation; that of `info["final_observation"]` if the step truncated the episode; and 0 if it
    terminated it, truncated or not.

    When an episode ends, the same call already returns the first observation and state of the next.
    `info` always holds `final_observation`, the observation before that reset. It may hold
    `shaping`, float32: the part of the reward that only shapes it, which can fade in a training.

    It may have any of the `OptionalMembers` too.
    """

    @property
    def num_actions(self) -> int:
        """Number of actions, at most `MAX_ACTIONS`."""

    @property
    def feature_size(self) -> int:
        """Length of the feature vector."""

    def reset(self, key: Array) -> tuple[PyTree, PyTree]:
        """Starts a game.

        Returns the observation (stored in rollouts, so keep it compact) and state.
        """

    def step(self, key: Array, state: PyTree, action: Array) -> Step:
        """Takes an action; returns observation, state, reward, terminated, truncated, info."""

    def action_mask(self, state: PyTree) -> Array:
        """bool[num_actions], True for valid actions: at least one in a running game."""

    def features(self, observation: PyTree) -> Array:
        """The feature vector of an observation, float32[feature_size], the network's input."""


class OptionalMembers(NamedTuple):
    """The members that an environment may have besides; a default stands for one that it lacks."""

    id: str = ""  # the name with its version; the name of its class if it lacks one
    max_episode_steps: int | None = None  # None: no fixed limit
    never_truncates: bool = False  # then no value of a final observation is computed
    reward_threshold: float = math.inf  # a mean return that counts as solved, as in Gymnasium
    observation_space: Any = None  # a `Space`, as is that of the actions
    action_space: Any = None

    # reset_game(stream, episode) -> (observation, state) starts the game of these two uint32.
    reset_game: Callable[[Array, Array], tuple[PyTree, PyTree]] | None = None

    # `measure` returns a number for each of the metrics (except those over evaluations): for every
    # step with `Over.STEPS`, for the last step of an episode with `Over.EPISODES` and
    # `Over.HIGHEST` (other steps are ignored), and a pair (number, chances) with `Over.CHANCES`.
    metrics: tuple[Metric, ...] = ()
    measure: Callable[[StepRecord], dict[str, Any]] | None = None

    # `hackmatrix evaluate` prints it besides return and length. Columns are metrics of evaluations
    # too: `eval/` and their key.
    report: Callable[[PlayedGames], list[Column | Breakdown]] | None = None

    # at_level(state, level) -> state sets the level of games that begin later, int32. The learner
    # calls it, and advances the level by their results.
    levels: Levels | None = None
    at_level: Callable[[PyTree, Array], PyTree] | None = None

    # The names of K tasks of which each game is one; reset_task(key, task) starts a game of a task,
    # int32. The learner plays as many games of each, and scales rewards and normalises advantages
    # for each. The last K features say the task as a one-hot vector; `feature_owners`, float32[K,
    # F], is 1 where a feature belongs to a task, and is 0 in games of others.
    tasks: tuple[str, ...] | None = None
    reset_task: Callable[[Array, Array], tuple[PyTree, PyTree]] | None = None
    feature_owners: np.ndarray | None = None

    # A tree with its states as they are kept in files, from one with them as it plays them, and
    # back; an environment lacks both if it plays them as they are.
    portable: Callable[[PyTree], PyTree] | None = None
    from_portable: Callable[[PyTree], PyTree] | None = None

    # imagination() -> `Imagination`: the games that an algorithm searches which learns by search.
    imagination: Callable[[], Any] | None = None

    feature_rows: FeatureRows | None = None  # read on CPU, where features are mostly zeros
    feature_integers: FeatureIntegers | None = None  # stored by rollouts in place of observations
    reflections: Reflections | None = None  # read by symmetric networks
    layout: str = ""  # of HackMatrix's features
    engine_name: Callable[[], str] = str  # who plays its games inside compiled programs


def optional_members(env: Environment) -> OptionalMembers:
    """The optional members that an environment has."""
    found = {name: getattr(env, name) for name in OptionalMembers._fields if hasattr(env, name)}
    return OptionalMembers(**{"id": type(env).__name__} | found)


# --- The interface of made-up games, which a search plays in place of the true ones ---------------


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
