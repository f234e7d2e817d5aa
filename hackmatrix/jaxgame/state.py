"""Sections 1 and 2: the pieces, and everything a game remembers, as arrays of one game.

Lists are arrays in list order, filled from the front; what lies behind `count` means nothing.
"""

from dataclasses import dataclass, fields, replace
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.jaxgame.bitboard import Bits, of_cell, of_cells
from hackmatrix.jaxgame.dice import Dice
from hackmatrix.rules.board import CELLS, LIMIT, SIZE
from hackmatrix.rules.enemies import MAX_ENEMIES, EnemyType

_T = TypeVar("_T")

RUNNING, WON, DIED, INVALID_ACTION = range(4)  # of State.over

ENEMY_SLOTS = np.arange(MAX_ENEMIES)
TRANSMISSION_SLOTS = np.arange(CELLS)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class Player:
    """The player; int32 scalars that saturate at 32,767."""

    cell: jax.Array
    hp: jax.Array
    credits: jax.Array
    energy: jax.Array
    siphons: jax.Array
    attack: jax.Array
    score: jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class Cells:
    """The board: sets of cells, and two numbers a cell that are zero but on blocks."""

    blocks: Bits  # everything that blocks walking
    data: Bits  # data blocks, in the open or inside question blocks; the others hold programs
    questions: Bits
    siphons: Bits  # data siphons to pick up
    siphoned: Bits
    center: Bits
    credits: jax.Array  # int8[36], 0..3
    energy: jax.Array  # int8[36], 0..3
    value: jax.Array  # int8[36], points of data, number of the program
    spawn: jax.Array  # int8[36], 0..99


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class Enemies:
    """The enemies in order of appearance."""

    count: jax.Array  # int32
    cell: jax.Array  # int8[32]
    type: jax.Array  # int8[32]
    hp: jax.Array  # int8[32]
    disabled: jax.Array  # int8[32]
    stunned: jax.Array  # bool[32]
    from_schedule: jax.Array  # bool[32]
    from_siphon: jax.Array  # bool[32]
    last: jax.Array  # int8[32]

    @property
    def alive(self) -> jax.Array:
        """bool[32]: which slots hold an enemy."""
        return self.count > ENEMY_SLOTS


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class Transmissions:
    """The transmissions in order of appearance."""

    count: jax.Array  # int32
    cell: jax.Array  # int8[36]
    turns: jax.Array  # int16[36]
    type: jax.Array  # int8[36]
    from_schedule: jax.Array  # bool[36]
    from_siphon: jax.Array  # bool[36]

    @property
    def alive(self) -> jax.Array:
        """bool[36]: which slots hold a transmission."""
        return self.count > TRANSMISSION_SLOTS


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """What UNDO saves and restores (section 8)."""

    player: Player
    cells: Cells
    enemies: Enemies
    transmissions: Transmissions
    owned: jax.Array  # uint32, bit n: program n
    acquired: jax.Array  # int8[23], owned program numbers in order of acquisition
    turn: jax.Array  # int32
    show: jax.Array  # bool
    calm: jax.Array  # bool
    atk_uses: jax.Array  # int32


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True, kw_only=True)
class State(Position):
    """A whole game: the position and what UNDO does not touch."""

    dice: Dice
    exit: jax.Array  # int32
    stage: jax.Array  # int32
    interval: jax.Array  # int32
    next_task: jax.Array  # int32
    pending: jax.Array  # int32
    step: jax.Array  # bool
    saved: Position  # UNDO states, every leaf [4, ...]: a ring
    saved_count: jax.Array  # int32, 0..4
    saved_newest: jax.Array  # int32, 0..3, place of the newest in the ring
    over: jax.Array  # int32: RUNNING, WON, DIED or INVALID_ACTION


def position_of(state: Position) -> Position:
    """The part of a state that UNDO saves."""
    return Position(**{f.name: getattr(state, f.name) for f in fields(Position)})


def with_position(state: State, position: Position) -> State:
    """The state with another position."""
    return replace(state, **{f.name: getattr(position, f.name) for f in fields(Position)})


