"""Sections 1 and 2: the pieces, and the state of a game, as scalars.

The engine has a list of cells, of enemies and of transmissions; here each fact about all of them is
a set of indices (`bitboard.py`) or a value for each index (`planes.py`). Lists are slots in list
order, filled from the front; from `count` on all bits are 0. `docs/jax-engine.md` draws an example.
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from hackmatrix.game.jaxgame import planes
from hackmatrix.game.jaxgame.bitboard import (
    NOBODY,
    NOWHERE,
    CellSet,
    EnemySet,
    Set32,
    Set36,
    TransmissionSet,
    col_of,
    row_of,
)
from hackmatrix.game.jaxgame.dice import Dice
from hackmatrix.game.jaxgame.planes import BitPlanes, Coordinates
from hackmatrix.game.rules.board import LIMIT, MAX_POINTS, MAX_RESOURCE, MAX_SPAWN, SIZE
from hackmatrix.game.rules.enemies import MAX_DISABLED, MAX_HP, EnemyType
from hackmatrix.game.rules.programs import PROGRAMS

# Number of planes of each field with numbers, by the field's name.
NUM_PLANES = {
    "credits": MAX_RESOURCE.bit_length(),
    "energy": MAX_RESOURCE.bit_length(),
    "value": max(MAX_POINTS, len(PROGRAMS) - 1).bit_length(),
    "spawn": MAX_SPAWN.bit_length(),
    "type": max(EnemyType).bit_length(),
    "hp": max(MAX_HP).bit_length(),
    "disabled": MAX_DISABLED.bit_length(),
    "turns": LIMIT.bit_length(),
    "acquired": (len(PROGRAMS) - 1).bit_length(),
    "row": (SIZE - 1).bit_length(),
    "col": (SIZE - 1).bit_length(),
}

_Set = TypeVar("_Set", Set36, Set32)
_Tree = TypeVar("_Tree")


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class Player:
    """The player. Numbers without a range saturate at 32,767."""

    cell: jax.Array  # int32, 0..35
    hp: jax.Array  # int32, 0..3
    credits: jax.Array  # int32, pay for programs
    energy: jax.Array  # int32, likewise
    siphons: jax.Array  # int32, data siphons held
    attack: jax.Array  # int32, damage of one hit
    score: jax.Array  # int32, points of data blocks siphoned, and of SCORE


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class Cells:
    """The board: the engine's `Cell.content` is split into sets, each other fact is one field."""

    blocks: CellSet  # blocks of all kinds: what blocks walking and lines of fire
    data: CellSet  # data blocks, in the open or inside question blocks; other blocks hold programs
    questions: CellSet  # question blocks not siphoned yet
    siphons: CellSet  # data siphons to pick up
    siphoned: CellSet  # cells marked as siphoned
    center: CellSet  # cells where the player stood when siphoning
    credits: BitPlanes[CellSet]  # 0..3
    energy: BitPlanes[CellSet]  # 0..3
    value: BitPlanes[
        CellSet
    ]  # points 0..9 of data blocks, program number 0..22 of the other blocks
    spawn: BitPlanes[CellSet]  # 0..99, transmissions that siphoning the block brings


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class Enemies:
    """The enemies in order of appearance, at most 32."""

    count: jax.Array  # int32, 0..32
    cell: Coordinates[EnemySet]  # where each is
    type: BitPlanes[EnemySet]  # 0..3, an `EnemyType`
    hp: BitPlanes[EnemySet]  # 1..3; POLY may leave 0 until its blow is dealt
    disabled: BitPlanes[EnemySet]  # 0..99, turns it may not act
    stunned: EnemySet  # those hit since the last enemy turn
    from_schedule: EnemySet  # those of scheduled spawns
    from_siphon: EnemySet  # those owed to siphoning
    last: Coordinates[EnemySet]  # where the player saw it last; read for cryptogs alone

    @staticmethod
    def none() -> "Enemies":
        """No enemies."""
        return Enemies(
            count=jnp.int32(0),
            cell=_no_coordinates(NOBODY),
            type=zeros("type", NOBODY),
            hp=zeros("hp", NOBODY),
            disabled=zeros("disabled", NOBODY),
            stunned=NOBODY,
            from_schedule=NOBODY,
            from_siphon=NOBODY,
            last=_no_coordinates(NOBODY),
        )

    @property
    def alive(self) -> EnemySet:
        """The slots that hold an enemy."""
        return EnemySet.below(self.count)

    def of_type(self, *types: EnemyType) -> EnemySet:
        """The enemies of some types."""
        return planes.one_of(self.type, types) & self.alive

    def keep(self, stays: EnemySet) -> "Enemies":
        """Removes the enemies that are not in `stays`; the others move up in the list."""
        return _kept(self, stays)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class Transmissions:
    """The transmissions in order of appearance, at most 36."""

    count: jax.Array  # int32, 0..36
    cell: Coordinates[TransmissionSet]  # where each will land
    turns: BitPlanes[TransmissionSet]  # 0..32,767, turns left
    type: BitPlanes[TransmissionSet]  # 0..3, the `EnemyType` it becomes
    from_schedule: TransmissionSet  # those of scheduled spawns
    from_siphon: TransmissionSet  # those owed to siphoning

    @staticmethod
    def none() -> "Transmissions":
        """No transmissions."""
        return Transmissions(
            count=jnp.int32(0),
            cell=_no_coordinates(NOWHERE),
            turns=zeros("turns", NOWHERE),
            type=zeros("type", NOWHERE),
            from_schedule=NOWHERE,
            from_siphon=NOWHERE,
        )

    @property
    def alive(self) -> TransmissionSet:
        """The slots that hold a transmission."""
        return TransmissionSet.below(self.count)

    def keep(self, stays: TransmissionSet) -> "Transmissions":
        """Removes the transmissions that are not in `stays`; the others move up in the list."""
        return _kept(self, stays)


