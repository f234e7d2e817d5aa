"""HackMatrix with the starts of a curriculum, for training."""

from dataclasses import replace
from enum import IntEnum
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.core.errors import UserError
from hackmatrix.core.jax_defaults import with_jax_defaults
from hackmatrix.environments.curriculum.levels import METRICS, Advance, Curriculum, Level
from hackmatrix.environments.hackmatrix import EnvState, HackMatrixEnv
from hackmatrix.environments.hackmatrix.engines import engine_of
from hackmatrix.environments.hackmatrix.over_games import over_games
from hackmatrix.environments.interface.environment import Environment, Levels, Step, StepRecord
from hackmatrix.environments.interface.metric import Metric
from hackmatrix.environments.wrappers import Wrapper
from hackmatrix.game.jaxgame import batch, planes
from hackmatrix.game.jaxgame.bitboard import NOBODY, Set32, TransmissionSet, nth_bit
from hackmatrix.game.jaxgame.control_flow import repeat, select, where
from hackmatrix.game.jaxgame.dice import Dice, draw, to_range
from hackmatrix.game.jaxgame.spawning import spawn
from hackmatrix.game.jaxgame.state import State, zeros
from hackmatrix.game.rules.chance import FIRST_STAGE_SPAWN
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.stages import LAST_STAGE, STAGE_INTERVAL

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
            begin,
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


# --- The starts of the levels, for n games at a time: new games that are changed, lost ones again -
#
# A start is drawn by the game's own dice at sites that no rule uses. So it is determined by
# stream,
# episode and level, and nothing of the game that follows.


_EVERY_PROGRAM = np.uint32((1 << len(PROGRAMS)) - 1)


class _Site(IntEnum):
    """A random draw of a start, beside those of the rules (`rules.chance.Site`)."""

    RETRY = 1000
    SHARE = 1001
    STAGES = 1002
    CREDITS = 1003
    ENERGY = 1004
    SIPHONS = 1005
    PROGRAMS = 1006
    PROGRAM = 1007  # index: place in the order of acquisition; programs left, ascending


class Started(NamedTuple):
    """A game at the start of an episode."""

    game: Any  # as its engine has it, without what UNDO restores
    observation: Array  # uint8[RECORD_SIZE]
    at_level: Array  # bool, begun by the start of a level; else a real game, or a lost one again


def begin(
    started: Started,
    entered: Any,
    due: Array,
    lost: Array,
    level: Array,
    *,
    levels: tuple[Level, ...],
    engine: str,
) -> Started:
    """Gives new games the starts of their levels.

    Args:
        started: n games, of which those that are due are real games that have just begun.
        entered: the games before them, as they entered their last stage.
        due: bool[n].
        lost: bool[n], whether the game before was lost.
        level: int32[n], from 0.
        levels: the levels.
        engine: the games' engine.
    """
    games = engine_of(engine)

    def some(old: Started, entered: Any, lost: Array, level: Array) -> Started:
        new, entered = games.to_state(old.game), games.to_state(entered)
        dice = new.dice
        retries = lost & _chance(dice, _Site.RETRY, _setting_of_levels(levels, "retry")[level])
        at_level = ~retries & _chance(dice, _Site.SHARE, _setting_of_levels(levels, "share")[level])
        state = select(at_level, _start(new, level, levels), new)
        game = games.from_state(select(retries, replace(entered, dice=dice), state))
        return Started(game, games.observe(game), at_level)

    begun: Started = batch.for_few(due, some, started, entered, lost, level)
    return begun


def _start(new: State, level: Array, levels: tuple[Level, ...]) -> State:
    """The start of a level, made from a new game.

    The board of a new game is that of any stage: more transmissions is all that a later one has.
    """
    dice, player, no = new.dice, new.player, jnp.zeros_like(new.show)

    def draw(site: _Site) -> Array:
        low, high = (_setting_of_levels(levels, site.name.lower())[level, end] for end in (0, 1))
        return low + to_range(_word(dice, site), high - low + 1)

    stage = draw(_Site.STAGES)
    interval = STAGE_INTERVAL - stage
    quiet = _setting_of_levels(levels, "quiet_turns")[level]
    owned, acquired = _programs(dice, draw(_Site.PROGRAMS))
    state = replace(
        new,
        stage=stage,
        interval=interval,
        next_task=where(quiet == _NOT_GIVEN, interval, quiet),
        player=replace(
            player,
            credits=player.credits + draw(_Site.CREDITS),
            energy=player.energy + draw(_Site.ENERGY),
            siphons=player.siphons + draw(_Site.SIPHONS),
        ),
        owned=owned,
        acquired=acquired,
    )
    most = _setting_of_levels(levels, "transmissions")[level]
    most = where(most == _NOT_GIVEN, LAST_STAGE, most)
    more = jnp.minimum(stage, most) - 1  # the new game has one already
    state = spawn(state, more, scheduled=no, owed=no, first=FIRST_STAGE_SPAWN + 1)
    return replace(
        state,
        transmissions=state.transmissions.keep(TransmissionSet.all_if(most > 0)),
        transmissions_at=state.transmissions_at.only_if(most > 0),
    )


def _programs(dice: Dice, count: Array) -> tuple[Array, Any]:
    """`owned` and `acquired` for a number of different programs."""

    def acquire(i: Array, now: tuple[Array, Any]) -> tuple[Array, Any]:
        owned, acquired = now
        left = _EVERY_PROGRAM & ~owned
        options = jax.lax.population_count(left).astype(jnp.int32)
        number = nth_bit(left, to_range(_word(dice, _Site.PROGRAM, i), options))
        bit = where(i < count, jnp.uint32(1) << number.astype(jnp.uint32), jnp.uint32(0))
        place = Set32.of_slot(i).only_if(i < count)
        return owned | bit, planes.put(acquired, place, number)

    nothing: tuple[Array, Any] = (jnp.uint32(0), zeros("acquired", NOBODY))
    return repeat(count, acquire, nothing)


_NOT_GIVEN = -1


def _setting_of_levels(levels: tuple[Level, ...], setting: str) -> Array:
    """A setting of each level, [L] or [L, 2]."""
    values = [getattr(level, setting) for level in levels]
    numbers = np.array([_NOT_GIVEN if value is None else value for value in values])
    return jnp.asarray(numbers.astype(np.float32 if numbers.dtype.kind == "f" else np.int32))


def _chance(dice: Dice, site: _Site, share: Array) -> Array:
    """bool: true with this probability."""
    return (_word(dice, site) >> 8).astype(jnp.float32) * np.float32(2**-24) < share


def _word(dice: Dice, site: _Site, index: Array | int = 0) -> Array:
    return draw(dice.stream, dice.episode, dice.clock, site, index)
