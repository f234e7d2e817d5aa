"""Layout `tactical`: the board after an attack or a program that strikes or moves enemies."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.game.foresight.jax_board import VisibleState, meet, stack
from hackmatrix.game.jaxgame import bitboard, planes
from hackmatrix.game.jaxgame.bitboard import CellSet, neighbours
from hackmatrix.game.jaxgame.control_flow import rounds
from hackmatrix.game.rules.board import CELLS, NEIGHBOUR, SIZE
from hackmatrix.game.rules.enemies import MAX_HP, EnemyType
from hackmatrix.game.rules.programs import ProgramId
from hackmatrix.game.rules.tactical import STRIKES


class Board(NamedTuple):
    """The pieces before the enemy turn, as they are or after an action: axes [V, N]."""

    blocks: CellSet
    enemies: CellSet
    able: CellSet  # enemies that will act
    viruses: CellSet  # those of them that are viruses
    transmissions: CellSet

    @property
    def open(self) -> CellSet:
        """Cells that an enemy can cross."""
        return ~(self.blocks | self.enemies | self.transmissions)


def hitters(goal: CellSet, board: Board) -> CellSet:
    """The enemies that hit a player on a cell: neighbours, and viruses two free steps away."""
    near = neighbours(goal)
    two = neighbours(meet(near, board.open))
    return meet(near, board.able) | meet(two, board.viruses, ~goal)


def board_of(visible: VisibleState) -> Board:
    """The board as it is, [N]."""
    return Board(
        visible.blocks, visible.enemies, visible.able, visible.able_viruses, visible.transmissions
    )


def surviving(visible: VisibleState) -> CellSet:
    """The enemies that would survive a hit of the player."""
    attack = jnp.minimum(visible.scalars["attack"], max(MAX_HP))
    return planes.at_least(visible.hp, attack) & ~planes.equal(visible.hp, attack)


def after_strikes(visible: VisibleState, survivors: CellSet) -> tuple[Board, jax.Array, jax.Array]:
    """The board as it is and after each of `STRIKES`; what each strikes and destroys, [S, N]."""
    enemies, here, able, viruses = visible.enemies, visible.here, visible.able, visible.able_viruses
    around = bitboard.around(here)
    daemon = _nearest(visible.cell, visible.by_type[EnemyType.DAEMON])
    beside = bitboard.around(daemon) & enemies
    tough = planes.at_least(visible.hp, jnp.full_like(visible.cell, 2))  # survive 1 damage
    row = bitboard.row_cells(bitboard.row_of(visible.cell))
    col = bitboard.col_cells(bitboard.col_of(visible.cell))
    struck = {
        ProgramId.CRASH: enemies & around,
        ProgramId.DEBUG: enemies & visible.blocks,
        ProgramId.ROW: enemies & row,
        ProgramId.COL: enemies & col,
        ProgramId.D_BOM: daemon | beside,
        ProgramId.ANTI_V: visible.by_type[EnemyType.VIRUS],
        ProgramId.HACK: enemies & visible.siphoned,
    }
    dead = {program: cells & ~survivors for program, cells in struck.items()}
    dead[ProgramId.CRASH] = struck[ProgramId.CRASH]
    dead[ProgramId.D_BOM] = daemon | (beside & ~tough)
    dead[ProgramId.ANTI_V] = struck[ProgramId.ANTI_V] & ~tough
    nothing = enemies & ~enemies
    boards = [board_of(visible)]
    counts, kills = [], []
    for program in STRIKES:
        if program in struck:
            hit, gone = struck[program], dead[program]
            crash = program == ProgramId.CRASH
            cleared = around if crash else nothing
            boards.append(
                Board(
                    visible.blocks & ~cleared,
                    enemies & ~gone,
                    able & ~hit,
                    viruses & ~hit,
                    visible.transmissions & ~cleared,
                )
            )
            counts.append(hit.size())
            kills.append(gone.size() + (visible.transmissions & cleared).size())
        else:
            shifted = _shift(visible.cell, away=program == ProgramId.PUSH)
            boards.append(
                Board(
                    visible.blocks,
                    shifted(enemies),
                    shifted(able),
                    shifted(viruses),
                    visible.transmissions,
                )
            )
            counts.append(enemies.size())
            kills.append(jnp.zeros_like(visible.cell))
    everything = Board(*(stack(sets) for sets in zip(*boards, strict=True)))
    return everything, jnp.stack(counts), jnp.stack(kills)


def _nearest(cell: jax.Array, pieces: CellSet) -> CellSet:
    """The one nearest to a cell by rows and columns, that with the lowest number among equals."""
    here = bitboard.of_cell(cell)

    def widen(_: jax.Array, inside: CellSet) -> CellSet:
        further = inside | neighbours(inside)
        return bitboard.select((pieces & inside).any(), inside, further)

    inside = rounds(2 * SIZE - 2, widen, here)
    return (pieces & inside).first()


def _shift(cell: jax.Array, *, away: bool) -> Callable[[CellSet], CellSet]:
    """PUSH and PULL of a set of enemies, as if none were in another's way."""
    here = bitboard.of_cell(cell)
    before, row, col = (
        CellSet.below(cell),
        bitboard.row_cells(bitboard.row_of(cell)),
        bitboard.col_cells(bitboard.col_of(cell)),
    )
    below, above = before & ~row, ~before & ~row
    west = _cols_below(bitboard.col_of(cell))
    east = ~west & ~col
    sides = {
        bitboard.up: above if away else below,
        bitboard.down: below if away else above,
        bitboard.left: west if away else east,
        bitboard.right: east if away else west,
    }

    def shifted(pieces: CellSet) -> CellSet:
        result = pieces & here
        rows = ((bitboard.up, sides[bitboard.up]), (bitboard.down, sides[bitboard.down]))
        cols = ((bitboard.left, sides[bitboard.left]), (bitboard.right, sides[bitboard.right]))
        for to_row, side in rows:
            result = result | _slid(pieces & side & col, to_row, here)
        for to_col, side in cols:
            result = result | _slid(pieces & side & row, to_col, here)
        for to_row, row_side in rows:
            for to_col, col_side in cols:
                part = pieces & row_side & col_side
                by_row = part & _INSIDE[to_row]
                both = by_row & _INSIDE[to_col]
                if away:
                    result = result | to_col(to_row(both)) | to_row(by_row & ~both)
                    rest = part & ~by_row
                    result = result | _slid(rest, to_col, here)
                else:  # next to the player by a corner: the row changes
                    corner = both & _BACK[to_row](_BACK[to_col](here))
                    result = result | to_col(to_row(both & ~corner)) | to_row(corner)
        return result

    return shifted


_BACK: dict[Callable[[CellSet], CellSet], Callable[[CellSet], CellSet]] = {
    bitboard.up: bitboard.down,
    bitboard.down: bitboard.up,
    bitboard.left: bitboard.right,
    bitboard.right: bitboard.left,
}


# The cells that have a neighbour in a direction.
_INSIDE: dict[Callable[[CellSet], CellSet], CellSet] = {
    direction: bitboard.constant(c for c in range(CELLS) if NEIGHBOUR[c][i] is not None)
    for i, direction in enumerate(bitboard.DIRECTIONS)
}


def _slid(pieces: CellSet, direction: Callable[[CellSet], CellSet], here: CellSet) -> CellSet:
    """The pieces moved one cell; those that would leave the board or reach the player stay."""
    moving = pieces & _INSIDE[direction] & ~_BACK[direction](here)
    return direction(moving) | (pieces & ~moving)


def _cols_below(col: jax.Array) -> CellSet:
    """The cells in a column below a number."""
    bits = (jnp.uint32(1) << col.astype(jnp.uint32)) - 1
    word = bits | bits << SIZE | bits << 2 * SIZE
    return CellSet(word, word)
