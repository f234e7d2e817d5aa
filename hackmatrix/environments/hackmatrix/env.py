"""The public environment: the gymnax step signature, an action mask, and features on demand."""

import math
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.core.errors import UserError
from hackmatrix.core.integers import as_integer
from hackmatrix.core.jax_defaults import with_jax_defaults
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.environments.hackmatrix.engines import ENGINES, Engine, engine_of
from hackmatrix.environments.hackmatrix.env_state import EnvState
from hackmatrix.environments.hackmatrix.imagination import ImaginedGames
from hackmatrix.environments.hackmatrix.metric_table import METRICS, report
from hackmatrix.environments.hackmatrix.observations import (
    COMPACT,
    PLANES,
    SHAPES,
    bounds_of,
    check_observation,
    layout_of,
    planes,
)
from hackmatrix.environments.hackmatrix.over_games import over_games
from hackmatrix.environments.hackmatrix.training_reward import pay_for_programs, trained_on
from hackmatrix.environments.interface.environment import Reflections, StepRecord
from hackmatrix.environments.interface.spaces import Box, Discrete, StepSpec
from hackmatrix.game.engine import state as engine_state
from hackmatrix.game.engine import text
from hackmatrix.game.jaxgame import observation
from hackmatrix.game.jaxgame.feature_rows import HackMatrixFeatureRows
from hackmatrix.game.jaxgame.state import State
from hackmatrix.game.rules.actions import ACTION_NAMES, FIRST_PROGRAM, NUM_ACTIONS, SIPHON
from hackmatrix.game.rules.board import LIMIT
from hackmatrix.game.rules.chance import EVALUATION_STREAM, MAX_WORD
from hackmatrix.game.rules.mirror import AXES, mirrored_actions, mirrored_features
from hackmatrix.game.rules.observation import FEATURE_SIZE, RECORD_SIZE
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.rewards import REWARD_PARTS
from hackmatrix.game.rules.stages import LAST_STAGE
from hackmatrix.game.rules.tactical import HIGH, LOW, SCALES, TACTICAL_SIZE
from hackmatrix.game.rules.training_reward import PROGRAM_WORTH, TRAINING_REWARDS, WIN_WORTH

# --- HackMatrix's metrics of a training step; their table is in `metric_table.py` -----------------


Measured = dict[str, jax.Array | tuple[jax.Array, jax.Array]]


def measure(step: StepRecord) -> Measured:
    """The values of one step by metric; see `Environment` for how they are used."""
    info, action = step.info, step.action
    parts = {f"reward/{part}": info["reward_parts"][i] for i, part in enumerate(REWARD_PARTS)}
    programs = {
        f"actions/program/{ACTION_NAMES[program]}": action == program
        for program in range(FIRST_PROGRAM, NUM_ACTIONS)
    }
    first_chance = step.mask[SIPHON] & ~step.previous_mask[SIPHON]
    return {
        **parts,
        "actions/move_frac": action < SIPHON,
        "actions/siphon_frac": action == SIPHON,
        "actions/program_frac": action >= FIRST_PROGRAM,
        **programs,
        "stats/highest_stage": info["stage"],
        "stats/mean_stage": info["stage"],
        "stats/win_rate": info["won"],
        "stats/mean_score": info["score"],
        "stats/programs_owned": info["programs_owned"],
        "stats/siphon_first_chance_frac": (first_chance & (action == SIPHON), first_chance),
    }


# --- The public environment: the gymnax step signature, an action mask, and features on demand ----


_OBSERVATION = Box(0, 255, (RECORD_SIZE,), np.uint8)
_REAL = Box(-np.inf, np.inf, ())
_FLAG = Box(False, True, (), bool)


def _integer(low: int, high: int) -> Box:
    return Box(low, high, (), np.int32)


_INFO = {
    "reward_parts": Box(-np.inf, np.inf, (len(REWARD_PARTS),)),
    "final_observation": _OBSERVATION,
    "episode_return": _REAL,
    "episode_length": _integer(0, 2**31 - 1),
    "episode_done": _FLAG,
    "stage": _integer(1, LAST_STAGE),
    "score": _integer(0, LIMIT),
    "programs_owned": _integer(0, len(PROGRAMS)),
    "won": _FLAG,
}

_OF_THE_ENGINE = {"games", "_new_games", "_step", "_observe"}  # chosen anew in another process