def select(condition: jax.Array, yes: _T, no: _T) -> _T:
    """One of two trees, by a scalar condition."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def saturated(number: jax.Array) -> jax.Array:
    """A number that stops at the limit."""
    return jnp.minimum(number, LIMIT)


def enemy_cells(enemies: Enemies) -> Bits:
    """The cells with an enemy."""
    return of_cells(enemies.cell, enemies.alive)


def transmission_cells(transmissions: Transmissions) -> Bits:
    """The cells with a transmission."""
    return of_cells(transmissions.cell, transmissions.alive)


def empty_cells(position: Position) -> Bits:
    """The cells without player, enemy, transmission and block."""
    taken = enemy_cells(position.enemies) | transmission_cells(position.transmissions)
    return ~(taken | position.cells.blocks | of_cell(position.player.cell))


def row_of(cell: jax.Array) -> jax.Array:
    """int32: the row of cells 0..35."""
    return (cell.astype(jnp.int32) * 43) >> 8


def col_of(cell: jax.Array) -> jax.Array:
    """int32: the column of cells 0..35."""
    return cell.astype(jnp.int32) - SIZE * row_of(cell)


def manhattan(a: jax.Array, b: jax.Array) -> jax.Array:
    """int32: |row distance| + |col distance|."""
    return abs(row_of(a) - row_of(b)) + abs(col_of(a) - col_of(b))


def in_line(position: Position, cell: jax.Array) -> jax.Array:
    """bool: whether cells are in the player's row or column."""
    here = position.player.cell
    return (row_of(cell) == row_of(here)) | (col_of(cell) == col_of(here))


def seen(position: Position) -> jax.Array:
    """bool[32]: the enemies that the player sees: cryptogs only in line or after SHOW."""
    enemies = position.enemies
    hidden = (enemies.type == EnemyType.CRYPTOG) & ~position.show
    return enemies.alive & (~hidden | in_line(position, enemies.cell))


def first(matches: jax.Array) -> jax.Array:
    """Bool[n]: only the first of the matches, if there is one."""
    return matches & (jnp.cumsum(matches.astype(jnp.int32)) == 1)


def pick(values: jax.Array, chosen: jax.Array) -> jax.Array:
    """The value at the one place where `chosen` (bool[n]) is true; 0 if there is none."""
    return jnp.sum(jnp.where(chosen, values, 0).astype(jnp.int32))


def add_enemies(enemies: Enemies, new: Enemies, joins: jax.Array) -> Enemies:
    """Append those of `new` (fields of any length n) that join (bool[n]); there is room."""
    place = enemies.count + jnp.cumsum(joins.astype(jnp.int32)) - 1
    moved = _move(_pack(new, _ENEMY_BITS), place, joins, MAX_ENEMIES)
    words = jnp.where(enemies.alive, _pack(enemies, _ENEMY_BITS), moved)
    count = enemies.count + jnp.sum(joins, dtype=jnp.int32)
    return Enemies(count=count, **_unpack(words, _ENEMY_BITS))


def keep_enemies(enemies: Enemies, stays: jax.Array) -> Enemies:
    """Remove the enemies that do not stay (bool[32])."""
    stays &= enemies.alive
    place = jnp.cumsum(stays.astype(jnp.int32)) - 1
    words = _move(_pack(enemies, _ENEMY_BITS), place, stays, MAX_ENEMIES)
    count = jnp.sum(stays, dtype=jnp.int32)
    return Enemies(count=count, **_unpack(words, _ENEMY_BITS))


def keep_transmissions(transmissions: Transmissions, stays: jax.Array) -> Transmissions:
    """Remove the transmissions that do not stay (bool[36])."""
    stays &= transmissions.alive
    place = jnp.cumsum(stays.astype(jnp.int32)) - 1
    words = _move(_pack(transmissions, _TRANSMISSION_BITS), place, stays, CELLS)
    count = jnp.sum(stays, dtype=jnp.int32)
    return Transmissions(count=count, **_unpack(words, _TRANSMISSION_BITS))


def _move(words: jax.Array, place: jax.Array, moves: jax.Array, size: int) -> jax.Array:
    """uint32[size]: each word that moves at its new place, 0 elsewhere."""
    arrives = moves[None, :] & (place[None, :] == np.arange(size)[:, None])
    return jnp.sum(jnp.where(arrives, words[None, :], 0), axis=1, dtype=jnp.uint32)


# One word for each piece, so that moving it along its list is one sum: (field, bits) from bit 0.
_ENEMY_BITS = {
    "cell": 6,
    "type": 2,
    "hp": 2,
    "disabled": 7,
    "last": 6,
    "stunned": 1,
    "from_schedule": 1,
    "from_siphon": 1,
}
_TRANSMISSION_BITS = {"cell": 6, "turns": 15, "type": 2, "from_schedule": 1, "from_siphon": 1}


def _pack(pieces: Enemies | Transmissions, layout: dict[str, int]) -> jax.Array:
    words, shift = jnp.uint32(0), 0
    for name, bits in layout.items():
        words = words | (getattr(pieces, name).astype(jnp.uint32) << shift)
        shift += bits
    return words


def _unpack(words: jax.Array, layout: dict[str, int]) -> dict[str, jax.Array]:
    unpacked, shift = {}, 0
    for name, bits in layout.items():
        dtype = jnp.bool if bits == 1 else jnp.int16 if bits > 8 else jnp.int8
        unpacked[name] = ((words >> shift) & ((1 << bits) - 1)).astype(dtype)
        shift += bits
    return unpacked
