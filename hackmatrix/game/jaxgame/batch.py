"""A whole step of n games, and work that only some of the games need, done for those alone.

All arrays here have a leading axis of games.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from hackmatrix.game.jaxgame import enemy_turn, game, undo
from hackmatrix.game.jaxgame.control_flow import by_platform, select, where, while_loop
from hackmatrix.game.jaxgame.enemy_turn import Ground, Movement
from hackmatrix.game.jaxgame.observation import record_words
from hackmatrix.game.jaxgame.stage import (
    BoardPlan,
    begin_stage,
    draw_layout,
    is_valid_layout,
    plan_stage,
)
from hackmatrix.game.jaxgame.state import Ending, State
from hackmatrix.game.rules.actions import FIRST_PROGRAM
from hackmatrix.game.rules.observation import RECORD_SIZE
from hackmatrix.game.rules.programs import ProgramId
from hackmatrix.game.rules.stages import LAYOUT_TRIES

# Work that only some games need is done for this share of all games at a time, until none is left.
_STAGES_AT_A_TIME = 1 / 16
_LATE_MOVERS = 1 / 8
_UNDONE_AT_A_TIME = 1 / 64
_LAYOUTS_A_GAME = 8  # tried at a time
_ROWS_AT_ONCE = 8  # of a matrix; the rows of a tile of a TPU's memory
_BLOCK = 64
# Dtypes that fit a word; environments of a user have states of others too, such as random keys.
_OF_A_WORD = {jnp.dtype(x) for x in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32")}
_OF_A_WORD.add(jnp.dtype("float32"))


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class Step:
    """Results of one step of n games, besides their states.

    `over`, `stage`, `score` and `programs_owned` are the values at the end of the step, before a
    restart.
    """

    parts: jax.Array  # int32[n, 15], reward parts in units of 0.005
    stage_completed: jax.Array  # bool[n], true on the winning step too
    over: jax.Array  # int32[n], an `Ending`
    stage: jax.Array  # int32[n]
    score: jax.Array  # int32[n]
    programs_owned: jax.Array  # int32[n]
    observation: jax.Array  # uint8[n, RECORD_SIZE]
    final_observation: jax.Array  # uint8[n, RECORD_SIZE], before a restart


def new_games(stream: jax.Array, episode: jax.Array) -> tuple[State, jax.Array]:
    """Starts games by stream and episode (uint32[n]); returns states and uint8[n, RECORD_SIZE]."""
    state = _begin_stages(game.new_game(stream, episode))
    return state, observations(state)


def observations(state: State) -> jax.Array:
    """The observations of n games, uint8[n, RECORD_SIZE]."""
    columns = _one_row_each(record_words(state))
    return lax.bitcast_convert_type(columns, jnp.uint8).reshape(-1, RECORD_SIZE)


def _one_row_each(columns: list[jax.Array]) -> jax.Array:
    """uint32[n, w] from arrays [k, n] of k words each: the words of each game side by side.

    It works in blocks of games: the words of one game would otherwise lie at distances of a power
    of two and evict each other from the cache.
    """
    games = columns[0].shape[1]
    block = _BLOCK if games % _BLOCK == 0 else 1
    blocks = [word.reshape(-1, games // block, block).swapaxes(0, 1) for word in columns]
    return jnp.concatenate(blocks, axis=1).swapaxes(1, 2).reshape(games, -1)


def step(
    state: State, action: jax.Array, stops: jax.Array | None, restarts: bool
) -> tuple[State, Step]:
    """Takes an action in each game.

    Args:
        state: n games.
        action: int32[n].
        stops: bool[n], games that are truncated after this action; None if none ever is.
        restarts: whether a game that has ended or been truncated is replaced by the next episode of
            its stream; otherwise one that has ended stays as it is.
    """
    with jax.named_scope("undo"):
        newest_saved = _newest_saved(state, action == FIRST_PROGRAM + ProgramId.UNDO)
    with jax.named_scope("begin step"):
        state, in_progress = game.begin_step(state, action, newest_saved)
    with jax.named_scope("enemies"):
        state, movement, ground = enemy_turn.begin_movement(state, in_progress.enemies_move)
        movement = _move_enemies(movement, ground)
    with jax.named_scope("finish step"):
        state, outcome = game.finish_step(state, in_progress, movement)
    with jax.named_scope("undo"):
        state = _save(state, in_progress.enemies_move)
    over, stage, score, owned = state.over, state.stage, state.player.score, state.owned
    ended = over != Ending.RUNNING if stops is None else (over != Ending.RUNNING) | stops
    due = Due(outcome.begins_stage, ended & restarts)
    with jax.named_scope("new stages"):  # and all observations
        state, observation, final_observation = _begin_due(state, due)
    return state, Step(
        parts=outcome.parts.T,
        stage_completed=outcome.stage_completed,
        over=over,
        stage=stage,
        score=score,
        programs_owned=lax.population_count(owned).astype(jnp.int32),
        observation=observation,
        final_observation=final_observation,
    )


def _save(state: State, active: jax.Array) -> State:
    """Saves the positions of some games (bool[n]) for UNDO."""
    state = undo.save(state, active)
    rows = by_platform(
        undo.snapshot(state),
        cpu=lambda columns: _one_row_each([word[None] for word in columns]),
        accelerator=lambda columns: _stack(columns).T,
    )
    games = where(active, jnp.arange(active.size), active.size)
    return undo.with_rows(
        state, state.saved.rows.at[games, state.saved.newest].set(rows, mode="drop")
    )


def _newest_saved(state: State, needed: jax.Array) -> jax.Array:
    """uint32[w, n]: the newest saved positions of games that need it (bool[n]), zeros for others.

    Few games do, so they are fetched for a few games at a time.
    """
    games, width = needed.size, state.saved.rows.shape[-1]
    few = _few(games, _UNDONE_AT_A_TIME)

    def fetch(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        columns, left = carry
        chosen = _first(few, left)
        rows, newest = _gather((state.saved.rows, state.saved.newest), chosen)
        rows = rows[jnp.arange(few), newest]
        columns = columns.at[:, chosen].set(rows.T, mode="drop")
        return columns, left.at[chosen].set(False, mode="drop")

    start = jnp.zeros((width, games), jnp.uint32), needed
    columns, _ = while_loop(lambda carry: carry[1].any(), fetch, start)
    return columns


def _move_enemies(movement: Movement, ground: Ground) -> Movement:
    """Lets all enemies act that are able to, one per game at a time.

    All games run together while many have enemies left to act; the few with the most continue in a
    smaller batch.
    """
    games = movement.hp.shape[0]
    few = _few(games, _LATE_MOVERS)

    def acts(movement: Movement) -> jax.Array:
        return movement.to_act.any()

    def act_all(until: int, movement: Movement, ground: Ground) -> Movement:
        return while_loop(
            lambda movement: jnp.sum(acts(movement)) > until,
            lambda movement: enemy_turn.act(movement, ground),
            movement,
        )

    movement = act_all(few, movement, ground)
    late = _first(few, acts(movement))
    rest = act_all(0, *_gather((movement, ground), late))
    return _scatter(movement, late, rest)


def _begin_stages(state: State) -> State:
    """Generates the next stage of all these games."""
    plan = plan_stage(state)
    return begin_stage(state, plan, _first_valid_layout(plan))


class _Tries(NamedTuple):
    """The loop state of the search for valid layouts: each game's next attempt and result."""

    next: jax.Array  # int32[n]
    first_valid: jax.Array  # int32[n], LAYOUT_TRIES while there is none


