"""The face of an environment, as the learner and the evaluation see it."""

from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

Array = jax.Array
PyTree = Any
Step = tuple[PyTree, PyTree, Array, Array, Array, dict[str, PyTree]]

MAX_ACTIONS = 32  # a mask is kept as the bits of one uint32


class StepRecord(NamedTuple):
    """One step of one game, as `Environment.measure` gets it."""

    action: Array  # int32
    mask: Array  # bool[A], before the step
    previous_mask: Array  # bool[A], before the game's previous step; all False in its first one
    reward: Array  # float32
    ended: Array  # bool, terminated or truncated
    info: dict[str, PyTree]  # what `step` returned


class FeatureRows(Protocol):
    """Features as a sum of few rows of a constant table, beside a dense part.

    The features of an observation are zeros, plus `dense` at `dense_columns`, plus for each of its
    `rows` r the numbers `weights[r]` at `columns[r]`. Row 0 adds nothing.
    """

    size: int  # features of an observation
    columns: np.ndarray  # int32[R, J]; where a row has fewer than J, column 0 of weight 0
    weights: np.ndarray  # float32[R, J]
    dense_columns: np.ndarray  # int32[D]

    def __call__(self, observation: PyTree) -> tuple[Array, Array]:
        """`dense` float32[D] and `rows` int32[P] of an observation; rows may be 0 anywhere."""


class Environment(Protocol):
    """One game with actions 0..num_actions-1; `jax.vmap` of its methods plays many.

    Whatever has these members can be trained on. The end of an episode:

    | terminated | truncated | the value after the step |
    |---|---|---|
    | no | no | of the next observation |
    | no | yes | of `info["final_observation"]` |
    | yes | no | 0 |
    | yes | yes | 0: termination wins |

    When an episode ends, the same call already returns the first observation and state of the
    next. `info` always holds `final_observation`, the observation before that reset.

    Optional members:

    - `max_episode_steps`: None says that it never truncates; the learner then leaves out the values
      of final observations.
    - `reset_game(stream, episode) -> (observation, state)` starts the game of these two uint32.
    - `metrics`, a tuple of `Metric`, and `measure(step: StepRecord) -> dict`, which gives for each
      of them (but those over evaluations) a number of this step: of any step for `Over.STEPS`, of
      an episode's last one for `Over.EPISODES` and `Over.HIGHEST` (that of others is not used), and
      a pair (number, chances) for `Over.CHANCES`.
    - `report(games: PlayedGames) -> list[Column | Breakdown]`, what `hackmatrix evaluate` says
      besides return and length. Columns are metrics of evaluations too: `eval/` and their key.
    - `id`, the name with its version, and `observation_space` and `action_space`, each a `Space`.

    Environments whose features are mostly zeros may offer them as table rows besides:
    `feature_rows`, a `FeatureRows`. On CPU networks read those.
    """

    @property
    def num_actions(self) -> int:
        """Number of actions, at most `MAX_ACTIONS`."""

    @property
    def feature_size(self) -> int:
        """Length of the vector that `features` makes."""

    def reset(self, key: Array) -> tuple[PyTree, PyTree]:
        """Starts a game: observation (as compact as it gets, it is stored) and state."""

    def step(self, key: Array, state: PyTree, action: Array) -> Step:
        """Observation, state, reward, terminated, truncated, info."""

    def action_mask(self, state: PyTree) -> Array:
        """bool[num_actions], True where the action is valid: at least one in a running game."""

    def features(self, observation: PyTree) -> Array:
        """float32[feature_size] of an observation, what the network reads."""