@with_jax_defaults
class HackMatrixEnv:
    """HackMatrix as an environment of one game; `jax.vmap` of its functions is the fast path.

    Observation: one of `observations.OBSERVATIONS`. "compact" is uint8[RECORD_SIZE], the record of
    `rules.observation`, from which `features` makes what a network reads, in one of three layouts:
    float32[1545] ("classic"), float32[1946] ("full") or float32[432] ("tactical"). These are
    observations too, and so is "planes", float32[6, 6, 127]; of those `features` are the same
    numbers in a row. `spec` has the shapes, dtypes and bounds of everything that `step` returns.
    Actions: 28, `rules.actions.ACTION_NAMES`; the mask is `action_mask`. Reward: float32, the sum
    of the 15 parts of section 11, unless another is asked for. Episode end: terminated by winning,
    dying or an invalid action; truncated only by `max_episode_steps`. With `auto_reset` the same
    call starts the next game; without it, a game that has ended does not change, and each further
    step returns terminated with reward 0.
    """

    id = ENVIRONMENT_ID
    num_actions = NUM_ACTIONS
    metrics = METRICS
    measure = staticmethod(measure)
    report = staticmethod(report)
    action_space = Discrete(NUM_ACTIONS)

    def __init__(
        self,
        observation: str = COMPACT,
        max_episode_steps: int | None = None,
        auto_reset: bool = True,
        reward: str = "game",
        engine: str = "auto",
        layout: str | None = None,
        win_worth: float = WIN_WORTH,
        program_worth: float = PROGRAM_WORTH,
    ) -> None:
        """Creates the environment.

        Args:
            observation: what `reset` and `step` return: "compact", the record; features
                of it, "classic", "full" or "tactical"; or "planes", a picture of them.
            max_episode_steps: actions after which an episode is truncated; None for no limit.
            auto_reset: whether `step` starts the next game when one ends.
            reward: "game", or one of `training_reward.py` to train with: "progress", "stages",
                "programs", "win" or "score".
            engine: "jax", "native" (on CPUs and NVIDIA's GPUs), "pallas" (JAX's as one kernel, on
                TPUs), or "auto": the native engine or Pallas where it plays, else JAX. They differ
                in speed and in how they keep a state, and in no result.
            layout: of compact observations, the features that `features` makes of them:
                "classic", "full" (the default) or "tactical".
            win_worth: points of score that a win alone is worth to the reward "score".
            program_worth: what an owned program is worth to the reward "programs".

        Raises:
            UserError: no such observation, layout, reward or engine, a limit below 1, or a layout
                beside an observation that is one.
        """
        check_observation(observation)
        if layout is not None and observation != COMPACT:
            raise UserError(f"layout goes with observation={COMPACT!r}, not with {observation!r}")
        layout = layout or layout_of(observation)
        if layout not in FEATURE_SIZE:
            raise UserError(f"layout must be one of {', '.join(FEATURE_SIZE)}, got {layout!r}")
        if max_episode_steps is not None and max_episode_steps < 1:
            raise UserError(f"max_episode_steps must be at least 1, got {max_episode_steps}")
        if reward not in TRAINING_REWARDS:
            known = ", ".join(TRAINING_REWARDS)
            raise UserError(f"reward must be one of {known}, got {reward!r}")
        if not win_worth > 0:
            raise UserError(f"win_worth must be above 0, got {win_worth}")
        if not program_worth >= 0:
            raise UserError(f"program_worth must be at least 0, got {program_worth}")
        if engine not in ENGINES:
            raise UserError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
        self.observation = observation
        self.layout = layout
        self.observation_space = _space(observation)
        self.reward = reward
        self.win_worth = win_worth
        self.program_worth = program_worth
        self.max_episode_steps = max_episode_steps
        self.never_truncates = max_episode_steps is None
        self.auto_reset = auto_reset
        self.engine = engine
        if observation != COMPACT:  # they are features: nothing is worked out later
            self.feature_size = math.prod(SHAPES[observation])
            return
        self.feature_size = FEATURE_SIZE[layout]
        self.imagination = self._imagination
        if layout == "tactical":
            self.feature_integers = self._tactical
            self.reflections = Reflections(
                np.array([mirrored_features(axis) for axis in AXES]),
                np.array([mirrored_actions(axis) for axis in AXES]),
            )
        else:
            self.feature_rows = HackMatrixFeatureRows(layout)

    def _imagination(self) -> ImaginedGames:
        return ImaginedGames(
            HackMatrixEnv(
                layout=self.layout,
                auto_reset=False,
                reward=self.reward,
                engine=self.engine,
                win_worth=self.win_worth,
                program_worth=self.program_worth,
            )
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in _OF_THE_ENGINE}

    def __repr__(self) -> str:
        layout = f", layout={self.layout!r}" if self.observation == COMPACT else ""
        return (
            f"hackmatrix.make({self.id!r}, observation={self.observation!r}{layout}, "
            f"max_episode_steps={self.max_episode_steps}, auto_reset={self.auto_reset}, "
            f"reward={self.reward!r}, engine={self.engine!r})"
        )

    @cached_property
    def games(self) -> Engine:
        """The engine; it is chosen when it is needed, as until then JAX may be told its devices."""
        return engine_of(self.engine)

    def engine_name(self) -> str:
        """The engine that plays: "native", "jax" or "pallas"."""
        return self.games.NAME

    @cached_property
    def _new_games(self) -> Any:
        results = partial(_new_game_results, self.games)
        return over_games(self.games.new_games, results)

    @cached_property
    def _step(self) -> Any:
        return over_games(
            self.games.step,
            _step_results,
            max_episode_steps=self.max_episode_steps,
            auto_reset=self.auto_reset,
            progress=self.reward in ("progress", "stages", "programs"),
        )

    @cached_property
    def _observe(self) -> Any:
        return over_games(self.games.observe, _observe_results)

    @cached_property
    def _tactical(self) -> "TacticalIntegers":
        return TacticalIntegers(self.engine)

    @property
    def spec(self) -> StepSpec:
        """Shapes, dtypes and bounds of the values that `step` returns; of the state no bounds."""
        _, state = _new_game_results(self.games, None, None)
        space = self.observation_space
        info = _INFO | {"final_observation": space}
        if self.reward == "programs":
            info["shaping"] = _REAL
        return StepSpec(space, state, _REAL, _FLAG, _FLAG, info)

    def reset(self, key: jax.Array) -> tuple[jax.Array, EnvState]:
        """Starts the first game of a stream derived from a key."""
        stream = jax.random.bits(key, (), jnp.uint32) & jnp.uint32(EVALUATION_STREAM - 1)
        return self.reset_game(stream, jnp.uint32(0))

    def reset_game(self, stream: jax.Array, episode: jax.Array) -> tuple[jax.Array, EnvState]:
        """Starts the game of this stream and episode, 0..2^32-1, of any integer type.

        The stream's top bit is for evaluation. Arrays of JAX wrap to uint32.

        Raises:
            TypeError: one of them is not one integer.
            ValueError: one of them is a number out of range.
        """
        stream, episode = _word("stream", stream), _word("episode", episode)
        record, state = self._new_games(stream, episode)
        return self._to_observation(record), state

    def step(
        self, key: jax.Array | None, state: EnvState, action: jax.Array
    ) -> tuple[jax.Array, EnvState, jax.Array, jax.Array, jax.Array, dict[str, jax.Array]]:
        """Takes an action.

        Args:
            key: unused, as the dice are in the state.
            state: the game.
            action: int, 0..27; one that is not valid ends the game.

        Returns:
            Observation, state, reward, terminated, truncated, and `info`: `reward_parts`
            float32[15], `final_observation` (before auto-reset, always there), `episode_return`
            and `episode_length` (this step included), `episode_done`, `stage`, `score`,
            `programs_owned`, `won`; with the reward "programs" `shaping`, its part for these.
        """
        del key
        _check_one_game("step", state)
        action = jnp.asarray(action)
        if action.ndim or not jnp.issubdtype(action.dtype, jnp.integer):
            raise UserError(f"step takes one integer as action, got {action.dtype}{action.shape}")
        record, after, paid, terminated, truncated, info = self._step(state, action)
        takes_it = info["episode_length"] > state.episode_length  # else it was over before
        ended = takes_it & terminated
        if self.reward == "programs":
            owned = self.games.programs_owned(state.game), info["programs_owned"]
            info["shaping"] = pay_for_programs(self.program_worth, *owned)
        reward = trained_on(self.reward, paid, ended, info, self.win_worth)
        final = self._to_observation(info["final_observation"])
        info |= {"final_observation": final}
        return self._to_observation(record), after, reward, terminated, truncated, info

    def observe(self, state: EnvState) -> jax.Array:
        """The observation of a state, such as one from `from_text`."""
        return self._to_observation(self._observe(state.game))

    def _to_observation(self, record: jax.Array) -> jax.Array:
        """The observation of a compact record."""
        if self.observation == COMPACT:
            return record
        seen = self._features_of(record)
        return planes(seen) if self.observation == PLANES else seen

    def _features_of(self, record: jax.Array) -> jax.Array:
        if self.layout == "tactical":
            return self._tactical(record) * self._tactical.scales
        return observation.features(record, self.layout)

    def action_mask(self, state: EnvState) -> jax.Array:
        """bool[28]: the valid actions."""
        return (self.action_bits(state) >> jnp.arange(NUM_ACTIONS, dtype=jnp.uint32)) & 1 == 1

    def action_bits(self, state: EnvState) -> jax.Array:
        """uint32: the mask as bits, bit a for action a."""
        _check_one_game("action_mask", state)
        return self.games.action_bits(state.game)

    def features(self, observation_: jax.Array) -> jax.Array:
        """float32[feature_size]: the features of one observation."""
        if self.observation == COMPACT:
            return self._features_of(observation_)
        return observation_.reshape(-1)

    def to_text(self, state: EnvState) -> str:
        """The complete game as a drawing and one line per fact (`docs/positions.md`).

        Raises:
            ValueError: there are several games in the state.
        """
        return text.state_to_text(state.to_engine())

    def from_text(self, position: str) -> EnvState:
        """Reads the state of one game from text, written by `to_text` or by hand.

        Return and length of the episode are not part of the text; they start at 0.

        Raises:
            IllegalStateError: the state is not legal; the message names the line or the field.
        """
        return self.from_engine(text.state_from_text(position))

    def from_engine(self, state: engine_state.State) -> EnvState:
        """The state of one game, from that of the Python engine; return and length start at 0."""
        zero = jnp.int32(0)
        return EnvState(self.games.from_engine(state), episode_return=zero, episode_length=zero)

    def portable(self, tree: Any) -> Any:
        """A tree with the games in it as a file keeps them: as the JAX engine has them."""
        return _convert_games(tree, self.games.Game, self.games.to_state)

    def from_portable(self, tree: Any) -> Any:
        """A tree with the games in it as this environment has them."""
        return _convert_games(tree, State, self.games.from_state)


