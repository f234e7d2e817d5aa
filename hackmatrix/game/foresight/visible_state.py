"""The board as the player sees it.

A `VisibleState` is made from the compact record of an observation, or from a state by what is
visible of it. So it cannot hold anything hidden: no cryptog out of sight, no content of a question
block, no type of a transmission, no dice.
"""

from collections.abc import Iterable
from typing import NamedTuple

from hackmatrix.game.engine.state import State
from hackmatrix.game.foresight.cell_sets import BIT
from hackmatrix.game.rules.board import BLOCKS, CELLS, Content
from hackmatrix.game.rules.enemies import MAX_HP as ENEMY_HP
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.observation import (
    BYTE,
    CELL,
    MAX_SEEN,
    RESOURCE,
    SPAWN,
    VALUE,
    CellBytes,
    number_of,
)


class VisibleEnemy(NamedTuple):
    """An enemy that the player sees."""

    type: int
    cell: int
    hp: int
    stunned: bool


class Block(NamedTuple):
    """An unsiphoned block. Of a question block nothing is known: value and spawn are 0."""

    content: int
    value: int  # points of data, or number of the program
    spawn: int


class Board(NamedTuple):
    """The cells of a stage; sets are bits of an int."""

    blocks: int  # siphoned ones too
    exit: int  # a cell
    data_siphons: int
    siphoned: int
    resources: dict[int, tuple[int, int]]  # credits and energy of unsiphoned cells without a block
    unsiphoned: dict[int, Block]


class VisibleState(NamedTuple):
    """The board as the player sees it, or would after an action; sets are bits of an int."""

    cell: int
    hp: int
    credits: int
    energy: int
    siphons: int
    attack: int
    stage: int
    owned: int  # bit n for program n
    atk_uses: int
    pending: int
    show: bool
    calm: bool
    step: bool
    board: Board
    enemies: tuple[VisibleEnemy, ...]  # by cell
    transmissions: int
    landing: int  # the transmissions that land in the coming enemy turn
    last_seen: int  # where cryptogs that are hidden now were last seen

    @property
    def pieces(self) -> int:
        """The cells with an enemy or a transmission."""
        cells = self.transmissions
        for enemy in self.enemies:
            cells |= BIT[enemy.cell]
        return cells

    @property
    def stops(self) -> int:
        """Cells on which no enemy can walk."""
        return self.pieces | self.board.blocks

    @classmethod
    def of_record(cls, record: bytes) -> "VisibleState":
        """The board that a compact record (`rules.observation`) shows."""
        enemies: list[VisibleEnemy] = []
        transmissions = landing = last_seen = 0
        for cell in range(CELLS):
            here = CellBytes(*record[cell : len(CellBytes._fields) * CELLS : CELLS])
            if here.enemy or here.transmission & 127 or here.cell >> 6:  # else nobody is there
                shown = unknown_enemy(cell)
                if enemy_type := here.field("enemy_type"):
                    stunned = bool(here.field("stunned"))
                    shown = VisibleEnemy(enemy_type - 1, cell, here.field("enemy_hp"), stunned)
                enemies += [shown] * here.field("enemies_seen")
                if here.field("transmission"):
                    transmissions |= BIT[cell]
                    landing |= BIT[cell] * (here.field("turns") <= 1)
                last_seen |= BIT[cell] * here.field("last_seen")
        return cls(
            cell=record[BYTE["cell"]],
            hp=record[BYTE["hp"]],
            credits=number_of(record, "credits"),
            energy=number_of(record, "energy"),
            siphons=number_of(record, "siphons"),
            attack=number_of(record, "attack"),
            stage=record[BYTE["stage"]],
            owned=number_of(record, "owned"),
            atk_uses=record[BYTE["atk_uses"]],
            pending=number_of(record, "pending"),
            show=bool(number_of(record, "show")),
            calm=bool(number_of(record, "calm")),
            step=bool(number_of(record, "step")),
            board=_board(
                (*_CONTENT[content], *_RESOURCES[resource], value, spawn)
                for content, resource, value, spawn in zip(
                    *(record[plane : plane + CELLS] for plane in (CELL, RESOURCE, VALUE, SPAWN)),
                    strict=True,
                )
            ),
            enemies=tuple(enemies),
            transmissions=transmissions,
            landing=landing,
            last_seen=last_seen,
        )

    @classmethod
    def of_state(cls, state: State) -> "VisibleState":
        """The board that the record of a state shows, several times as fast as by way of it."""
        player = state.player
        transmissions = landing = last_seen = owned = 0
        for transmission in state.transmissions:
            transmissions |= BIT[transmission.cell]
            if transmission.turns <= 1:
                landing |= BIT[transmission.cell]
        for enemy in state.enemies:
            if not state.sees(enemy):
                last_seen |= BIT[enemy.last]
        for program in state.owned:
            owned |= 1 << program
        return cls(
            cell=player.cell,
            hp=player.hp,
            credits=player.credits,
            energy=player.energy,
            siphons=player.siphons,
            attack=player.attack,
            stage=state.stage,
            owned=owned,
            atk_uses=state.atk_uses,
            pending=state.pending,
            show=state.show,
            calm=state.calm,
            step=state.step,
            board=_board(
                (c.content, c.siphoned, c.credits, c.energy, c.points or c.program, c.spawn)
                for c in state.cells
            ),
            enemies=_enemies(state),
            transmissions=transmissions,
            landing=landing,
            last_seen=last_seen,
        )


