"""A whole step of n games as one kernel of a TPU: the rules of `batch.step`, in another order.

There a step is thousands of kernels, of which each takes longer to start than to run. In here all
games of a block take part in all that any of them needs; nothing moves by index. The saved
positions alone stay outside: a game reads one of its four rows and writes one.

Nobody has run it on a TPU: interpreted, it does what `batch.step` does, and it compiles for them.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from hackmatrix.game.jaxgame import batch, enemy_turn, game, mosaic, undo
from hackmatrix.game.jaxgame.batch import Step
from hackmatrix.game.jaxgame.control_flow import repeat_while, select, where
from hackmatrix.game.jaxgame.observation import record_words
from hackmatrix.game.jaxgame.stage import (
    BoardPlan,
    begin_stage,
    draw_layout,
    is_valid_layout,
    plan_stage,
)
from hackmatrix.game.jaxgame.state import Ending, State
from hackmatrix.game.rules.observation import RECORD_SIZE
from hackmatrix.game.rules.programs import MAX_SAVED_STATES
from hackmatrix.game.rules.stages import LAYOUT_TRIES

SCOPE = "step kernel"  # its name in profiles


class _KernelStep(NamedTuple):
    """The kernel's results besides the state."""

    saves: jax.Array  # bool, whether the position is saved for UNDO
    newest: jax.Array  # int32, 0..3, in which row
    position: jax.Array  # uint32[w, ...], its words
    parts: jax.Array  # int32[15, ...]
    stage_completed: jax.Array  # bool
    over: jax.Array  # int32
    stage: jax.Array  # int32
    score: jax.Array  # int32
    programs_owned: jax.Array  # int32
    observation: Any  # uint8[RECORD_SIZE, n], in the kernel `mosaic.Bytes`
    final_observation: Any  # likewise


def step(
    state: State,
    action: jax.Array,
    stops: jax.Array | None,
    restarts: bool,
    *,
    interpret: bool = False,
) -> tuple[State, Step]:
    """`batch.step`, for a multiple of 1,024 games."""
    rows = state.saved.rows
    with jax.named_scope(SCOPE):
        new, done = mosaic.in_blocks(
            partial(play, restarts=restarts),
            undo.without_rows(state),
            action,
            _newest(rows, state.saved.newest),
            jnp.zeros_like(action) if stops is None else stops.astype(jnp.int32),
            interpret=interpret,
        )
    with jax.named_scope("undo"):
        rows = _with_row(rows, done)
    return undo.with_rows(new, rows), Step(
        parts=done.parts.T,
        stage_completed=done.stage_completed,
        over=done.over,
        stage=done.stage,
        score=done.score,
        programs_owned=done.programs_owned,
        observation=done.observation.T,
        final_observation=done.final_observation.T,
    )


def _newest(rows: jax.Array, newest: jax.Array) -> jax.Array:
    """uint32[w, n]: the newest saved position of each game, as chosen among its four rows."""
    chosen = rows[:, 0]
    for row in range(1, MAX_SAVED_STATES):
        chosen = jnp.where((newest == row)[:, None], rows[:, row], chosen)
    return chosen.T


def _with_row(rows: jax.Array, done: _KernelStep) -> jax.Array:
    """uint32[n, 4, w]: the saved positions with the new ones."""
    row = where(done.saves, done.newest, MAX_SAVED_STATES)
    is_new = row[:, None] == np.arange(MAX_SAVED_STATES)
    return jnp.where(is_new[:, :, None], done.position.T[:, None], rows)


# --- in the kernel: arrays [..., 8, 128] -------------------------------------------------------


def play(
    state: State, action: jax.Array, newest_saved: jax.Array, stops: jax.Array, *, restarts: bool
) -> tuple[State, _KernelStep]:
    """The step of a block of games; arguments as `step`, without the saved rows."""
    state, in_progress = game.begin_step(state, action, newest_saved)
    state, movement, ground = enemy_turn.begin_movement(state, in_progress.enemies_move)
    movement = repeat_while(
        lambda movement: movement.to_act.any(),
        lambda movement: enemy_turn.act(movement, ground),
        movement,
    )
    state, outcome = game.finish_step(state, in_progress, movement)
    state = undo.save(state, in_progress.enemies_move)
    ended = (state.over != Ending.RUNNING) | (stops != 0)
    due = batch.Due(outcome.begins_stage, ended & restarts)
    new, observation, final_observation = _begin_due(state, due)
    return new, _KernelStep(
        saves=in_progress.enemies_move,
        newest=state.saved.newest,
        position=jnp.stack(undo.snapshot(state)),
        parts=outcome.parts,
        stage_completed=outcome.stage_completed,
        over=state.over,
        stage=state.stage,
        score=state.player.score,
        programs_owned=lax.population_count(state.owned).astype(jnp.int32),
        observation=mosaic.Bytes(observation, RECORD_SIZE),
        final_observation=mosaic.Bytes(final_observation, RECORD_SIZE),
    )


class _Beginning(NamedTuple):
    """The loop state of `_begin_due`."""

    state: State
    due: batch.Due
    observation: jax.Array  # uint32[RECORD_SIZE / 4, ...]
    final: jax.Array  # uint32[RECORD_SIZE / 4, ...], the last one before a restart
    is_first: jax.Array  # bool[...], the first round only observes