def _convert_games(tree: Any, game_type: type, convert: Callable[[Any], Any]) -> Any:
    def is_game(x: Any) -> bool:
        return isinstance(x, game_type)

    return jax.tree.map(lambda x: convert(x) if is_game(x) else x, tree, is_leaf=is_game)


@with_jax_defaults
class TacticalIntegers:
    """The layout `tactical` as `FeatureIntegers`."""

    scales = np.array(SCALES, np.float32)
    largest = np.maximum(HIGH, np.negative(LOW))

    def __init__(self, engine: str) -> None:
        self._engine_name = engine

    def __getstate__(self) -> dict[str, Any]:
        return {"_engine_name": self._engine_name}

    @cached_property
    def _integers(self) -> Any:
        engine = engine_of(self._engine_name)
        return over_games(engine.tactical_numbers, _tactical_results)

    def __call__(self, observation_: jax.Array) -> jax.Array:
        """int8[TACTICAL_SIZE] of one observation."""
        integers: jax.Array = self._integers(observation_)
        return integers


def _space(observation: str) -> Box:
    """The space of an observation."""
    if observation == COMPACT:
        return _OBSERVATION
    low, high = (tuple(bound.tolist()) for bound in bounds_of(observation))
    return Box(low, high, SHAPES[observation])