def unknown_enemy(cell: int) -> VisibleEnemy:
    """The stand-in for an enemy of unknown type: a fresh glitch."""
    return VisibleEnemy(EnemyType.GLITCH, cell, ENEMY_HP[EnemyType.GLITCH], False)


def _enemies(state: State) -> tuple[VisibleEnemy, ...]:
    """The enemies seen: the type and hp of the first one on a cell stand for all there.

    Where a hidden cryptog is the first, those seen with it count as unknown.
    """
    visible: list[VisibleEnemy] = []
    for cell in sorted({enemy.cell for enemy in state.enemies}):
        here = state.enemies_on(cell)
        first = here[0]
        shown = (
            VisibleEnemy(first.type, cell, first.hp, first.stunned)
            if state.sees(first)
            else unknown_enemy(cell)
        )
        visible += [shown] * min(sum(map(state.sees, here)), MAX_SEEN)
    return tuple(visible)


# Of a cell: its content, whether it is siphoned, credits, energy, and of a block value and spawn.
_Facts = tuple[int, bool, int, int, int, int]


def _content(byte: int) -> tuple[int, bool]:
    """The content of a cell, and whether it is siphoned."""
    here = CellBytes(cell=byte)
    other = Content.SIPHON * here.field("data_siphon") or Content.EXIT * here.field("exit")
    return here.field("block") or other, bool(here.field("siphoned"))


_CONTENT = [_content(byte) for byte in range(256)]
_RESOURCES = [
    (CellBytes(resource=byte).field("credits"), CellBytes(resource=byte).field("energy"))
    for byte in range(256)
]


# Looking a member up takes longer than all else that is done with a cell.
_FIRST_BLOCK, *_, _QUESTION = BLOCKS
_SIPHON, _EXIT = Content.SIPHON, Content.EXIT


def _board(cells: Iterable[_Facts]) -> Board:
    blocks = data_siphons = siphoned = exit = 0
    resources: dict[int, tuple[int, int]] = {}
    unsiphoned: dict[int, Block] = {}
    for cell, (content, is_siphoned, credits, energy, value, spawn) in enumerate(cells):
        if is_siphoned:
            siphoned |= BIT[cell]
        if _FIRST_BLOCK <= content <= _QUESTION:
            blocks |= BIT[cell]
            if not is_siphoned:
                known = content != _QUESTION
                unsiphoned[cell] = Block(content, value * known, spawn * known)
            continue
        if content == _SIPHON:
            data_siphons |= BIT[cell]
        elif content == _EXIT:
            exit = cell
        if (credits or energy) and not is_siphoned:
            resources[cell] = credits, energy
    return Board(blocks, exit, data_siphons, siphoned, resources, unsiphoned)
