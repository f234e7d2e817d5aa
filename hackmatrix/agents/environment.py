"""The face of an environment, as the learner and the evaluation see it."""

from typing import Any, Protocol

import jax

Array = jax.Array
PyTree = Any
Step = tuple[PyTree, PyTree, Array, Array, Array, dict[str, Array]]


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

    Metrics and evaluation use these entries of `info` where they are there, all as they are before
    the reset: `reward_parts` float32[15], `stage` int (highest reached), `won` bool, `score` int,
    `programs_owned` int.

    Optional members: `max_episode_steps` (None: it never truncates, and the learner leaves out the
    values of final observations), and `reset_game(stream, episode) -> (observation, state)`, which
    starts the game of these two uint32.
    """

    @property
    def num_actions(self) -> int:
        """Number of actions, at most 32."""

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
