"""Sections 1 and 2: the pieces, and everything a game remembers, as scalars of one game.

Sets are bits (`bitboard.py`), numbers of cells and pieces are planes of such sets (`planes.py`).
Lists are slots in list order, filled from the front; behind `count` all bits are 0.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
from jax import lax

from hackmatrix.jaxgame import bitboard, planes
from hackmatrix.jaxgame.bitboard import CellSet, EnemySet, col_of, row_of
from hackmatrix.jaxgame.control_flow import compute_once
from hackmatrix.jaxgame.dice import Dice
from hackmatrix.jaxgame.planes import Coordinates, Numbers
from hackmatrix.rules.board import LIMIT
from hackmatrix.rules.enemies import MAX_ENEMIES, EnemyType

_T = TypeVar("_T")

RUNNING, WON, DIED, INVALID_ACTION = range(4)  # of State.over

AMOUNT_BITS, VALUE_BITS, SPAWN_BITS = 2, 5, 7  # of cells
TYPE_BITS, HP_BITS, DISABLED_BITS = 2, 2, 7  # of enemies
TURNS_BITS = 15  # of transmissions
LINE_BITS = 3  # of a row or a column

NOT_MOVED: Any = ()  # in place of `State.saved` where a rule leaves it alone: an empty tree


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
    """The board: sets of cells, and four numbers a cell that are zero but on blocks or free."""

    blocks: CellSet  # everything that blocks walking
    data: CellSet  # data blocks, in the open or inside question blocks; the others hold programs
    questions: CellSet
    siphons: CellSet  # data siphons to pick up
    siphoned: CellSet
    center: CellSet
    credits: Numbers[CellSet]  # 0..3
    energy: Numbers[CellSet]  # 0..3
    value: Numbers[CellSet]  # points of data, number of the program
    spawn: Numbers[CellSet]  # 0..99


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class Enemies:
    """The enemies in order of appearance: sets of slots, and planes of them."""

    count: jax.Array  # int32
    cell: Coordinates[EnemySet]
    type: Numbers[EnemySet]
    hp: Numbers[EnemySet]
    disabled: Numbers[EnemySet]
    stunned: EnemySet
    from_schedule: EnemySet
    from_siphon: EnemySet
    last: Coordinates[EnemySet]

    @property
    def alive(self) -> EnemySet:
        """The slots that hold an enemy."""
        return EnemySet.below(self.count)

    def of_type(self, kind: EnemyType) -> EnemySet:
        """The slots of the enemies of one type."""
        return planes.equal(self.type, int(kind)) & self.alive


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class Transmissions:
    """The transmissions in order of appearance: sets of slots (`CellSet`), and planes of them."""

    count: jax.Array  # int32
    cell: Coordinates[CellSet]
    turns: Numbers[CellSet]
    type: Numbers[CellSet]
    from_schedule: CellSet
    from_siphon: CellSet

    @property
    def alive(self) -> CellSet:
        """The slots that hold a transmission."""
        return CellSet.below(self.count)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """What UNDO saves and restores (section 8)."""

    player: Player
    cells: Cells
    enemies: Enemies
    transmissions: Transmissions
    owned: jax.Array  # uint32, bit n: program n
    acquired: Numbers[EnemySet]  # of slots: owned program numbers in order of acquisition
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
    enemies_at: CellSet  # cells with an enemy, as `enemies` has it
    coming_at: CellSet  # cells with a transmission, as `transmissions` has it
    saved: jax.Array  # uint32[4, w], the UNDO states as `packed` has them: a ring
    saved_count: jax.Array  # int32, 0..4
    saved_newest: jax.Array  # int32, 0..3, place of the newest in the ring
    over: jax.Array  # int32: RUNNING, WON, DIED or INVALID_ACTION


def position_of(state: State) -> Position:
    """The part of a state that UNDO saves."""
    return Position(**{f.name: getattr(state, f.name) for f in fields(Position)})


def with_position(state: State, position: Position) -> State:
    """The state with another position."""
    return replace(state, **{f.name: getattr(position, f.name) for f in fields(Position)})


def packed(position: Position) -> list[jax.Array]:
    """All values of a position as uint32."""
    return [x.astype(jnp.uint32) for x in jax.tree.leaves(position)]


def unpacked(words: Iterable[jax.Array], like: Position) -> Position:
    """The position that `packed` made these words of; `like` is any other."""
    leaves, tree = jax.tree.flatten(like)
    return jax.tree.unflatten(
        tree, [word.astype(leaf.dtype) for word, leaf in zip(words, leaves, strict=True)]
    )


def select(condition: jax.Array, yes: _T, no: _T) -> _T:
    """One of two trees, by a scalar condition."""
    return jax.tree.map(lambda a, b: lax.select(condition, jnp.asarray(a), jnp.asarray(b)), yes, no)


def saturated(number: jax.Array) -> jax.Array:
    """A number that stops at the limit."""
    return jnp.minimum(number, LIMIT)


def seen(position: Position) -> EnemySet:
    """The enemies that the player sees: cryptogs only in line or after SHOW."""
    enemies, here = position.enemies, position.player.cell
    in_line = enemies.cell.in_row(row_of(here)) | enemies.cell.in_col(col_of(here))
    hidden = enemies.of_type(EnemyType.CRYPTOG) & ~in_line & ~EnemySet.all_if(position.show)
    return enemies.alive & ~hidden


def land(
    enemies: Enemies, transmissions: Transmissions, due: CellSet, gone: CellSet
) -> tuple[Enemies, Transmissions]:
    """Due transmissions become enemies at the end of their list (section 4, step 2).

    Only as many as there is room for, in list order. Those that are gone are removed too.
    """
    room = MAX_ENEMIES - enemies.count
    next_one = bitboard.nth(due, jnp.minimum(room, due.size() - 1))
    landing = bitboard.select(due.size() > room, due & CellSet.below(next_one), due)
    landing, gaps = compute_once(due.any(), lambda: (landing, landing.compression()))

    def arriving(places: CellSet) -> EnemySet:
        return places.compressed(gaps).to_set32().shifted(enemies.count)

    def append(old: Numbers[EnemySet], new: Numbers[CellSet]) -> Numbers[EnemySet]:
        return tuple(a | arriving(b) for a, b in zip(old, new, strict=True))

    def append_spots(
        old: Coordinates[EnemySet], new: Coordinates[CellSet]
    ) -> Coordinates[EnemySet]:
        return Coordinates(append(old.row, new.row), append(old.col, new.col))

    everyone, daemons = arriving(landing), arriving(planes.equal(transmissions.type, 1))
    enemies = Enemies(
        count=enemies.count + landing.size(),
        cell=append_spots(enemies.cell, transmissions.cell),
        type=append(enemies.type, transmissions.type),
        hp=(enemies.hp[0] | daemons, enemies.hp[1] | everyone),  # 3 for daemons, 2 for others
        disabled=(enemies.disabled[0] | everyone, *enemies.disabled[1:]),
        stunned=enemies.stunned,
        from_schedule=enemies.from_schedule | arriving(transmissions.from_schedule),
        from_siphon=enemies.from_siphon | arriving(transmissions.from_siphon),
        last=append_spots(enemies.last, transmissions.cell),
    )
    return enemies, keep(transmissions, ~(landing | gone))


_List = TypeVar("_List", Enemies, Transmissions)


def keep(pieces: _List, stays: Any) -> _List:
    """Remove the pieces that are not in a set (`EnemySet` or `CellSet`); the others move up."""
    left = pieces.alive & stays
    gaps = compute_once(left.any(), left.compression)  # where nobody is left, nothing is kept
    moved = jax.tree.map(
        lambda x: x.compressed(gaps) if _is_set(x) else left.size(), pieces, is_leaf=_is_set
    )
    return cast(_List, moved)


def _is_set(tree: object) -> bool:
    return isinstance(tree, CellSet | EnemySet)
