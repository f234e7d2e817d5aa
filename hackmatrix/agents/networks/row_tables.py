"""The rows that the network `player_centred` sums: the whole definition of its first layer.

A view looks at the board from one cell; an offset is (rows, columns) from there. The board is
mirrored so that the exit lies where rows and columns grow. A view of a direction looks from the
cell that the direction leads to, turned so that its first axis points forward.

Every table has a row of weights for each thing that may be: a symbol at an offset from the viewer
(`Around`), a symbol on a cell of the board (`OnBoard`), the symbols of a few neighboring cells
together (`Joint`, the tuples of Buro 1999 and of Szubert and Jaskowski 2014), a number of the game
(`Quantity`). A position has some of these rows; their sum is what the network reads. Symbol 0,
nothing, has none. That is how chess engines see the board from the king (NNUE, Nasu 2018).

Numbers of rows, and the rows of a position: `rows.py`; in C++ `game/native/rows.hpp`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from hackmatrix.game.rules.board import DIRECTIONS, SIZE, Content
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.programs import MAX_ATK_USES, MAX_SAVED_STATES, PROGRAMS
from hackmatrix.game.rules.stages import FIRST_INTERVAL, LAST_STAGE, MAX_HP

EVERYWHERE = 2 * (SIZE - 1)  # the largest distance between two cells


class Symbol(NamedTuple):
    """A cell's content as a small number, 0 for nothing."""

    fields: str  # of `rules.observation.FIELDS`, or `owned`: whether the player has its program
    of: Callable[..., int]  # the values of these fields
    outside: int = 0  # what stands beyond the edge


class Quantity(NamedTuple):
    """A number of the game as a symbol; larger values of a field count as the largest here."""

    fields: Mapping[str, int]  # numbers and flags of the record, and the largest value of each
    of: Callable[..., int] = lambda value: value


class Around(NamedTuple):
    """A row for each symbol at each offset, as far as `reach` steps."""

    symbol: str
    reach: int = EVERYWHERE


class OnBoard(NamedTuple):
    """A row for each symbol on each cell of the board."""

    symbol: str


class Joint(NamedTuple):
    """A row for each combination of the symbols at some offsets."""

    cells: tuple[tuple[tuple[int, int], str], ...]


class View(NamedTuple):
    """The tables of a view."""

    around: tuple[Around, ...]
    on_board: tuple[OnBoard, ...]
    joint: tuple[Joint, ...]
    quantities: tuple[Quantity, ...]


# --- what a cell shows ---------------------------------------------------------------------------


def _piece(enemy: int, stunned: int, transmission: int, block: int) -> int:
    if enemy:
        return 2 * enemy + stunned
    return 2 * len(EnemyType) + 2 if transmission else int(block > 0)


def _threat(enemy: int, stunned: int, transmission: int, block: int) -> int:
    if enemy:
        slow = {EnemyType.VIRUS: 2, EnemyType.GLITCH: 3}.get(EnemyType(enemy - 1), 4)
        return 5 if stunned else slow
    return 6 if transmission else int(block > 0)


def _barrier(enemy: int, transmission: int, block: int) -> int:
    return 2 if enemy else 3 if transmission else int(block > 0)


def _block(block: int, siphoned: int, owned: int) -> int:
    if not block:
        return 0
    return 4 + block if siphoned else block + (block == Content.QUESTION or owned * (block == 2))


def _program(block: int, siphoned: int, owned: int, value: int) -> int:
    return (block == Content.PROGRAM and not siphoned) * (1 + 2 * value + owned)


def _points(block: int, siphoned: int, value: int) -> int:
    return (block == Content.DATA and not siphoned) * (1 + (value >= 4) + (value >= 7))


def _spawn(block: int, siphoned: int, spawn: int) -> int:
    unsiphoned = block in (Content.DATA, Content.PROGRAM) and not siphoned
    return unsiphoned * (1 + (spawn > 2) + (spawn > 4) + (spawn > 6))


