"""Section 8, UNDO: what is saved, how it is kept, when it is saved, and how it is restored.

Saved is everything in `Position`. A saved position is one row of words: each set, plane and number
as a uint32, in the order of the fields. The newest 4 rows of a game make a ring (`SavedPositions`):
rows and not 4 more sets of scalars, because next to nothing reads them and everything in a state is
moved through each loop and branch that the state goes through.

The functions here are about one game. Its rows are the one thing that `batch.py` reads and writes
for many games at once: it fetches the row that `restore` takes, and writes the row that `save` has
made room for. Positions are saved at the end of every enemy turn that takes place, forgotten when a
stage begins, and restored by the program UNDO.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.jaxgame.control_flow import select
from hackmatrix.jaxgame.state import Position, SavedPositions, State
from hackmatrix.rules.programs import MAX_SAVED_STATES

_NO_ROWS: Any = ()  # a tree without arrays


def snapshot(position: Position) -> list[jax.Array]:
    """The w words of a position; of a state, those of its position."""
    return [x.astype(np.uint32) for x in jax.tree.leaves(_position_of(position))]


def position_from(words: Iterable[jax.Array], like: Position) -> Position:
    """The position that a snapshot was taken of; `like` is any other position."""
    leaves, tree = jax.tree.flatten(_position_of(like))
    return jax.tree.unflatten(
        tree, [word.astype(leaf.dtype) for word, leaf in zip(words, leaves, strict=True)]
    )


def _position_of(position: Position) -> Position:
    return Position(**{f.name: getattr(position, f.name) for f in fields(Position)})


def save(state: State, active: jax.Array) -> State:
    """Make room for the position, which `batch.py` then writes to row `newest`."""
    saved = replace(
        state.saved,
        count=jnp.minimum(state.saved.count + active, MAX_SAVED_STATES),
        newest=(state.saved.newest + active) % MAX_SAVED_STATES,
    )
    return replace(state, saved=saved)


def restore(state: State, newest: list[jax.Array], active: jax.Array) -> State:
    """Bring back the newest saved position and drop it.

    Args:
        state: the game.
        newest: the words of that position (anything when not active).
        active: bool, whether UNDO is run at all.
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
    """Drop all saved positions."""
    return replace(state, saved=replace(state.saved, count=jnp.zeros_like(state.saved.count)))


def none_saved(like: Position) -> SavedPositions:
    """The ring of a new game, for positions like this one."""
    words = len(jax.tree.leaves(like))
    rows = jnp.zeros((MAX_SAVED_STATES, words), jnp.uint32)
    return SavedPositions(rows=rows, count=jnp.int32(0), newest=jnp.int32(0))


def without_rows(state: State) -> State:
    """The state for code that leaves the rows alone, so that they are not moved through it."""
    return replace(state, saved=replace(state.saved, rows=_NO_ROWS))


def with_rows(state: State, rows: jax.Array) -> State:
    """The state with its rows again."""
    return replace(state, saved=replace(state.saved, rows=rows))


# --- for `conversion.py`: NumPy in, NumPy out ----------------------------------------------------


def saved_from(positions: Sequence[Position], like: Position) -> SavedPositions:
    """The ring that holds these positions, the newest last, which may be none; `like` fills up."""
    missing = MAX_SAVED_STATES - len(positions)
    rows: Any = np.array([snapshot(position) for position in [*positions, *[like] * missing]])
    count: Any = np.int32(len(positions))
    newest: Any = np.int32((len(positions) - 1) % MAX_SAVED_STATES)
    return SavedPositions(rows=rows, count=count, newest=newest)


def positions_of(saved: SavedPositions, like: Position) -> list[Position]:
    """The positions in a ring, the newest last."""
    rows, newest, count = np.asarray(saved.rows), int(saved.newest), int(saved.count)
    ages = reversed(range(count))
    return [position_from(rows[(newest - age) % MAX_SAVED_STATES], like) for age in ages]
