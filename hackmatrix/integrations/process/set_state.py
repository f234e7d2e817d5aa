"""`setState`: builds a state from a short description with the process's names.

It takes positions that play does not reach and that the JAX engine could not hold, as clients of
the original rely on them: points, spawn counts, resources and hp of enemies up to `LIMIT`.
"""

from collections.abc import Iterable
from typing import Any

from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.fields import Fields, IllegalStateError, format_value
from hackmatrix.game.engine.state import Cell, Enemy, Player, State, Transmission, empty_board
from hackmatrix.game.rules.actions import FIRST_PROGRAM, NUM_ACTIONS
from hackmatrix.game.rules.board import CELLS, LIMIT, Content
from hackmatrix.game.rules.enemies import MAX_ENEMIES, EnemyType
from hackmatrix.game.rules.programs import PROGRAM_INDEX, ProgramId
from hackmatrix.game.rules.stages import LAST_STAGE
from hackmatrix.game.rules.stages import MAX_HP as PLAYER_HP

EXIT = CELLS - 1  # (5,5), always
MOST_ENTRIES = 1_000  # of a list in which several may name one cell or program
DEFAULT_POINTS = 5
DEFAULT_PROGRAM_SPAWN = 2

PROGRAM_BY_NAME = {name.lower(): number for name, number in PROGRAM_INDEX.items()} | {
    "dbom": ProgramId.D_BOM,
    "d_bomb": ProgramId.D_BOM,
    "antiv": ProgramId.ANTI_V,
    "anti_v": ProgramId.ANTI_V,
    "siphplus": ProgramId.SIPH_PLUS,
    "siph_plus": ProgramId.SIPH_PLUS,
    "atkplus": ProgramId.ATK_PLUS,
    "atk_plus": ProgramId.ATK_PLUS,
}


def read_state(data: Any, dice: Dice) -> State:
    """The state that a `setState` request describes.

    It starts from an empty board without saved states; fields that are left out have the values of
    a new game.

    Args:
        data: the request's `state`.
        dice: the dice with which the game continues.

    Raises:
        IllegalStateError: the state is not legal; the message names the field.
    """
    fields = _object(data, "state")
    cells = read_board(fields)
    return State(
        dice=dice,
        exit=EXIT,
        player=read_player(_object(fields.take("player"), "state.player")),
        cells=cells,
        enemies=[
            read_enemy(_object(enemy, path))
            for enemy, path in fields.items("enemies", 0, MAX_ENEMIES, [])
        ],
        transmissions=read_transmissions(fields, cells),
        owned=read_owned(fields),
        stage=fields.integer("stage", 1, LAST_STAGE, 1),
        turn=fields.integer("turn", 0, LIMIT, 0),
        show=fields.flag("showActivated"),
        calm=fields.flag("scheduledTasksDisabled"),
    )


def _object(data: Any, path: str) -> Fields:
    """The fields of an object.

    As in the original, null counts as missing; unknown keys are ignored.
    """
    fields = Fields(data, path)
    fields.left = {name: value for name, value in fields.left.items() if value is not None}
    return fields


def read_player(fields: Fields) -> Player:
    """Reads `player`."""
    return Player(
        fields.coordinates(),
        hp=fields.integer(
            "hp", 0, PLAYER_HP, PLAYER_HP
        ),  # 0: dead, and the next step ends the game
        credits=fields.integer("credits", 0, LIMIT, 0),
        energy=fields.integer("energy", 0, LIMIT, 0),
        siphons=fields.integer("dataSiphons", 0, LIMIT, 0),
        attack=fields.integer("attackDamage", 0, LIMIT, 1),
        score=fields.integer("score", 0, LIMIT, 0),
    )


def read_board(fields: Fields) -> list[Cell]:
    """Reads the cells: `blocks`, then `resources`, then the exit; the last on a cell counts."""
    cells = empty_board()
    for block, path in fields.items("blocks", 0, MOST_ENTRIES, []):
        place_block(cells, _object(block, path))
    for resource, path in fields.items("resources", 0, MOST_ENTRIES, []):
        place_resource(cells, _object(resource, path))
    there = cells[EXIT]
    cells[EXIT] = Cell(Content.EXIT, credits=there.credits, energy=there.energy)
    return cells