def _first_valid_layout(plan: BoardPlan) -> jax.Array:
    """int32[n]: the first attempt that gives a valid layout, `LAYOUT_TRIES` if there is none.

    Most games need a few attempts and some need dozens, so each round divides a fixed number of
    attempts among the games that still have no layout.
    """
    games = plan.exit.shape[0]
    lanes = jnp.arange(max(16, _LAYOUTS_A_GAME * games))

    def wanting(tries: _Tries) -> jax.Array:
        return (tries.first_valid == LAYOUT_TRIES) & (tries.next < LAYOUT_TRIES)

    def try_some(tries: _Tries) -> _Tries:
        wants = wanting(tries)
        num_wanting = jnp.sum(wants)
        share = lanes.size // num_wanting
        rank = lanes // share
        chosen = _first(games, wants)
        chosen = where(rank < num_wanting, _gather(chosen, jnp.minimum(rank, games - 1)), games)
        attempt = _gather(tries.next, chosen) + lanes % share
        valid = _is_valid(_gather(plan, chosen), attempt) & (attempt < LAYOUT_TRIES)
        first_valid = tries.first_valid.at[chosen].min(
            where(valid, attempt, LAYOUT_TRIES), mode="drop"
        )
        return _Tries(where(wants, tries.next + share, tries.next), first_valid)

    nothing = jnp.zeros(games, jnp.int32)
    start = _Tries(nothing, nothing + LAYOUT_TRIES)
    return while_loop(lambda tries: wanting(tries).any(), try_some, start).first_valid


