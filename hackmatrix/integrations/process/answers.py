"""Builds the answers of the process, as JSON text.

Every answer repeats the 36 cells of the board, and most of them look as they did before or as they
do on other boards. So the text of a cell is kept by what it shows, and answers are put together
from texts.
"""

import json
from functools import lru_cache
from operator import attrgetter
from typing import Any

from hackmatrix.game.engine.game import Outcome
from hackmatrix.game.engine.state import Cell, Ending, Enemy, State, Transmission
from hackmatrix.game.rules.actions import FIRST_PROGRAM
from hackmatrix.game.rules.board import CELLS, SIZE, Content, col, row
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.rewards import UNIT

Json = dict[str, Any]

REWARD_NAMES = {
    "stage_completion": "stage",
    "score_gain": "score",
    "kills": "kills",
    "data_siphon": "dataSiphon",
    "distance_shaping": "distance",
    "victory": "victory",
    "death_penalty": "death",
    "resource_gain": "resourceGain",
    "resource_holding": "resourceHolding",
    "damage_penalty": "damagePenalty",
    "hp_recovery": "hpRecovery",
    "siphon_quality": "siphonQuality",
    "program_waste": "programWaste",
    "siphon_death_penalty": "siphonDeathPenalty",
    "step_penalty": "stepPenalty",  # not a part of the original
}
_CELLS_KEPT = 16_384  # texts of cells without pieces, about 500 bytes each with their facts
_BREAKDOWNS_KEPT = 4096
_JSON = {False: "false", True: "true"}

_facts = attrgetter(
    *("content", "credits", "energy", "siphoned", "center", "points", "program", "spawn"),
    "holds_data",
)
to_json = json.JSONEncoder(separators=(",", ":")).encode


def observation(state: State) -> str:
    """The observation: only what the player can see, nothing hidden."""
    player = state.player
    owned = ",".join([str(FIRST_PROGRAM + number) for number in state.owned])
    return (
        f'{{"playerRow":{row(player.cell)},"playerCol":{col(player.cell)},'
        f'"playerHP":{player.hp},"credits":{player.credits},"energy":{player.energy},'
        f'"stage":{state.stage},"turn":{state.turn},"dataSiphons":{player.siphons},'
        f'"baseAttack":{player.attack},"score":{player.score},'
        f'"showActivated":{_JSON[state.show]},"scheduledTasksDisabled":{_JSON[state.calm]},'
        f'"ownedPrograms":[{owned}],{_board(state)}}}'
    )


def _board(state: State) -> str:
    """The keys `cells` and `cryptogHints`."""
    texts = [_cell_text(i, *_facts(cell)) for i, cell in enumerate(state.cells)]
    hints = []
    for cell, enemy in sorted(_first_enemies(state).items()):
        if state.sees(enemy):
            texts[cell] = _with(texts[cell], enemy=enemy_view(enemy))
        else:
            hints.append(_row_and_col(enemy.last))
    for one in state.transmissions:
        view = transmission_view(one, shown=state.show)
        texts[one.cell] = _with(texts[one.cell], transmission=view)
    rows = "],[".join([",".join(texts[i : i + SIZE]) for i in range(0, CELLS, SIZE)])
    return f'"cells":[[{rows}]],"cryptogHints":{to_json(hints) if hints else "[]"}'


def _first_enemies(state: State) -> dict[int, Enemy]:
    """The enemy that represents all those on its cell, by cell: the first in the list."""
    return {enemy.cell: enemy for enemy in reversed(state.enemies)}


def _with(text: str, **views: Json) -> str:
    """The text of an object with further keys at its end."""
    return f"{text[:-1]},{to_json(views)[1:]}"


@lru_cache(_CELLS_KEPT)
def _cell_text(index: int, *facts: Any) -> str:
    return to_json(cell_view(index, Cell(*facts)))


