"""Tiny environments with known answers; each isolates one thing that a learner can get wrong."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from hackmatrix.environments.interface.environment import Levels, Step, StepRecord
from hackmatrix.environments.interface.metric import Metric, Over

Array = jax.Array


class State(struct.PyTreeNode):
    position: Array  # int32[]
    time: Array  # int32[]


class Probe:
    """Same-call auto-reset around `start` and `advance`; observations are one uint8 number."""

    num_actions = 2
    feature_size = 1
    max_episode_steps: int | None = None  # truncates after so many steps

    def start(self, key: Array) -> Array:
        """Position of a new episode."""
        return jnp.int32(0)

    def advance(self, key: Array, position: Array, action: Array) -> tuple[Any, Any, Any]:
        """Next position, reward, terminated."""
        raise NotImplementedError

    def valid(self, position: Array) -> Array:
        return jnp.ones(self.num_actions, bool)

    def features(self, observation: Array) -> Array:
        return observation.astype(jnp.float32)

    def observe(self, state: State) -> Array:
        return state.position.astype(jnp.uint8)[None]

    def action_mask(self, state: State) -> Array:
        return self.valid(state.position)

    def reset(self, key: Array) -> tuple[Array, State]:
        state = State(position=self.start(key), time=jnp.int32(0))
        return self.observe(state), state

    def step(self, key: Array, state: State, action: Array) -> Step:
        step_key, reset_key = jax.random.split(key)
        position, reward, terminated = self.advance(step_key, state.position, action)
        after = State(position=jnp.int32(position), time=state.time + 1)
        truncated = jnp.bool_(
            self.max_episode_steps is not None and after.time >= self.max_episode_steps
        )
        terminated = jnp.bool_(terminated)
        first_obs, first = self.reset(reset_key)
        ended = terminated | truncated
        state = jax.tree.map(lambda a, b: jnp.where(ended, a, b), first, after)
        obs = jnp.where(ended, first_obs, self.observe(after))
        info = {"final_observation": self.observe(after)}
        return obs, state, jnp.float32(reward), terminated, truncated, info


class Value(Probe):
    """One step, reward 1: is the value learned at all?"""

    num_actions = 1

    def advance(self, key: Array, position: Array, action: Array) -> tuple[Any, Any, Any]:
        return 0, 1.0, True


class Observation(Probe):
    """One step, the reward is +1 or -1 as observed: does the value depend on the observation?"""

    num_actions = 1

    def start(self, key: Array) -> Array:
        return jax.random.bernoulli(key).astype(jnp.int32)

    def advance(self, key: Array, position: Array, action: Array) -> tuple[Any, Any, Any]:
        return 0, 2.0 * position - 1.0, True


class Discount(Probe):
    """Two steps, reward 1 after the second: is the future discounted?"""

    num_actions = 1

    def advance(self, key: Array, position: Array, action: Array) -> tuple[Any, Any, Any]:
        return position + 1, position == 1, position == 1


class Action(Probe):
    """One step, action 0 pays 1 and action 1 costs 1: is the better action found?"""

    def advance(self, key: Array, position: Array, action: Array) -> tuple[Any, Any, Any]:
        return 0, 1.0 - 2.0 * action, True


class Policy(Observation):
    """One step, the action must match the observation: does the policy depend on it?"""

    num_actions = 2

    def advance(self, key: Array, position: Array, action: Array) -> tuple[Any, Any, Any]:
        return 0, jnp.where(action == position, 1.0, -1.0), True


class Pairing(Probe):
    """As `Policy`, but an episode shows 8 independent bits: a neighbour's bit tells nothing.

    A second bit, not shown, says which actions are valid: 0 and 1, or 2 and 3. The first of the
    two answers the bit 0, the second the bit 1.
    """

    num_actions = 4
    max_episode_steps = 8

    def start(self, key: Array) -> Array:
        return jax.random.randint(key, (), 0, 4)

    def observe(self, state: State) -> Array:
        return (state.position % 2).astype(jnp.uint8)[None]

    def valid(self, position: Array) -> Array:
        return jnp.arange(4) // 2 == position // 2

    def advance(self, key: Array, position: Array, action: Array) -> tuple[Any, Any, Any]:
        return self.start(key), action % 2 == position % 2, False


class Grid(Probe):
    """5 x 5 cells; moves off the board are masked; the corner 24 pays 1 and ends the episode.

    Starts anywhere else. The time limit of 6 steps truncates, so it must leave no trace in values.
    """

    size = 5
    num_actions = 4
    feature_size = 25
    max_episode_steps = 6
    goal = 24
    moves = np.array([5, -5, -1, 1])

    def start(self, key: Array) -> Array:
        return jax.random.randint(key, (), 0, self.goal)

    def valid(self, position: Array) -> Array:
        row, col = position // self.size, position % self.size
        return jnp.stack([row < self.size - 1, row > 0, col > 0, col < self.size - 1])

    def advance(self, key: Array, position: Array, action: Array) -> tuple[Any, Any, Any]:
        after = position + jnp.asarray(self.moves)[action]
        return after, after == self.goal, after == self.goal

    def features(self, observation: Array) -> Array:
        return jax.nn.one_hot(observation[0], self.feature_size)

    def values(self, gamma: float, *, optimal: bool) -> np.ndarray:
        """float64[25] by dynamic programming: of the best policy, or of random valid moves."""
        valid = np.array([np.asarray(self.valid(jnp.int32(cell))) for cell in range(25)])
        after = np.where(valid, np.arange(25)[:, None] + self.moves, 0)
        values = np.zeros(25)
        for _ in range(2_000):
            following = (after == self.goal) + gamma * values[after]
            if optimal:
                values = np.where(valid, following, -np.inf).max(axis=1)
            else:
                values = (following * valid).sum(axis=1) / valid.sum(axis=1)
            values[self.goal] = 0.0
        return values


class LadderState(NamedTuple):
    rung: Array  # int32[], the level at which the game began
    level: Array  # int32[], of the next one


class Ladder(Probe):
    """One step; at level n the right action is n % 2, so that each level has to be learned anew."""

    last = 3
    feature_size = 4
    levels = Levels(
        result="ladder/right",
        first=0,
        at_least=np.float32([0.8, 0.8, 0.8, np.inf]),
        games=np.float32([100, 100, 100, 1]),
    )
    metrics = (
        Metric("ladder/level", Over.HIGHEST, "highest level"),
        Metric("ladder/right", Over.CHANCES, "fraction of right actions"),
    )

    def measure(self, step: StepRecord) -> dict[str, Any]:
        return {name: step.info[name] for name in ("ladder/level", "ladder/right")}

    def at_level(self, state: LadderState, level: Array) -> LadderState:
        return state._replace(level=level)

    def action_mask(self, state: LadderState) -> Array:
        return jnp.ones(self.num_actions, bool)

    def features(self, observation: Array) -> Array:
        return jax.nn.one_hot(observation[0], self.feature_size)

    def reset(self, key: Array) -> tuple[Array, LadderState]:
        return jnp.zeros(1, jnp.uint8), LadderState(jnp.int32(0), jnp.int32(0))

    def step(self, key: Array, state: LadderState, action: Array) -> Step:
        right = action == state.rung % 2
        info = {
            "final_observation": state.rung.astype(jnp.uint8)[None],
            "ladder/level": state.level,
            "ladder/right": (right, state.rung == state.level),
        }
        obs = state.level.astype(jnp.uint8)[None]
        after = LadderState(state.level, state.level)
        return obs, after, right.astype(jnp.float32), jnp.bool_(True), jnp.bool_(False), info