def _word(name: str, value: Any) -> jax.Array:
    """The argument `name` as uint32; only the type of an array of JAX is known while tracing."""
    if not isinstance(value, jax.Array):
        return jnp.uint32(as_integer(name, value, MAX_WORD))
    if value.ndim or not jnp.issubdtype(value.dtype, jnp.integer):
        raise TypeError(f"{name} must be an integer, got {value.dtype}{list(value.shape)}")
    return value.astype(jnp.uint32)


def _check_one_game(function: str, state: Any) -> None:
    """`jax.vmap` shows one game; whoever forgets it gets a line instead of a broadcasting error."""
    if not isinstance(state, EnvState):
        raise UserError(f"{function} takes an EnvState, got {type(state).__name__}")
    if games := jnp.shape(state.episode_length):
        count = " x ".join(map(str, games))
        raise UserError(f"{function} takes one game, got {count}: jax.vmap(env.{function})")


# --- what the engines return for one game, for `over_games` ---------------------------------


def _new_game_results(engine: Engine, stream: Any, episode: Any) -> Any:
    del stream, episode
    number: Any = jax.ShapeDtypeStruct((), jnp.int32)
    state = EnvState(engine.one_game(), episode_return=number, episode_length=number)
    return _struct(_OBSERVATION), state


def _step_results(state: Any, action: Any) -> Any:
    del action
    real, flag = _struct(_REAL), _struct(_FLAG)
    return _struct(_OBSERVATION), state, real, flag, flag, jax.tree.map(_struct, _INFO)


def _observe_results(game: Any) -> Any:
    del game
    return _struct(_OBSERVATION)


def _tactical_results(record: Any) -> Any:
    del record
    return jax.ShapeDtypeStruct((TACTICAL_SIZE,), jnp.int8)


def _struct(space: Box) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(space.shape, space.dtype)
