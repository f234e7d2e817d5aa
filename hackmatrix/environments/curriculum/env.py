"""HackMatrix with the starts of a curriculum, for training."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.core.errors import UserError
from hackmatrix.core.jax_defaults import with_jax_defaults
from hackmatrix.environments.curriculum import starts
from hackmatrix.environments.curriculum.levels import Advance, Curriculum, Level
from hackmatrix.environments.curriculum.metric_table import METRICS
from hackmatrix.environments.curriculum.starts import Started
from hackmatrix.environments.hackmatrix import EnvState, HackMatrixEnv
from hackmatrix.environments.hackmatrix.over_games import over_games
from hackmatrix.environments.interface.environment import Environment, Levels, Step, StepRecord
from hackmatrix.environments.interface.metric import Metric
from hackmatrix.environments.wrappers import Wrapper

Array = jax.Array


def with_curriculum(env: Environment, curriculum: Curriculum, start_level: int = 1) -> Environment:
    """The environment with games that begin as a curriculum says; a new run is at `start_level`.

    Raises:
        UserError: it is not HackMatrix.
    """
    if not isinstance(env, HackMatrixEnv):
        raise UserError("--curriculum has levels of HackMatrix, and --env is another")
    return CurriculumEnv(env, curriculum.levels, start_level - 1)


class CurriculumState(NamedTuple):
    """A game, and where it began."""

    env_state: EnvState
    entered: Any  # the game as it entered its stage, without what UNDO restores
    first_stage: Array  # int32, 1..8
    began_at: Array  # int32, the level by whose start the game began; -1: as another one
    level: Array  # int32, the level of the next start, from 0


@with_jax_defaults
class CurriculumEnv(Wrapper):
    """HackMatrix whose games begin as the level in the state says.

    `info` has three more: `level` (int32, from 1), `counts` (bool, whether a game has ended that
    began by the start of the level) and `result` (float32, its result).
    """

    env: HackMatrixEnv
    adds_truncation = False
    hides = frozenset({"action_bits", "from_text", "observe", "to_text"})  # of the game's states

    def __init__(self, env: HackMatrixEnv, levels: tuple[Level, ...], first: int) -> None:
        """Wraps an environment whose games begin at the level `first`, from 0."""
        super().__init__(env)
        advances = [level.advance or Advance("stages_cleared", np.inf) for level in levels]
        self._by_wins = np.array([advance.result == "win_rate" for advance in advances])
        self._begin = over_games(
            starts.begin,
            _begin_results,
            levels=levels,
            engine=env.engine,
        )
        self.levels = Levels(
            result="curriculum/result",
            first=first,
            at_least=np.array([advance.at_least for advance in advances], np.float32),
            games=np.array([advance.games for advance in advances], np.float32),
        )

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The game's and the curriculum's."""
        return (*self.env.metrics, *METRICS)

    def measure(self, step: StepRecord) -> dict[str, Any]:
        """The values of one step by metric."""
        info = step.info
        return {
            **self.env.measure(step),
            "curriculum/level": info["level"],
            "curriculum/result": (jnp.where(info["counts"], info["result"], 0), info["counts"]),
        }

    def at_level(self, state: CurriculumState, level: Array) -> CurriculumState:
        """The state whose next game begins at a level, int32 from 0."""
        return state._replace(level=level)

    def within(self, state: CurriculumState) -> EnvState:
        """The state of the game."""
        return state.env_state

    def wrap_reset(self, observation: Array, state: EnvState) -> tuple[Array, CurriculumState]:
        """The first game of a stream, by the start of the first level."""
        yes, no = jnp.bool_(True), jnp.bool_(False)
        level = jnp.int32(self.levels.first)
        entered = self.env.games.without_saved(state.game)
        return self._next(observation, state, entered, yes, no, level)

    def _next(
        self,
        observation: Array,
        env_state: EnvState,
        entered: Any,
        due: Array,
        lost: Array,
        level: Array,
    ) -> tuple[Array, CurriculumState]:
        """Replaces a real game that has just begun, if it is due."""
        games = self.env.games
        started = Started(games.without_saved(env_state.game), observation, jnp.bool_(False))
        game, observation, at_level = self._begin(started, entered, due, lost, level)
        return observation, CurriculumState(
            env_state=replace(env_state, game=games.with_saved(game, of=env_state.game)),
            entered=game,
            first_stage=games.stage(game),
            began_at=jnp.where(at_level, level, -1),
            level=level,
        )

    def step(self, key: Array, state: CurriculumState, action: Array) -> Step:
        """Takes an action; see `Environment`."""
        observation, env_state, reward, terminated, truncated, info = self.env.step(
            key, state.env_state, action
        )
        ended = terminated | truncated
        observation, begun = self._next(
            observation, env_state, state.entered, ended, terminated & ~info["won"], state.level
        )
        stage = self.env.games.stage
        advanced = ended | (stage(env_state.game) > stage(state.env_state.game))
        after = CurriculumState(
            env_state=begun.env_state,
            entered=jax.tree.map(
                lambda new, old: jnp.where(advanced, new, old), begun.entered, state.entered
            ),
            first_stage=jnp.where(ended, begun.first_stage, state.first_stage),
            began_at=jnp.where(ended, begun.began_at, state.began_at),
            level=state.level,
        )
        won = info["won"].astype(jnp.float32)
        cleared = info["stage"] - state.first_stage + won
        by_wins = jnp.asarray(self._by_wins)[state.level]
        info = info | {
            "level": state.level + 1,
            "counts": ended & (state.began_at == state.level),
            "result": jnp.where(by_wins, won, cleared),
        }
        return observation, after, reward, terminated, truncated, info


def _begin_results(started: Any, *others: Any) -> Any:
    del others
    return started