_Pieces = TypeVar("_Pieces", Enemies, Transmissions)


def _kept(pieces: _Pieces, stays: Any) -> _Pieces:
    left = pieces.alive & stays
    no_count: Any = None  # the only field that is not a set
    return replace(planes.compress(replace(pieces, count=no_count), left), count=left.size())


def zeros(field: str, nothing: _Set) -> BitPlanes[_Set]:
    """A numeric field (see `NUM_PLANES`) that is 0 everywhere; `nothing` is the empty set."""
    return (nothing,) * NUM_PLANES[field]


def _no_coordinates(nothing: _Set) -> Coordinates[_Set]:
    return Coordinates(zeros("row", nothing), zeros("col", nothing))


def empty_board() -> Cells:
    """36 empty cells."""
    return Cells(
        blocks=NOWHERE,
        data=NOWHERE,
        questions=NOWHERE,
        siphons=NOWHERE,
        siphoned=NOWHERE,
        center=NOWHERE,
        credits=zeros("credits", NOWHERE),
        energy=zeros("energy", NOWHERE),
        value=zeros("value", NOWHERE),
        spawn=zeros("spawn", NOWHERE),
    )


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The part of the state that UNDO saves and restores (section 8)."""

    player: Player
    cells: Cells
    enemies: Enemies
    transmissions: Transmissions
    owned: jax.Array  # uint32, bit n is set if program n is owned
    acquired: BitPlanes[Set32]  # slot i: the i-th program that was acquired, 0..22
    turn: jax.Array  # int32, enemy turns in this stage
    show: jax.Array  # bool, SHOW has run in this stage
    calm: jax.Array  # bool, CALM has run in this stage
    atk_uses: jax.Array  # int32, 0..2, runs of ATK+ in this stage

    def visible_enemies(self) -> EnemySet:
        """The enemies that the player sees: cryptogs only if in line or if SHOW is on."""
        enemies, here = self.enemies, self.player.cell
        in_line = enemies.cell.in_row(row_of(here)) | enemies.cell.in_col(col_of(here))
        hidden = enemies.of_type(EnemyType.CRYPTOG) & ~in_line & ~EnemySet.all_if(self.show)
        return enemies.alive & ~hidden


class Ending(IntEnum):
    """Endings of games; a running game has a number here too, where the Python engine has None."""

    RUNNING = 0
    WON = 1
    DIED = 2
    INVALID_ACTION = 3


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class SavedPositions:
    """The positions that UNDO can restore, as a ring buffer of rows (`undo.py`)."""

    rows: jax.Array  # uint32[4, w], a position in w words each
    count: jax.Array  # int32, 0..4, positions that can be restored
    newest: jax.Array  # int32, 0..3, row of the newest


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True, kw_only=True)
class State(Position):
    """The complete state of a game: the position and all that UNDO does not change."""

    dice: Dice
    exit: jax.Array  # int32, its cell
    stage: jax.Array  # int32, 1..8
    interval: jax.Array  # int32, turns between scheduled spawns
    next_task: jax.Array  # int32, turn of the next scheduled spawn
    pending: jax.Array  # int32, spawns owed by siphoning
    step: jax.Array  # bool, STEP: the next enemy turn does not happen
    enemies_at: CellSet  # cells with an enemy: follows from `enemies`, kept because many rules ask
    transmissions_at: CellSet  # cells with a transmission, likewise
    saved: SavedPositions
    over: jax.Array  # int32, an `Ending`


def saturate(value: jax.Array) -> jax.Array:
    """The number, at most `LIMIT`."""
    return jnp.minimum(value, LIMIT)
