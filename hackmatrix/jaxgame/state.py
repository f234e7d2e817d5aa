"""Sections 1 and 2: the pieces, and everything a game remembers, as arrays of one game.

Lists are arrays in list order, filled from the front; what lies behind `count` means nothing.
"""

from dataclasses import dataclass, fields, replace
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.jaxgame.bitboard import (
    Bits,
    highest,
    lowest,
    of_cell,
    of_cells,
    of_mask,
    to_mask,
)
from hackmatrix.jaxgame.dice import Dice
from hackmatrix.jaxgame.loops import repeat
from hackmatrix.rules.board import CELLS, LIMIT, SIZE
from hackmatrix.rules.enemies import MAX_ENEMIES, MAX_HP, EnemyType

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


def slots(mask: jax.Array) -> jax.Array:
    """uint32: a bit for each place of a bool[n], n at most 32."""
    places = np.arange(mask.shape[0], dtype=np.uint32)
    return jnp.sum(mask.astype(jnp.uint32) << places, dtype=jnp.uint32)


def first(matches: jax.Array) -> jax.Array:
    """bool[32]: only the first of the matches, if there is one."""
    bits = slots(matches)
    lowest = bits & (jnp.uint32(0) - bits)
    return (lowest >> ENEMY_SLOTS.astype(np.uint32)) & 1 == 1


def pick(values: jax.Array, chosen: jax.Array) -> jax.Array:
    """int32 (uint32 of uint32): the value at the one place where `chosen` is true, 0 if nowhere."""
    dtype = jnp.uint32 if values.dtype == jnp.uint32 else jnp.int32
    return jnp.sum(jnp.where(chosen, values, 0), dtype=dtype)


def max_hp(kind: jax.Array) -> jax.Array:
    """Full hp of enemy types, in their dtype."""
    daemon = kind == EnemyType.DAEMON
    return jnp.where(daemon, MAX_HP[EnemyType.DAEMON], MAX_HP[EnemyType.VIRUS]).astype(kind.dtype)


def land(
    enemies: Enemies, transmissions: Transmissions, due: jax.Array
) -> tuple[Enemies, jax.Array]:
    """Append the enemies that transmissions become (section 4, step 2), while there is room.

    Args:
        enemies: the list they join.
        transmissions: the list they come from.
        due: bool[36], which of them are to land, in list order.

    Returns:
        The enemies, and bool[36] which transmissions have landed.
    """
    fresh = Enemies(
        count=transmissions.count,
        cell=transmissions.cell,
        type=transmissions.type,
        hp=max_hp(transmissions.type),
        disabled=jnp.ones(CELLS, jnp.int8),
        stunned=jnp.zeros(CELLS, jnp.bool),
        from_schedule=transmissions.from_schedule,
        from_siphon=transmissions.from_siphon,
        last=transmissions.cell,
    )
    new_words, waiting = _pack(fresh, _ENEMY_BITS), of_mask(due)
    number = jnp.minimum(waiting.size(), MAX_ENEMIES - enemies.count)

    def append(i: jax.Array, carry: tuple[jax.Array, Bits]) -> tuple[jax.Array, Bits]:
        words, waiting = carry
        lands = i < number
        slot = lowest(waiting)
        word = pick(new_words, slot == TRANSMISSION_SLOTS)
        words = jnp.where((enemies.count + i == ENEMY_SLOTS) & lands, word, words)
        return words, waiting & ~of_cell(slot).where(lands)

    start = _pack(enemies, _ENEMY_BITS), waiting
    words, left = repeat(number, append, start)
    landed = to_mask(waiting & ~left)
    return Enemies(count=enemies.count + number, **_unpack(words, _ENEMY_BITS)), landed


def keep_enemies(enemies: Enemies, stays: jax.Array) -> Enemies:
    """Remove the enemies that do not stay (bool[32])."""
    removed = of_mask(enemies.alive & ~stays)
    words = _remove(_pack(enemies, _ENEMY_BITS), removed)
    return Enemies(count=enemies.count - removed.size(), **_unpack(words, _ENEMY_BITS))


def keep_transmissions(transmissions: Transmissions, stays: jax.Array) -> Transmissions:
    """Remove the transmissions that do not stay (bool[36])."""
    removed = of_mask(transmissions.alive & ~stays)
    words = _remove(_pack(transmissions, _TRANSMISSION_BITS), removed)
    count = transmissions.count - removed.size()
    return Transmissions(count=count, **_unpack(words, _TRANSMISSION_BITS))


def _remove(words: jax.Array, removed: Bits) -> jax.Array:
    """The list without the places in `removed`: from the last on, all behind move up by one."""
    places = np.arange(words.shape[0])

    def remove(_: jax.Array, carry: tuple[jax.Array, Bits]) -> tuple[jax.Array, Bits]:
        words, left = carry
        place = jnp.where(left.any(), highest(left), words.shape[0])
        words = jnp.where(places >= place, jnp.roll(words, -1), words)
        return words, left & ~of_cell(place)

    return repeat(removed.size(), remove, (words, removed))[0]


# A piece as one word, so that moving it along its list moves one array: fields from bit 0 on.
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