def _is_valid(plan: BoardPlan, attempt: jax.Array) -> jax.Array:
    return is_valid_layout(draw_layout(plan, attempt), plan.exit)


def _few(games: int, share: float) -> int:
    """Number of games for a share of all, at least 8 if there are that many."""
    return max(1, min(games, 8), int(games * share))


def _first(size: int, flags: jax.Array) -> jax.Array:
    """int32[size]: the indices of the first flags of a bool[n] that are set, then n.

    As `jnp.nonzero` with a size, in a quarter of its operations.
    """
    rank = jnp.cumsum(flags) - 1
    indices = jnp.full(size, flags.size).at[where(flags, rank, size).astype(jnp.uint32)]
    return indices.set(jnp.arange(flags.size), mode="drop")


def _gather(tree: Any, games: jax.Array) -> Any:
    """The arrays of a tree for the games with these indices.

    Indices beyond the last are clipped.
    """
    leaves, structure = jax.tree.flatten(tree)
    last = leaves[0].shape[0] - 1
    games = jnp.minimum(games, last).astype(jnp.uint32)  # which needs no check for each array

    def gather(x: jax.Array) -> jax.Array:
        return x.at[games].get(mode="promise_in_bounds")

    return jax.tree.unflatten(structure, _for_each_array(gather, leaves))


def _scatter(tree: Any, games: jax.Array, part: Any) -> Any:
    """The tree with the games at these indices replaced; indices beyond the last are ignored."""
    leaves, structure = jax.tree.flatten(tree)
    games = games.astype(jnp.uint32)  # which can't be negative

    def scatter(x: jax.Array, new: jax.Array) -> jax.Array:
        return x.at[games].set(new, mode="drop")

    return jax.tree.unflatten(structure, _for_each_array(scatter, leaves, jax.tree.leaves(part)))


def _for_each_array(rule: Callable[..., jax.Array], *arrays: list[jax.Array]) -> list[jax.Array]:
    """The results of a rule that moves games by index, for each array of one or two lists.

    On accelerators a kernel by index is dear, whatever it moves: there the scalars of each game
    move together, as a row of one matrix uint32[n, w].
    """

    def one_by_one(*arrays: list[jax.Array]) -> list[jax.Array]:
        return list(map(rule, *arrays))

    def in_rows(*arrays: list[jax.Array]) -> list[jax.Array]:
        is_scalar = [x.ndim == 1 and x.dtype in _OF_A_WORD for x in arrays[0]]
        scalars, others = (
            [
                [x for x, flag in zip(group, is_scalar, strict=True) if flag == wants_scalar]
                for group in arrays
            ]
            for wants_scalar in (True, False)
        )
        if not (num_scalars := sum(is_scalar)):
            return one_by_one(*arrays)
        matrix = rule(*(_stack([_word(x) for x in group]).T for group in scalars))
        columns, rest = (
            iter(jnp.split(matrix.T.reshape(-1), num_scalars)),
            iter(one_by_one(*others)),
        )
        return [
            _of_word(next(columns), x.dtype) if flag else next(rest)
            for x, flag in zip(arrays[0], is_scalar, strict=True)
        ]

    return by_platform(*arrays, cpu=one_by_one, accelerator=in_rows)