def _begin_due(state: State, due: batch.Due) -> tuple[State, jax.Array, jax.Array]:
    """`batch._begin_due`: begins the stages and games that are due, and observes all games."""

    def begin_and_observe(now: _Beginning) -> _Beginning:
        waits = now.is_first
        due = batch.Due(now.due.begins & ~waits, now.due.restarts & ~waits)
        state = _begin_next(now.state, due)
        due = batch.Due(now.due.begins & waits, now.due.restarts & (now.due.begins | waits))
        observation = jnp.concatenate(record_words(state))
        final = jnp.where(due.restarts, observation, now.final)
        return _Beginning(state, due, observation, final, waits & ~waits)

    nothing = jnp.zeros((RECORD_SIZE // 4, *due.begins.shape), jnp.uint32)
    is_first = state.stage > 0
    end = repeat_while(
        lambda now: now.is_first | now.due.begins | now.due.restarts,
        begin_and_observe,
        _Beginning(state, due, nothing, nothing, is_first),
    )
    return end.state, end.observation, jnp.where(due.restarts, end.final, end.observation)


def _begin_next(state: State, due: batch.Due) -> State:
    """Begins the next stage, or else the next game, of all games where one is due.

    In a loop that runs once, or not at all: with a branch both sides would carry all games.
    """

    def begin(carry: tuple[State, jax.Array]) -> tuple[State, jax.Array]:
        state, left = carry
        return select(left, _begun(state, due.begins, left), state), left & ~left

    start = state, due.begins | due.restarts
    return repeat_while(lambda carry: carry[1], begin, start)[0]


def _begun(state: State, same_game: jax.Array, wanted: jax.Array) -> State:
    """The next stage, or else the first of the next game; right only where it is wanted."""
    new = game.new_game(state.dice.stream, state.dice.episode + 1)
    state = select(same_game, state, undo.without_rows(new))
    plan = plan_stage(state)
    return begin_stage(state, plan, _first_valid_layout(plan, wanted))


def _first_valid_layout(plan: BoardPlan, wanted: jax.Array) -> jax.Array:
    """int32[8, 128]: the first attempt that gives a valid layout, `LAYOUT_TRIES` if there is none.

    Few games want one, and some of them need dozens of attempts. So the 128 lanes of a row are
    shared by its games that do: with 3 or 4 of them, lane l makes attempt l / 4 of game l % 4.
    """
    lane = lax.broadcasted_iota(jnp.int32, wanted.shape, 1)
    before = _up_to(wanted, lane)  # games that want one, up to each lane
    num_wanting = _from(before, jnp.full_like(lane, _ROW - 1))
    shares = sum(((num_wanting > share) for share in _DISTANCES), jnp.zeros_like(lane))
    games = 1 << shares  # lanes side by side for different games, at least as many as there are
    rank = lane & (games - 1)
    chosen = _nth_lane(before, rank)
    theirs = jax.tree.map(lambda x: _from(x, chosen), plan)
    is_theirs = rank < num_wanting

    def try_some(tries: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        first, first_valid = tries
        attempt = first + (lane >> shares)
        valid = is_valid_layout(draw_layout(theirs, attempt), theirs.exit)
        first_valid = jnp.minimum(first_valid, where(valid & is_theirs, attempt, LAYOUT_TRIES))
        for distance in _DISTANCES:  # the least of all lanes of a game
            other = jnp.minimum(first_valid, _from(first_valid, lane ^ distance))
            first_valid = where(games <= distance, other, first_valid)
        return first + (_ROW >> shares), jnp.minimum(first_valid, LAYOUT_TRIES)

    start = jnp.zeros_like(lane), jnp.full_like(lane, LAYOUT_TRIES)
    _, first_valid = repeat_while(
        lambda tries: is_theirs & (tries[0] < LAYOUT_TRIES) & (tries[1] == LAYOUT_TRIES),
        try_some,
        start,
    )
    return _from(first_valid, before - 1)


_ROW = 128
_DISTANCES = (1, 2, 4, 8, 16, 32, 64)


def _from(x: jax.Array, lanes: jax.Array) -> jax.Array:
    """[8, 128]: the values at other lanes of the same row; lanes wrap around at its end."""
    return jnp.take_along_axis(x, lanes & (_ROW - 1), axis=1, mode="promise_in_bounds")


def _up_to(flags: jax.Array, lane: jax.Array) -> jax.Array:
    """int32[8, 128]: how many flags of its row are set up to each lane."""
    count = flags.astype(jnp.int32)
    for distance in _DISTANCES:
        count += where(lane >= distance, _from(count, lane - distance), 0)
    return count


def _nth_lane(before: jax.Array, rank: jax.Array) -> jax.Array:
    """int32[8, 128]: the lane of the flag with each rank, from what `_up_to` returned."""
    lane = jnp.zeros_like(rank)
    for distance in reversed(_DISTANCES):
        is_further = _from(before, lane + distance - 1) <= rank
        lane = where(is_further, lane + distance, lane)
    return lane
