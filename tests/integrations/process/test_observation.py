"""The observation: every key, when it is there, and that nothing hidden shows."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from bridge_client import Client, Json, exactly
from hypothesis import given
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


QUESTION = {"blockType": "question", "isSiphoned": False}
CELLS = {
    (0, 0): cell(0, 0, siphonCenter=True),
    (0, 1): cell(0, 1, isDataSiphon=True, credits=2),
    (0, 2): cell(
        0,
        2,
        energy=3,
        block={"blockType": "data", "points": 4, "transmissionSpawnCount": 0, "isSiphoned": True},
    ),
    (1, 1): cell(
        1,
        1,
        enemy=enemy("glitch", 2),
        block={"blockType": "data", "points": 7, "transmissionSpawnCount": 3, "isSiphoned": False},
    ),
    (2, 1): cell(2, 1, block=QUESTION),
    (2, 2): cell(2, 2, block=QUESTION),
    (2, 3): cell(
        2,
        3,
        block={
            "blockType": "program",
            "points": 0,
            "programType": "siph+",
            "programActionIndex": 16,
            "transmissionSpawnCount": 7,
            "isSiphoned": False,
        },
    ),
    (3, 0): cell(3, 0, transmission={"turnsUntilSpawn": 2}),
    (3, 2): cell(3, 2, enemy=enemy("daemon", 1, stunned=True, from_siphon=True)),
    (5, 5): cell(5, 5, isExit=True),
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
    "showActivated": False,
    "scheduledTasksDisabled": False,
    "ownedPrograms": [27, 5],
    "cells": [[CELLS.get((r, c), cell(r, c)) for c in range(6)] for r in range(6)],
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
    rows = [["..", "..", "..", "..", "..", ".."] for _ in range(6)]
    rows[5][5], rows[0][0], rows[row][col] = "X.", ".@", ".c"
    text = "\n".join(" ".join(line) for line in reversed(rows))
    shown = seen(f"{text}\nenemy cryptog {place} last 3,3\n")
    assert shown["cells"][row][col]["enemy"]["type"] == "cryptog"
    assert shown["cryptogHints"] == []


def test_a_siphoned_question_block_shows_as_what_it_is() -> None:
    client = Client()
    client.session._game = Game.from_text(POSITION.replace(".@ s.", ".. .@").replace("Dg", "?g"))
    shown = client.ask("step", actionIndex=4)["observation"]["cells"][1][1]
    assert shown["block"] == {
        "blockType": "data",
        "points": 7,
        "transmissionSpawnCount": 0,
        "isSiphoned": True,
    }
    assert shown["credits"] == 1


Change = Callable[[Game, random.Random], None]


def inside_question_blocks(game: Game, rng: random.Random) -> None:
    for block in game.state.cells:
        if block.content.name == "QUESTION" and not block.siphoned:
            block.holds_data = rng.random() < 0.5
            block.points = rng.randint(1, 9) if block.holds_data else 0
            block.program = 0 if block.holds_data else rng.randrange(23)
            block.spawn = rng.randrange(100)


def under_unsiphoned_blocks(game: Game, rng: random.Random) -> None:
    for block in game.state.cells:
        if block.is_block and not block.siphoned:
            block.credits, block.energy = rng.randrange(4), 0


def types_of_transmissions(game: Game, rng: random.Random) -> None:
    for transmission in game.state.transmissions:
        transmission.from_siphon = rng.random() < 0.5
        transmission.from_schedule = rng.random() < 0.5
        if not game.state.show:
            transmission.type = type(transmission.type)(rng.randrange(4))


def hidden_cryptogs(game: Game, rng: random.Random) -> None:
    state = game.state
    for cryptog in state.enemies:
        if state.sees(cryptog):
            continue
        cryptog.hp = rng.randint(1, 2)
        cryptog.stunned = rng.random() < 0.5
        cryptog.from_siphon = rng.random() < 0.5
        goal = rng.randrange(36)
        alone = len(state.enemies_on(cryptog.cell)) == 1
        if alone and not state.enemies_on(goal) and not state.in_line(goal):
            cryptog.cell = goal


def behind_the_first(game: Game, rng: random.Random) -> None:
    state = game.state
    for other in state.enemies:
        if state.enemies_on(other.cell)[0] is not other and state.sees(other):
            other.hp = 1
            other.stunned = rng.random() < 0.5
            other.from_siphon = rng.random() < 0.5


def what_enemies_will_do(game: Game, rng: random.Random) -> None:
    for one in game.state.enemies:
        one.disabled = rng.randrange(3)
        one.from_schedule = rng.random() < 0.5


def the_games_books(game: Game, rng: random.Random) -> None:
    state = game.state
    state.interval, state.next_task, state.pending = (rng.randrange(20) for _ in range(3))
    state.step, state.atk_uses, state.saved = rng.random() < 0.5, rng.randrange(3), []
    state.dice.stream = rng.randrange(2**32)


HIDDEN: list[Change] = [
    inside_question_blocks,
    under_unsiphoned_blocks,
    types_of_transmissions,
    hidden_cryptogs,
    behind_the_first,
    what_enemies_will_do,
    the_games_books,
]


@given(legal_states(), st.lists(st.sampled_from(HIDDEN), min_size=1), st.randoms())
def test_nothing_hidden_shows(data: Json, changes: list[Change], rng: random.Random) -> None:
    game = Game.from_dict(data)
    before = observation(game.state)
    for change in changes:
        change(game, rng)
    after = observation(game.state)
    # The protocol orders the hints by the cryptogs' own cells.
    for shown in (before, after):
        shown["cryptogHints"].sort(key=exactly)
    assert after == before
