"""The observation: every key, when it is there, and that nothing hidden shows."""

import json
import random
from typing import Any

import pytest
from bridge_client import Client, Json, exactly
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import legal_states

from hackmatrix.game.engine import Game
from hackmatrix.game.engine.state import State
from hackmatrix.integrations.process import answers

POSITION = """
    .. .. .. .. .c X.
    .. .. .. .. .. ..
    .+ .. .d .. .. ..
    .. ?. ?. P. .. ..
    .. Dg .. .. .c ..
    .@ s. D. .. .. ..
    stage 3 turn 4
    player hp 2 credits 5 energy 6 siphons 1 attack 2 score 9
    owned HACK PUSH
    cell 0,0 siphoned center
    cell 0,1 credits 2
    cell 0,2 siphoned points 4 energy 3
    cell 1,1 points 7 spawn 3 credits 1
    cell 2,1 points 6 spawn 6
    cell 2,2 program WARP spawn 5
    cell 2,3 program SIPH+ spawn 7
    enemy daemon 3,2 hp 1 stunned from_siphon
    enemy virus 3,2
    enemy glitch 1,1 from_schedule
    enemy cryptog 5,4 last 4,4
    enemy daemon 5,4
    enemy cryptog 1,4 last 0,4
    transmission virus 3,0 turns 2
"""


def cell(row: int, col: int, **facts: Any) -> Json:
    nothing = {"isDataSiphon": False, "isExit": False, "siphonCenter": False}
    return {"row": row, "col": col, **nothing, **facts}


def enemy(kind: str, hp: int, *, stunned: bool = False, from_siphon: bool = False) -> Json:
    return {"type": kind, "hp": hp, "isStunned": stunned, "spawnedFromSiphon": from_siphon}


def block(kind: str, points: int, spawn: int, *, siphoned: bool = False, **facts: Any) -> Json:
    told = {"blockType": kind, "points": points, "transmissionSpawnCount": spawn}
    return {**told, "isSiphoned": siphoned, **facts}


QUESTION = {"blockType": "question", "isSiphoned": False}
SIPH_PLUS = block("program", 0, 7, programType="siph+", programActionIndex=16)
CELLS = {
    (0, 0): {"siphonCenter": True},
    (0, 1): {"isDataSiphon": True, "credits": 2},
    (0, 2): {"energy": 3, "block": block("data", 4, 0, siphoned=True)},
    (1, 1): {"enemy": enemy("glitch", 2), "block": block("data", 7, 3)},
    (2, 1): {"block": QUESTION},
    (2, 2): {"block": QUESTION},
    (2, 3): {"block": SIPH_PLUS},
    (3, 0): {"transmission": {"turnsUntilSpawn": 2}},
    (3, 2): {"enemy": enemy("daemon", 1, stunned=True, from_siphon=True)},
    (5, 5): {"isExit": True},
}
OBSERVATION = {
    "playerRow": 0,
    "playerCol": 0,
    "playerHP": 2,
    "credits": 5,
    "energy": 6,
    "stage": 3,
    "turn": 4,
    "dataSiphons": 1,
    "baseAttack": 2,
    "score": 9,
    "ownedPrograms": [27, 5],
    "showActivated": False,
    "scheduledTasksDisabled": False,
    "cells": [[cell(r, c, **CELLS.get((r, c), {})) for c in range(6)] for r in range(6)],
    "cryptogHints": [{"row": 0, "col": 4}, {"row": 4, "col": 4}],  # by the cell of the cryptog
}


def observation(state: State) -> Json:
    shown: Json = json.loads(answers.observation(state))
    return shown


def test_known_answer() -> None:
    state = Game.from_text(POSITION).state
    assert exactly(observation(state)) == exactly(OBSERVATION)


def seen(text: str) -> Json:
    return observation(Game.from_text(text).state)


