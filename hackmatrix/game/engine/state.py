"""Sections 1 and 2: the pieces and the state of a game."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.events import Event
from hackmatrix.game.rules.board import BLOCKS, CELLS, LIMIT, Content, col, row
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.stages import FIRST_INTERVAL
from hackmatrix.game.rules.stages import MAX_HP as PLAYER_HP


def saturate(value: int) -> int:
    """The number, at most `LIMIT`."""
    return min(value, LIMIT)


@dataclass(slots=True)
class Cell:
    """One cell of the board. The last four fields are nonzero on blocks only."""

    content: Content = Content.EMPTY
    credits: int = 0  # 0..3
    energy: int = 0  # 0..3
    siphoned: bool = False
    center: bool = False  # the player stood here when siphoning
    points: int = 0  # 0..9, of a data block
    program: int = 0  # 0..22, of a program block
    spawn: int = 0  # 0..99
    holds_data: bool = False  # question blocks: whether data is inside

    @property
    def is_block(self) -> bool:
        """Whether the cell blocks walking and lines of fire."""
        return self.content in BLOCKS

    @property
    def is_data(self) -> bool:
        """Whether it is a data block, in the open or inside a question block."""
        return self.content == Content.DATA or self.holds_data

    @property
    def is_program(self) -> bool:
        """Whether it is a program block, in the open or inside a question block."""
        return self.is_block and not self.is_data


@dataclass(slots=True)
class Player:
    """The player; numbers saturate at 32,767."""

    cell: int
    hp: int = PLAYER_HP
    credits: int = 0
    energy: int = 0
    siphons: int = 0
    attack: int = 1
    score: int = 0

    def add(self, *, credits: int = 0, energy: int = 0, siphons: int = 0, score: int = 0) -> None:
        """Adds to the player's numbers (negative to pay); they saturate at the limit."""
        self.credits = saturate(self.credits + credits)
        self.energy = saturate(self.energy + energy)
        self.siphons = saturate(self.siphons + siphons)
        self.score = saturate(self.score + score)


@dataclass(slots=True)
class Enemy:
    """An enemy on the board."""

    type: EnemyType
    cell: int
    hp: int
    disabled: int = 0  # number of turns for which it may not act
    stunned: bool = False
    from_schedule: bool = False
    from_siphon: bool = False
    last: int = -1  # where a cryptog was last seen; its own cell if not given

    def __post_init__(self) -> None:
        if self.last < 0:
            self.last = self.cell


@dataclass(slots=True)
class Transmission:
    """A transmission: becomes an enemy after `turns` turns."""

    cell: int
    turns: int
    type: EnemyType
    from_schedule: bool = False
    from_siphon: bool = False


def empty_board() -> list[Cell]:
    """36 empty cells."""
    return [Cell() for _ in range(CELLS)]


@dataclass(slots=True, kw_only=True)
class Position:
    """The part of the state that UNDO saves and restores (section 8)."""

    player: Player
    cells: list[Cell] = field(default_factory=empty_board)
    enemies: list[Enemy] = field(default_factory=list)  # in order of appearance, at most 32
    transmissions: list[Transmission] = field(default_factory=list)  # likewise, at most 36
    owned: list[int] = field(default_factory=list)  # program numbers in order of acquisition
    turn: int = 0  # enemy turns in this stage
    show: bool = False
    calm: bool = False
    atk_uses: int = 0  # uses of ATK+ in this stage

    def blocks(self) -> set[int]:
        """Cells with a block."""
        return {cell for cell, content in enumerate(self.cells) if content.is_block}

    def occupied(self) -> set[int]:
        """Cells with an enemy or a transmission."""
        return {enemy.cell for enemy in self.enemies} | {t.cell for t in self.transmissions}

    def enemies_on(self, cell: int) -> list[Enemy]:
        """The enemies that share a cell, in list order."""
        return [enemy for enemy in self.enemies if enemy.cell == cell]

    def enemies_of_type(self, enemy_type: EnemyType) -> list[Enemy]:
        """The enemies of one type, in list order."""
        return [enemy for enemy in self.enemies if enemy.type == enemy_type]

    def transmission_on(self, cell: int) -> Transmission | None:
        """The transmission on a cell, or None."""
        return next((t for t in self.transmissions if t.cell == cell), None)

    def in_line(self, cell: int) -> bool:
        """Whether the cell is in the player's row or column."""
        here = self.player.cell
        return row(cell) == row(here) or col(cell) == col(here)

    def sees(self, enemy: Enemy) -> bool:
        """Whether the player sees the enemy: cryptogs only in line or after SHOW."""
        return enemy.type != EnemyType.CRYPTOG or self.show or self.in_line(enemy.cell)

    def unsiphoned_blocks(self) -> Iterator[Cell]:
        """The blocks that are not siphoned."""
        return (cell for cell in self.cells if cell.is_block and not cell.siphoned)


class Ending(StrEnum):
    """Endings of games."""

    WON = "won"
    DIED = "died"
    INVALID_ACTION = "invalid_action"


@dataclass(slots=True, kw_only=True)
class State(Position):
    """The complete state of a game: the position and all that UNDO does not change."""

    dice: Dice
    exit: int
    stage: int = 1  # 1..8
    interval: int = FIRST_INTERVAL  # between scheduled spawns
    next_task: int = FIRST_INTERVAL  # turn of the next one
    pending: int = 0  # spawns pending from siphoning
    step: bool = False  # STEP is on: the next enemy turn is skipped
    saved: list[Position] = field(default_factory=list)  # UNDO states, newest last, at most 4
    over: Ending | None = None
    events: list[Event] = field(default_factory=list)  # of the current action
