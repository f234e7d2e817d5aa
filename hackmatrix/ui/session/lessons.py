"""The tutorial: six rooms, each with one sentence, a position and what is to be done in it."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.state import Cell, Ending, Enemy, Player, State, empty_board
from hackmatrix.game.rules.board import Content
from hackmatrix.game.rules.enemies import MAX_HP, EnemyType
from hackmatrix.game.rules.programs import PROGRAMS, ProgramId
from hackmatrix.game.rules.stages import MAX_HP as PLAYER_HP

_NEVER = 99  # no scheduled spawn comes in a room
FUNDS = 9


class Lesson(NamedTuple):
    """A room of the tutorial."""

    title: str
    text: str
    start: Callable[[], State]
    is_done: Callable[[State], bool]
    is_lost: Callable[[State], bool] = lambda _: False  # besides a death


def room(player: Player, cells: dict[int, Cell], enemies: Iterable[Enemy] = ()) -> State:
    """A position of stage 1 with the exit in the upper right corner."""
    board = empty_board()
    for cell, content in {35: Cell(Content.EXIT), **cells}.items():
        board[cell] = content
    return State(
        player=player,
        cells=board,
        enemies=list(enemies),
        dice=Dice(0, 0),
        exit=35,
        interval=_NEVER,
        next_task=_NEVER,
    )


def enemy(enemy_type: EnemyType, cell: int, hp: int | None = None) -> Enemy:
    """An enemy, whole if `hp` is not given."""
    return Enemy(enemy_type, cell, MAX_HP[enemy_type] if hp is None else hp)


def data_block(points: int) -> Cell:
    """A data block, from which as many enemies come as it has points."""
    return Cell(Content.DATA, points=points, spawn=points)


def program_block(program: ProgramId) -> Cell:
    """A program block."""
    return Cell(Content.PROGRAM, program=program, spawn=PROGRAMS[program].spawn)


def _moving() -> State:
    return room(Player(28), {22: data_block(4), 27: data_block(2)})


def _shooting() -> State:
    return room(Player(12), {9: data_block(1)}, [enemy(EnemyType.VIRUS, 17)])


def _siphoning() -> State:
    cells = {0: Cell(Content.SIPHON), 1: Cell(credits=2), 6: Cell(energy=3), 7: Cell(energy=1)}
    return room(Player(2), cells)


def _opening() -> State:
    return room(Player(13, siphons=1), {15: program_block(ProgramId.ROW), 21: data_block(5)})


def _running() -> State:
    state = room(
        Player(14, credits=FUNDS, energy=FUNDS),
        {20: data_block(3)},
        [enemy(EnemyType.VIRUS, 12, hp=1), enemy(EnemyType.DAEMON, 17, hp=1)],
    )
    state.owned = [ProgramId.ROW]
    return state


def _dodging() -> State:
    return room(Player(27), {29: data_block(3)}, [enemy(EnemyType.VIRUS, 20)])


def _has_paid(state: State) -> bool:
    return state.player.credits + state.player.energy < 2 * FUNDS


LESSONS = (
    Lesson(
        "Move",
        "Walk your figure onto the green exit: by arrows, or a click or tap beside it.",
        _moving,
        lambda state: state.stage > 1,
    ),
    Lesson(
        "Shoot",
        "A step towards an enemy in your row or column shoots it from afar; this one takes two "
        "shots.",
        _shooting,
        lambda state: not state.enemies,
    ),
    Lesson(
        "Siphon",
        "Walk onto the data siphon. Then S, or a tap on your cell, takes credits and energy on and "
        "beside it.",
        _siphoning,
        lambda state: state.player.credits + state.player.energy > 0,
        lambda state: not state.player.siphons and state.cells[0].content != Content.SIPHON,
    ),
    Lesson(
        "Open a block",
        "Beside the block that says ROW, press S or tap your cell; its red number is how many "
        "enemies come.",
        _opening,
        lambda state: bool(state.owned),
        lambda state: not state.player.siphons,
    ),
    Lesson(
        "Run a program",
        "ROW is yours now and hits all enemies in your row: its letter, a click or a tap runs it.",
        _running,
        lambda state: not state.enemies and _has_paid(state),
        lambda state: not state.enemies,
    ),
    Lesson(
        "See it coming",
        "Reach the exit unhurt: next turn, enemies can hit you on cells with red edges.",
        _dodging,
        lambda state: state.stage > 1 and state.player.hp >= PLAYER_HP,
        lambda state: state.player.hp < PLAYER_HP,
    ),
)


def progress(room_index: int, state: State) -> dict[str, object]:
    """What the page shows of a room: `outcome` is `done`, `lost`, or None while it goes on."""
    lesson = LESSONS[room_index]
    outcome = None
    if lesson.is_done(state):
        outcome = "done"
    elif state.over is Ending.DIED or lesson.is_lost(state):
        outcome = "lost"
    facts = {"title": lesson.title, "text": lesson.text, "outcome": outcome}
    return {"kind": "room", "number": room_index, "of": len(LESSONS), **facts}