def cell_view(index: int, cell: Cell) -> Json:
    """A cell without its pieces; absent or hidden things have no key."""
    view: Json = {
        **_row_and_col(index),
        "isDataSiphon": cell.content == Content.SIPHON,
        "isExit": cell.content == Content.EXIT,
        "siphonCenter": cell.center,
    }
    if cell.is_block:
        view["block"] = block_view(cell)
    if not cell.is_block or cell.siphoned:
        view.update({name: n for name in ("credits", "energy") if (n := getattr(cell, name))})
    return view


def enemy_view(enemy: Enemy) -> Json:
    """A visible enemy."""
    return {
        "type": _name(enemy.type),
        "hp": enemy.hp,
        "isStunned": enemy.stunned,
        "spawnedFromSiphon": enemy.from_siphon,
    }


def block_view(cell: Cell) -> Json:
    """A block; a question block hides its content until it is siphoned."""
    if cell.content == Content.QUESTION and not cell.siphoned:
        return {"blockType": "question", "isSiphoned": False}
    if cell.is_data:
        facts: Json = {"blockType": "data", "points": cell.points}
    else:
        facts = {
            "blockType": "program",
            "points": 0,
            "programType": PROGRAMS[cell.program].name.lower(),
            "programActionIndex": FIRST_PROGRAM + cell.program,
        }
    return {**facts, "transmissionSpawnCount": cell.spawn, "isSiphoned": cell.siphoned}


def transmission_view(transmission: Transmission, *, shown: bool) -> Json:
    """A transmission, with its enemy type if SHOW is on."""
    view: Json = {"turnsUntilSpawn": transmission.turns}
    if shown:
        view["enemyType"] = _name(transmission.type)
    return view


def step_answer(state: State, outcome: Outcome, *, exact: bool) -> str:
    """The answer to `step`.

    Args:
        state: the game after the step.
        outcome: what the step did.
        exact: whether the breakdown of the reward has the parts of the original alone.
    """
    flags = ""
    if outcome.ending == Ending.INVALID_ACTION:
        flags += '"invalid_action":true,'
    if outcome.stage_completed:
        flags += '"stage_complete":true,'
    if outcome.ending == Ending.DIED:
        flags += '"death":true,'
    parts = outcome.parts
    return (
        f'{{"observation":{observation(state)},"reward":{points(sum(parts.values()))},'
        f'"done":{_JSON[outcome.done]},"info":{{{flags}'
        f'"reward_breakdown":{_breakdown(exact, *parts.items())}}}}}'
    )


@lru_cache(_BREAKDOWNS_KEPT)
def _breakdown(exact: bool, *parts: tuple[str, int]) -> str:
    names = {REWARD_NAMES[part]: points(units) for part, units in parts}
    if exact:
        del names["stepPenalty"]
    return to_json(names)


def points(units: int) -> float:
    """A reward as a float, rounded to 3 decimals."""
    return round(units * UNIT, 3)


def internal_state(state: State | None) -> str:
    """The answer to `getInternalState`, including hidden facts; zeros before the first game."""
    return to_json(
        {
            "scheduledTaskInterval": state.interval if state else 0,
            "nextScheduledTaskTurn": state.next_task if state else 0,
            "pendingSiphonTransmissions": state.pending if state else 0,
            "turnCount": state.turn if state else 0,
            "enemies": [internal_enemy(enemy) for enemy in state.enemies] if state else [],
        }
    )


def internal_enemy(enemy: Enemy) -> Json:
    """One enemy, including hidden facts."""
    return {
        **_row_and_col(enemy.cell),
        "type": _name(enemy.type),
        "hp": enemy.hp,
        "disabledTurns": enemy.disabled,
        "isStunned": enemy.stunned,
        "spawnedFromSiphon": enemy.from_siphon,
        "isFromScheduledTask": enemy.from_schedule,
    }


def _row_and_col(cell: int) -> Json:
    return {"row": row(cell), "col": col(cell)}


def _name(enemy_type: EnemyType) -> str:
    return enemy_type.name.lower()