_PIECE = "enemy_type stunned transmission block"
SYMBOLS = {
    "enemy": Symbol(
        "enemy_type stunned in_fire", lambda e, stunned, fire: e and 4 * e - 3 + 2 * stunned + fire
    ),
    "enemy_hp": Symbol("enemy_type enemy_hp", lambda e, hp: e and 4 * e - 3 + hp),
    "hidden": Symbol("enemies_seen last_seen", lambda seen, last: (seen > 1) + 2 * last),
    "transmission": Symbol(
        "transmission turns in_fire", lambda t, turns, fire: t and 1 + 2 * turns + fire
    ),
    "coming": Symbol("coming_type", lambda coming: coming),
    "block": Symbol("block siphoned owned", _block),
    "points": Symbol("block siphoned value", _points),
    "spawn": Symbol("block siphoned spawn", _spawn),
    "goal": Symbol("data_siphon exit", lambda siphon, exit_: siphon + 2 * exit_),
    "credits": Symbol("credits", lambda credits: credits),
    "energy": Symbol("energy", lambda energy: energy),
    "piece": Symbol(_PIECE, _piece, outside=1),
    "threat": Symbol(_PIECE, _threat, outside=1),
    "barrier": Symbol("enemy_type transmission block", _barrier, outside=1),
    "program": Symbol("block siphoned owned value", _program),
    "exit_distance": Symbol("exit_distance", lambda steps: steps),
}


# --- numbers of the game -------------------------------------------------------------------------


def _owned(credits: int, energy: int, owned: int, credits_held: int, energy_held: int) -> int:
    """1 for an owned program, 2 if the player can pay for it too."""
    return owned * (1 + (credits_held == credits and energy_held == energy))


_HEALTH = (Quantity({"hp": MAX_HP}), Quantity({"siphons": 7}), Quantity({"attack": 3}))
_GAME = (
    *_HEALTH,
    Quantity({"cell": SIZE * SIZE - 1}),
    Quantity({"stage": LAST_STAGE}),
    Quantity({"credits": 31}),
    Quantity({"energy": 31}),
    Quantity({"show": 1}),
    Quantity({"calm": 1}),
    Quantity({"step": 1}),
    Quantity({"atk_uses": MAX_ATK_USES}),
    Quantity({"saved": MAX_SAVED_STATES}),
    Quantity({"turn": 63}, lambda turn: turn // 2),
    Quantity({"until_task": FIRST_INTERVAL}),
    Quantity({"interval": FIRST_INTERVAL}),
    Quantity({"pending": 9}),
    *(
        Quantity(
            {f"owned_{program}": 1, "credits": cost.credits, "energy": cost.energy},
            partial(_owned, cost.credits, cost.energy),
        )
        for program, cost in enumerate(PROGRAMS)
    ),
)


# --- the views -----------------------------------------------------------------------------------


def _line(step: tuple[int, int], symbol: str, *distances: int) -> Joint:
    """The symbols along one direction."""
    return Joint(tuple(((step[0] * i, step[1] * i), symbol) for i in distances))


def _corners() -> tuple[Joint, ...]:
    """Each diagonal neighbor with the two cells on the way to it."""
    return tuple(
        Joint((((row, col), "piece"), ((row, 0), "barrier"), ((0, col), "barrier")))
        for row in (1, -1)
        for col in (1, -1)
    )


def _programs(*offsets: tuple[int, int]) -> tuple[Joint, ...]:
    return tuple(Joint(((offset, "program"),)) for offset in offsets)


def _pieces(resources: int) -> tuple[Around, ...]:
    """All that lies around; credits and energy as far as some steps."""
    names = "enemy enemy_hp hidden transmission coming block points spawn goal"
    near = (Around("credits", resources), Around("energy", resources))
    return (*map(Around, names.split()), *near)


_HERE, _FORWARD, _BACK, _SIDES = (0, 0), (1, 0), (-1, 0), ((0, 1), (0, -1))

PLAYER = View(
    around=_pieces(resources=3),
    on_board=(OnBoard("piece"), OnBoard("block"), OnBoard("goal")),
    joint=(
        Joint(tuple((step, "threat") for step in DIRECTIONS)),
        *(_line(step, "piece", 1, 2) for step in DIRECTIONS),
        *(_line(step, "barrier", 1, 2, 3, 4, 5) for step in DIRECTIONS),
        *_corners(),
        *_programs(_HERE, *DIRECTIONS),
        Joint(((_HERE, "exit_distance"),)),
    ),
    quantities=_GAME,
)
DIRECTION = View(  # none of its rows, if the cell is a block or beyond the edge
    around=_pieces(resources=2),
    on_board=(),
    joint=(
        Joint(tuple((step, "piece") for step in (_FORWARD, *_SIDES))),
        *(_line(step, "piece", 1, 2) for step in (_FORWARD, *_SIDES)),
        _line(_FORWARD, "barrier", 0, 1, 2, 3, 4),
        *_corners(),
        *_programs(_FORWARD, *_SIDES),
        Joint(((_HERE, "piece"),)),
        Joint(((_HERE, "exit_distance"), (_BACK, "exit_distance"))),
    ),
    quantities=_HEALTH,
)