def test_only_the_first_on_a_cell_gives_a_hint() -> None:
    enemies = ["daemon 5,4", "cryptog 5,4 last 4,4", "cryptog 1,4 last 0,3", "cryptog 1,4 last 0,4"]
    board, _, _ = POSITION.partition("    enemy daemon 3,2")
    board = board.replace("Dg", "D.").replace(".d", "..").replace(".c X.", ".d X.")
    shown = seen(board + "\n".join(f"enemy {enemy}" for enemy in enemies))
    assert shown["cryptogHints"] == [{"row": 0, "col": 3}]


def test_show_and_calm() -> None:
    shown = seen(POSITION + "    flags show calm\n")
    cells = shown["cells"]
    assert (shown["showActivated"], shown["scheduledTasksDisabled"]) == (True, True)
    assert shown["cryptogHints"] == []
    assert cells[5][4]["enemy"] == enemy("cryptog", 2)
    assert cells[1][4]["enemy"] == enemy("cryptog", 2)
    assert cells[3][0]["transmission"] == {"turnsUntilSpawn": 2, "enemyType": "virus"}
    assert cells[2][1]["block"] == QUESTION


@pytest.mark.parametrize("place", ["4,0", "0,4"])
def test_a_cryptog_in_the_players_row_or_column_is_seen(place: str) -> None:
    row, col = map(int, place.split(","))
    rows = [[".."] * 6 for _ in range(6)]
    rows[5][5], rows[0][0], rows[row][col] = "X.", ".@", ".c"
    text = "\n".join(" ".join(line) for line in reversed(rows))
    shown = seen(f"{text}\nenemy cryptog {place} last 3,3\n")
    assert shown["cells"][row][col]["enemy"]["type"] == "cryptog"
    assert shown["cryptogHints"] == []


def test_a_siphoned_question_block_shows_as_what_it_is() -> None:
    client = Client()
    client.session._game = Game.from_text(POSITION.replace(".@ s.", ".. .@").replace("Dg", "?g"))
    shown = client.ask("step", actionIndex=4)["observation"]["cells"][1][1]
    assert shown["block"] == block("data", 7, 0, siphoned=True)
    assert shown["credits"] == 1


def draw_what_is_hidden(game: Game, rng: random.Random) -> None:
    """All that the player can't see, anew."""
    state = game.state
    for block in state.cells:
        if block.content.name == "QUESTION" and not block.siphoned:
            block.holds_data = rng.random() < 0.5
            block.points = rng.randint(1, 9) if block.holds_data else 0
            block.program = 0 if block.holds_data else rng.randrange(23)
            block.spawn = rng.randrange(100)
        if block.is_block and not block.siphoned:
            block.credits, block.energy = rng.randrange(4), 0
    for transmission in state.transmissions:
        transmission.from_siphon = rng.random() < 0.5
        transmission.from_schedule = rng.random() < 0.5
        if not state.show:
            transmission.type = type(transmission.type)(rng.randrange(4))
    for enemy in state.enemies:
        enemy.disabled = rng.randrange(3)
        enemy.from_schedule = rng.random() < 0.5
        first = state.enemies_on(enemy.cell)[0] is enemy
        if first and state.sees(enemy):
            continue
        enemy.hp = rng.randint(1, 2) if enemy.type.name == "CRYPTOG" else 1
        enemy.stunned = rng.random() < 0.5
        enemy.from_siphon = rng.random() < 0.5
        goal = rng.randrange(36)
        alone = len(state.enemies_on(enemy.cell)) == 1
        if alone and not state.enemies_on(goal) and not state.in_line(goal):
            enemy.cell = goal
    state.interval, state.next_task, state.pending = (rng.randrange(20) for _ in range(3))
    state.step, state.atk_uses, state.saved = rng.random() < 0.5, rng.randrange(3), []
    state.dice.stream = rng.randrange(2**32)


@settings(max_examples=50)
@given(legal_states(), st.randoms())
def test_nothing_hidden_shows(data: Json, rng: random.Random) -> None:
    game = Game.from_dict(data)
    before = observation(game.state)
    draw_what_is_hidden(game, rng)
    after = observation(game.state)
    # The protocol orders the hints by the cryptogs' own cells.
    for shown in (before, after):
        shown["cryptogHints"].sort(key=exactly)
    assert after == before
