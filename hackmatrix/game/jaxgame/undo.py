"""Section 8, UNDO: saves and restores positions.

All fields of `Position` are saved. A saved position is one row of words: each set, plane and number
as a uint32, in the order of the fields. The newest 4 rows of a game form a ring buffer
(`SavedPositions`). They are rows and not 4 more sets of scalars, because they are rarely read, and
every scalar of a state is moved through each loop and branch that the state passes.

The rows are the only part of a game that `batch.py` reads and writes: it fetches the row that
`restore` takes, and writes the row for which `save` has made room. Positions are saved at the end
of every enemy turn that is not skipped. A new stage clears them; the program UNDO restores the
newest.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.game.jaxgame.control_flow import select
from hackmatrix.game.jaxgame.state import Position, SavedPositions, State
from hackmatrix.game.rules.programs import MAX_SAVED_STATES

_NO_ROWS: Any = ()  # a tree without arrays


def snapshot(position: Position) -> list[jax.Array]:
    """The w words of a position; for a `State`, of its position fields only."""
    return [x.astype(np.uint32) for x in jax.tree.leaves(_position_of(position))]


def position_from(row: Iterable[jax.Array], like: Position) -> Position:
    """The position from the row of its snapshot; `like` is any position, for its structure."""
    leaves, tree = jax.tree.flatten(_position_of(like))
    return jax.tree.unflatten(
        tree, [word.astype(leaf.dtype) for word, leaf in zip(row, leaves, strict=True)]
    )


def _position_of(position: Position) -> Position:
    return Position(**{f.name: getattr(position, f.name) for f in fields(Position)})


def save(state: State, active: jax.Array) -> State:
    """Makes room for the position, which `batch.py` then writes to row `newest`."""
    saved = replace(
        state.saved,
        count=jnp.minimum(state.saved.count + active, MAX_SAVED_STATES),
        newest=(state.saved.newest + active) % MAX_SAVED_STATES,
    )
    return replace(state, saved=saved)


def restore(state: State, newest: jax.Array, active: jax.Array) -> State:
    """Restores the newest saved position and removes it from the saved ones.

    Args:
        state: the game.
        newest: uint32[w], the words of that position (ignored when not active).
        active: bool, whether UNDO is run.
    """
    now = _position_of(state)

    position = select(active, position_from(newest, like=now), now)
    saved = replace(
        state.saved,
        count=state.saved.count - active,
        newest=(state.saved.newest - active) % MAX_SAVED_STATES,
    )
    return replace(
        state, saved=saved, **{f.name: getattr(position, f.name) for f in fields(Position)}
    )


def forget(state: State) -> State:
    """Clears the saved positions."""
    return replace(state, saved=replace(state.saved, count=jnp.zeros_like(state.saved.count)))


def none_saved(like: Position, games: tuple[int, ...]) -> SavedPositions:
    """The empty ring buffers of new games, for positions with the structure of `like`."""
    width = len(jax.tree.leaves(like))
    rows = jnp.zeros((*games, MAX_SAVED_STATES, width), jnp.uint32)
    return SavedPositions(rows=rows, count=jnp.int32(0), newest=jnp.int32(0))


def without_rows(state: State) -> State:
    """The state without the rows, for code that does not need them, so that they are not moved."""
    return replace(state, saved=replace(state.saved, rows=_NO_ROWS))


def with_rows(state: State, rows: jax.Array) -> State:
    """The state with these rows."""
    return replace(state, saved=replace(state.saved, rows=rows))


# --- for `conversion.py`: NumPy in, NumPy out ----------------------------------------------------


def saved_from(positions: Sequence[Position], like: Position) -> SavedPositions:
    """A ring buffer of these positions, the newest last; unused rows hold `like`."""
    missing = MAX_SAVED_STATES - len(positions)
    rows: Any = np.array([snapshot(position) for position in [*positions, *[like] * missing]])
    count: Any = np.int32(len(positions))
    newest: Any = np.int32((len(positions) - 1) % MAX_SAVED_STATES)
    return SavedPositions(rows=rows, count=count, newest=newest)


def positions_of(saved: SavedPositions, like: Position) -> list[Position]:
    """The positions in a ring buffer, the newest last."""
    rows, newest, count = np.asarray(saved.rows), int(saved.newest), int(saved.count)
    ages = reversed(range(count))
    return [position_from(rows[(newest - age) % MAX_SAVED_STATES], like) for age in ages]