def place_block(cells: list[Cell], fields: Fields) -> None:
    """Places one item of `blocks`; a program block without a program is none."""
    index = fields.coordinates()
    is_data = _choice(fields, "type", ("data", "program")) == "data"
    points = fields.integer("points", 0, LIMIT, DEFAULT_POINTS)
    program = None if is_data else read_program(fields)
    default_spawn = points if is_data else DEFAULT_PROGRAM_SPAWN
    spawn = fields.integer("spawnCount", 0, LIMIT, default_spawn)
    siphoned = fields.flag("siphoned")
    if is_data:
        cells[index] = Cell(Content.DATA, siphoned=siphoned, points=points, spawn=spawn)
    elif program is not None:
        cells[index] = Cell(Content.PROGRAM, siphoned=siphoned, program=program, spawn=spawn)


def read_program(fields: Fields) -> int | None:
    """The program that `programType` names, None if it is left out.

    `programActionIndex` is not read: clients of the original send 0 for it.
    """
    name = fields.take("programType", None)
    if name is None:
        return None
    number = PROGRAM_BY_NAME.get(name.lower()) if isinstance(name, str) else None
    if number is None:
        fields.refuse("programType", name, "expected the name of a program")
    return number


def place_resource(cells: list[Cell], fields: Fields) -> None:
    """Places one item of `resources`: a data siphon, credits or energy.

    As in play, credits or energy may lie with a siphon; of the two the first that is there counts.
    """
    index = fields.coordinates()
    credits, energy = (fields.integer(name, 0, LIMIT, 0) for name in ("credits", "energy"))
    energy = 0 if credits else energy
    if fields.flag("dataSiphon"):
        cells[index] = Cell(Content.SIPHON, credits=credits, energy=energy)
    elif credits or energy:
        cell = cells[index]
        cell.content = cell.content if cell.is_block else Content.EMPTY
        cell.credits, cell.energy = credits, energy


def read_enemy(fields: Fields) -> Enemy:
    """Reads one item of `enemies`."""
    return Enemy(
        _enemy_type(fields, "type"),
        fields.coordinates(),
        fields.integer("hp", 1, LIMIT),
        stunned=fields.flag("stunned"),
        from_schedule=fields.flag("isFromScheduledTask"),
        from_siphon=fields.flag("spawnedFromSiphon"),
    )


def read_transmissions(fields: Fields, cells: list[Cell]) -> list[Transmission]:
    """Reads `transmissions`."""
    by_cell: dict[int, Transmission] = {}
    for data, path in fields.items("transmissions", 0, CELLS, []):
        one = _object(data, path)
        cell = one.coordinates()
        if cells[cell].is_block:
            raise IllegalStateError(f"{path}: a transmission cannot stand on a block")
        if cell in by_cell:
            raise IllegalStateError(f"{path}: there is a transmission on this cell already")
        turns = one.integer("turnsRemaining", 0, LIMIT)
        by_cell[cell] = Transmission(cell, turns, _enemy_type(one, "enemyType"))
    return list(by_cell.values())


def _enemy_type(fields: Fields, name: str) -> EnemyType:
    return EnemyType[_choice(fields, name, (kind.name.lower() for kind in EnemyType)).upper()]


def _choice(fields: Fields, name: str, options: Iterable[str]) -> str:
    """Consumes a name in any case that must be one of the options."""
    if isinstance(value := fields.left.get(name), str):
        fields.left[name] = value.lower()
    return fields.choice(name, options)


def read_owned(fields: Fields) -> list[int]:
    """Reads `ownedPrograms`, in order of acquisition; one that is named again is owned once."""
    owned: list[int] = []
    for index, path in fields.items("ownedPrograms", 0, MOST_ENTRIES, []):
        if type(index) is not int or not FIRST_PROGRAM <= index < NUM_ACTIONS:
            expected = f"expected {FIRST_PROGRAM}..{NUM_ACTIONS - 1}"
            raise IllegalStateError(f"{path}: {expected}, got {format_value(index)}")
        owned.append(index - FIRST_PROGRAM)
    return list(dict.fromkeys(owned))