def _stack(columns: list[jax.Array]) -> jax.Array:
    """uint32[w, n] from w arrays [n], as `jnp.stack` for accelerators.

    They would start a kernel for each array. Here each makes eight rows, which lie side by side in
    its memory.
    """

    def join(columns: list[jax.Array]) -> jax.Array:
        size, zero = columns[0].size, np.uint32(0)
        padded = [
            lax.pad(column, zero, [(row * size, (len(columns) - 1 - row) * size, 0)])
            for row, column in enumerate(columns)
        ]
        return reduce(lax.bitwise_or, padded)

    groups = [columns[i : i + _ROWS_AT_ONCE] for i in range(0, len(columns), _ROWS_AT_ONCE)]
    return jnp.concatenate(list(map(join, groups))).reshape(len(columns), -1)


def _word(x: jax.Array) -> jax.Array:
    is_float = jnp.issubdtype(x.dtype, jnp.floating)
    return lax.bitcast_convert_type(x, jnp.uint32) if is_float else x.astype(jnp.uint32)


def _of_word(word: jax.Array, dtype: Any) -> jax.Array:
    is_float = jnp.issubdtype(dtype, jnp.floating)
    return lax.bitcast_convert_type(word, dtype) if is_float else word.astype(dtype)


class Due(NamedTuple):
    """The work that remains for each game at the end of a step."""

    begins: jax.Array  # bool[n], the next stage has to be laid out
    restarts: jax.Array  # bool[n], the next game has to be started, after that


class _Progress(NamedTuple):
    """The loop state of `_begin_due`."""

    state: State  # without rows
    due: Due
    observation: jax.Array  # uint8[n, RECORD_SIZE]
    final: jax.Array  # uint8[n, RECORD_SIZE], the last one before a restart
    is_first: jax.Array  # bool, the first round only observes


def _begin_due(state: State, due: Due) -> tuple[State, jax.Array, jax.Array]:
    """Begins the stages and games that are due, and observes all games.

    Returns:
        The states, the observations uint8[n, RECORD_SIZE], and the observations from before the
        restarts.
    """

    def begin_and_observe(now: _Progress) -> _Progress:
        state, due = _begin_next(now.state, now.due, skip=now.is_first)
        observation = observations(state)
        final = jnp.where(due.restarts[:, None], observation, now.final)
        return _Progress(state, due, observation, final, jnp.bool(False))

    rows = state.saved.rows  # no new stage needs them
    nothing = jnp.zeros((due.begins.size, RECORD_SIZE), jnp.uint8)
    end = while_loop(
        lambda now: now.is_first | (now.due.begins | now.due.restarts).any(),
        begin_and_observe,
        _Progress(undo.without_rows(state), due, nothing, nothing, jnp.bool(True)),
    )
    final = jnp.where(due.restarts[:, None], end.final, end.observation)
    return undo.with_rows(end.state, rows), end.observation, final


def _begin_next(state: State, due: Due, skip: jax.Array) -> tuple[State, Due]:
    """Begins the next stage, or else the next game, of all games where one is due.

    A few at a time, until none is left; not at all if `skip` (bool) is set.
    """

    def begin(part: State, begins: jax.Array) -> State:
        new = game.new_game(part.dice.stream, part.dice.episode + 1)
        return _begin_stages(select(~begins, undo.without_rows(new), part))

    state = for_few((due.begins | due.restarts) & ~skip, begin, state, due.begins)
    return state, Due(due.begins & skip, due.restarts & (due.begins | skip))


def for_few(due: jax.Array, rule: Callable[..., Any], games: Any, *others: Any) -> Any:
    """Replaces the games that are due, which are few, by what a rule makes of them.

    Args:
        due: bool[n].
        rule: makes some games from them and their `others`, all arrays with the leading axis m.
        games: a tree of arrays with the leading axis n.
        others: trees like it, which the rule only reads.
    """
    few = _few(due.size, _STAGES_AT_A_TIME)

    def some(carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
        games, left = carry
        chosen = _first(few, left)
        made = rule(_gather(games, chosen), *_gather(others, chosen))
        return _scatter(games, chosen, made), left.at[chosen].set(False, mode="drop")

    return while_loop(lambda carry: carry[1].any(), some, (games, due))[0]
