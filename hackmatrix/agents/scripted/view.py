"""What the player sees, as the scripted player thinks of it.

A `View` is made from the compact record of the observation, so it cannot hold anything hidden:
no cryptog out of sight, no content of a question block, no type of a transmission, no dice.
"""

from typing import NamedTuple

from hackmatrix.agents.scripted.cells import BIT
from hackmatrix.game.rules.board import CELLS
from hackmatrix.game.rules.enemies import MAX_HP as ENEMY_HP
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.observation import (
    BYTE,
    CELL,
    ENEMY,
    RESOURCE,
    SPAWN,
    TRANSMISSION,
    VALUE,
    CellBytes,
    number_of,
)


class Enemy(NamedTuple):
    """An enemy that the player sees."""

    kind: int
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


class View(NamedTuple):
    """Everything that the player sees and that matters to the scripted player."""

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
    enemies: tuple[Enemy, ...]  # by cell
    transmissions: int
    landing: int  # the transmissions that land in the coming enemy turn
    last_seen: int  # where cryptogs that are hidden now were last seen


def view_of(record: bytes) -> View:
    """The view of a compact record (`rules.observation`)."""
    enemies: list[Enemy] = []
    transmissions = landing = last_seen = 0
    for cell in range(CELLS):
        if record[ENEMY + cell] or record[TRANSMISSION + cell] & 127 or record[CELL + cell] >> 6:
            here = CellBytes(*record[cell : len(CellBytes._fields) * CELLS : CELLS])
            enemies += _enemies(cell, here)
            if here.field("transmission"):
                transmissions |= BIT[cell]
                landing |= BIT[cell] * (here.field("turns") <= 1)
            last_seen |= BIT[cell] * here.field("last_seen")
    return View(
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
        board=_board(record),
        enemies=tuple(enemies),
        transmissions=transmissions,
        landing=landing,
        last_seen=last_seen,
    )


def unknown_enemy(cell: int) -> Enemy:
    """What an enemy of unknown kind is taken for: a fresh glitch."""
    return Enemy(EnemyType.GLITCH, cell, ENEMY_HP[EnemyType.GLITCH], False)


def _enemies(cell: int, here: CellBytes) -> list[Enemy]:
    """The enemies seen on a cell: the first one's kind and hp stand for all.

    Where a hidden cryptog is the first, those seen with it count as fresh glitches.
    """
    kind = here.field("enemy_type") - 1
    if kind < 0:
        return [unknown_enemy(cell)] * here.field("enemies_seen")
    enemy = Enemy(kind, cell, here.field("enemy_hp"), bool(here.field("stunned")))
    return [enemy] * here.field("enemies_seen")


class _Content(NamedTuple):
    """The byte of a cell's content, decoded."""

    block: int
    siphoned: int
    data_siphon: int
    exit: int


_CONTENT = [_Content(*map(CellBytes(cell=byte).field, _Content._fields)) for byte in range(256)]
_RESOURCES = [
    (CellBytes(resource=byte).field("credits"), CellBytes(resource=byte).field("energy"))
    for byte in range(256)
]


def _board(record: bytes) -> Board:
    blocks = data_siphons = siphoned = exit = 0
    resources: dict[int, tuple[int, int]] = {}
    unsiphoned: dict[int, Block] = {}
    for cell in range(CELLS):
        content = _CONTENT[record[CELL + cell]]
        siphoned |= BIT[cell] * content.siphoned
        if content.block:
            blocks |= BIT[cell]
            if not content.siphoned:
                unsiphoned[cell] = Block(content.block, record[VALUE + cell], record[SPAWN + cell])
            continue
        data_siphons |= BIT[cell] * content.data_siphon
        exit = cell if content.exit else exit
        amounts = _RESOURCES[record[RESOURCE + cell]]
        if any(amounts) and not content.siphoned:
            resources[cell] = amounts
    return Board(blocks, exit, data_siphons, siphoned, resources, unsiphoned)
