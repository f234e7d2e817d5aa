"""`setState`: builds a state from a short description with the process's names."""

from typing import Any

from hackmatrix.engine.dice import Dice
from hackmatrix.engine.fields import Fields, IllegalStateError
from hackmatrix.engine.state import Cell, Enemy, Player, State, Transmission, empty_board
from hackmatrix.rules.actions import FIRST_PROGRAM, NUM_ACTIONS
from hackmatrix.rules.board import CELLS, LIMIT, MAX_POINTS, MAX_RESOURCE, MAX_SPAWN, Content
from hackmatrix.rules.enemies import MAX_ENEMIES, MAX_HP, EnemyType
from hackmatrix.rules.programs import NUMBER, PROGRAMS, ProgramId
from hackmatrix.rules.stages import LAST_STAGE
from hackmatrix.rules.stages import MAX_HP as PLAYER_HP

EXIT = CELLS - 1  # (5,5), always
DEFAULT_POINTS = 5
DEFAULT_PROGRAM_SPAWN = 2

PROGRAM_BY_NAME = {name.lower(): number for name, number in NUMBER.items()} | {
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
        stage=fields.number("stage", 1, LAST_STAGE, 1),
        turn=fields.number("turn", 0, LIMIT, 0),
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
        fields.place(),
        hp=fields.number("hp", 1, PLAYER_HP, PLAYER_HP),
        credits=fields.number("credits", 0, LIMIT, 0),
        energy=fields.number("energy", 0, LIMIT, 0),
        siphons=fields.number("dataSiphons", 0, LIMIT, 0),
        attack=fields.number("attackDamage", 1, LIMIT, 1),
        score=fields.number("score", 0, LIMIT, 0),
    )


def read_board(fields: Fields) -> list[Cell]:
    """Reads the cells: the exit, `blocks` and `resources`."""
    cells = empty_board()
    cells[EXIT].content = Content.EXIT
    for block, path in fields.items("blocks", 0, CELLS, []):
        place_block(cells, _object(block, path), path)
    for resource, path in fields.items("resources", 0, CELLS, []):
        place_resource(cells, _object(resource, path), path)
    return cells


def place_block(cells: list[Cell], fields: Fields, path: str) -> None:
    """Places one item of `blocks`."""
    index = fields.place()
    _require_empty(cells[index], path)
    is_data = fields.choice("type", ("data", "program")) == "data"
    points = fields.number("points", 0, MAX_POINTS, DEFAULT_POINTS)
    default_spawn = points if is_data else DEFAULT_PROGRAM_SPAWN
    program = read_program(fields)
    if program is None and not is_data:
        raise IllegalStateError(f"{path}: a program block needs programType or programActionIndex")
    cells[index] = Cell(
        Content.DATA if is_data else Content.PROGRAM,
        siphoned=fields.flag("siphoned"),
        points=points if is_data else 0,
        program=0 if is_data or program is None else program,
        spawn=fields.number("spawnCount", 0, MAX_SPAWN, default_spawn),
    )


def read_program(fields: Fields) -> int | None:
    """The program named by `programType` or `programActionIndex`; None if neither is given."""
    by_name = by_index = None
    if "programType" in fields.left:
        name = fields.take("programType")
        by_name = PROGRAM_BY_NAME.get(name.lower()) if isinstance(name, str) else None
        if by_name is None:
            fields.refuse("programType", name, "expected the name of a program")
    if "programActionIndex" in fields.left:
        index = fields.number("programActionIndex", FIRST_PROGRAM, NUM_ACTIONS - 1)
        by_index = index - FIRST_PROGRAM
        if by_name not in (None, by_index):
            other = PROGRAMS[by_index].name.lower()
            fields.refuse("programActionIndex", index, f"{other} is not the programType")
    return by_index if by_name is None else by_name


def place_resource(cells: list[Cell], fields: Fields, path: str) -> None:
    """Places one item of `resources`; several items may fill one cell."""
    cell = cells[fields.place()]
    cell.credits = fields.number("credits", 0, MAX_RESOURCE, cell.credits)
    cell.energy = fields.number("energy", 0, MAX_RESOURCE, cell.energy)
    if cell.credits and cell.energy:
        raise IllegalStateError(f"{path}: a cell has credits or energy, not both")
    if fields.flag("dataSiphon"):
        _require_empty(cell, path)
        cell.content = Content.SIPHON


def _require_empty(cell: Cell, path: str) -> None:
    if cell.content != Content.EMPTY:
        there = {Content.EXIT: "the exit", Content.SIPHON: "a data siphon"}
        raise IllegalStateError(f"{path}: {there.get(cell.content, 'a block')} is on this cell")


def read_enemy(fields: Fields) -> Enemy:
    """Reads one item of `enemies`."""
    kind = _enemy_type(fields, "type")
    return Enemy(
        kind,
        fields.place(),
        fields.number("hp", 1, MAX_HP[kind]),
        stunned=fields.flag("stunned"),
        from_schedule=fields.flag("isFromScheduledTask"),
        from_siphon=fields.flag("spawnedFromSiphon"),
    )


def read_transmissions(fields: Fields, cells: list[Cell]) -> list[Transmission]:
    """Reads `transmissions`."""
    by_cell: dict[int, Transmission] = {}
    for data, path in fields.items("transmissions", 0, CELLS, []):
        one = _object(data, path)
        cell = one.place()
        if cells[cell].is_block:
            raise IllegalStateError(f"{path}: a transmission cannot stand on a block")
        if cell in by_cell:
            raise IllegalStateError(f"{path}: there is a transmission on this cell already")
        turns = one.number("turnsRemaining", 0, LIMIT)
        by_cell[cell] = Transmission(cell, turns, _enemy_type(one, "enemyType"))
    return list(by_cell.values())


def _enemy_type(fields: Fields, name: str) -> EnemyType:
    return EnemyType[fields.choice(name, (kind.name.lower() for kind in EnemyType)).upper()]


def read_owned(fields: Fields) -> list[int]:
    """Reads `ownedPrograms`, in order of acquisition."""
    owned: list[int] = []
    for index, path in fields.items("ownedPrograms", 0, len(PROGRAMS), []):
        if type(index) is not int or not FIRST_PROGRAM <= index < NUM_ACTIONS:
            raise IllegalStateError(f"{path}: expected {FIRST_PROGRAM}..{NUM_ACTIONS - 1}")
        if index - FIRST_PROGRAM in owned:
            raise IllegalStateError(f"{path}: program {index} is owned already")
        owned.append(index - FIRST_PROGRAM)
    return owned
