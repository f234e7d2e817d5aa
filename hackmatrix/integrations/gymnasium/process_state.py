"""A state of the engine from what a game process answers: the part that the player sees."""

from typing import Any

from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.state import Cell, Enemy, Player, State, Transmission
from hackmatrix.game.rules.actions import FIRST_PROGRAM
from hackmatrix.game.rules.board import SIZE, Content
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.integrations.process.set_state import PROGRAM_BY_NAME

Json = dict[str, Any]


def state_from(seen: Json) -> State:
    """The state that an observation of the process shows; what it does not show is as at a start.

    It is good for observations in the layouts "dict" and "classic" and for drawing. Question blocks
    hold data, and transmissions are of viruses where their type is hidden.
    """
    cells = [cell for row in seen["cells"] for cell in row]
    exits = [index for index, cell in enumerate(cells) if cell["isExit"]]
    return State(
        dice=Dice(0, 0),
        exit=exits[0] if exits else 0,
        player=Player(
            seen["playerRow"] * SIZE + seen["playerCol"],
            hp=seen["playerHP"],
            credits=seen["credits"],
            energy=seen["energy"],
            siphons=seen["dataSiphons"],
            attack=seen["baseAttack"],
            score=seen["score"],
        ),
        cells=[_cell(cell) for cell in cells],
        enemies=[_enemy(i, cell["enemy"]) for i, cell in enumerate(cells) if "enemy" in cell],
        transmissions=[
            _transmission(i, cell["transmission"])
            for i, cell in enumerate(cells)
            if "transmission" in cell
        ],
        owned=[action - FIRST_PROGRAM for action in seen["ownedPrograms"]],
        stage=seen["stage"],
        turn=seen["turn"],
        show=seen["showActivated"],
        calm=seen["scheduledTasksDisabled"],
    )


def _cell(seen: Json) -> Cell:
    cell = Cell(
        credits=seen.get("credits", 0), energy=seen.get("energy", 0), center=seen["siphonCenter"]
    )
    if "block" in seen:
        _add_block(cell, seen["block"])
    elif seen["isExit"]:
        cell.content = Content.EXIT
    elif seen["isDataSiphon"]:
        cell.content = Content.SIPHON
    return cell


def _add_block(cell: Cell, block: Json) -> None:
    cell.siphoned = block["isSiphoned"]
    cell.spawn = block.get("transmissionSpawnCount", 0)
    cell.content = Content[block["blockType"].upper()]
    cell.holds_data = cell.content == Content.QUESTION
    if cell.content == Content.DATA:
        cell.points = block["points"]
    elif cell.content == Content.PROGRAM:
        index = block.get("programActionIndex")
        by_name = PROGRAM_BY_NAME.get(str(block.get("programType")).lower(), 0)
        cell.program = by_name if index is None else index - FIRST_PROGRAM


def _enemy(cell: int, seen: Json) -> Enemy:
    return Enemy(
        EnemyType[seen["type"].upper()],
        cell,
        seen["hp"],
        stunned=seen["isStunned"],
        from_siphon=seen["spawnedFromSiphon"],
    )


def _transmission(cell: int, seen: Json) -> Transmission:
    return Transmission(
        cell, seen["turnsUntilSpawn"], EnemyType[seen.get("enemyType", "virus").upper()]
    )
