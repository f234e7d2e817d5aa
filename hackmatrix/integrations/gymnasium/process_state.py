"""A state of the engine from what a game process answers: the part that the player sees."""

from typing import Any

from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.state import Cell, Enemy, Player, State, Transmission
from hackmatrix.game.rules.actions import FIRST_PROGRAM
from hackmatrix.game.rules.board import SIZE, Content
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.integrations.process.set_state import PROGRAM_BY_NAME

Json = dict[str, Any]


def state_from(observation: Json) -> State:
    """The state that an observation of the process shows; what it does not show is as at a start.

    It is good for observations in the layouts "dict" and "classic" and for drawing. Question blocks
    hold data, and transmissions are of viruses where their type is hidden.
    """
    cells = [cell for row in observation["cells"] for cell in row]
    exits = [index for index, cell in enumerate(cells) if cell["isExit"]]
    return State(
        dice=Dice(0, 0),
        exit=exits[0] if exits else 0,
        player=Player(
            observation["playerRow"] * SIZE + observation["playerCol"],
            hp=observation["playerHP"],
            credits=observation["credits"],
            energy=observation["energy"],
            siphons=observation["dataSiphons"],
            attack=observation["baseAttack"],
            score=observation["score"],
        ),
        cells=[_cell(cell) for cell in cells],
        enemies=[_enemy(i, cell["enemy"]) for i, cell in enumerate(cells) if "enemy" in cell],
        transmissions=[
            _transmission(i, cell["transmission"])
            for i, cell in enumerate(cells)
            if "transmission" in cell
        ],
        owned=[action - FIRST_PROGRAM for action in observation["ownedPrograms"]],
        stage=observation["stage"],
        turn=observation["turn"],
        show=observation["showActivated"],
        calm=observation["scheduledTasksDisabled"],
    )


def _cell(fields: Json) -> Cell:
    cell = Cell(
        credits=fields.get("credits", 0),
        energy=fields.get("energy", 0),
        center=fields["siphonCenter"],
    )
    if "block" in fields:
        _add_block(cell, fields["block"])
    elif fields["isExit"]:
        cell.content = Content.EXIT
    elif fields["isDataSiphon"]:
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


def _enemy(cell: int, fields: Json) -> Enemy:
    return Enemy(
        EnemyType[fields["type"].upper()],
        cell,
        fields["hp"],
        stunned=fields["isStunned"],
        from_siphon=fields["spawnedFromSiphon"],
    )


def _transmission(cell: int, fields: Json) -> Transmission:
    return Transmission(
        cell, fields["turnsUntilSpawn"], EnemyType[fields.get("enemyType", "virus").upper()]
    )
