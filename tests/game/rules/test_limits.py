"""Sections 2 and 10: at most 32 enemies, saturation at 32,767, and the end."""

from typing import Any

import pytest
from rule_cases import Data, Engine, data_of, play

from hackmatrix.game.engine import Game
from hackmatrix.game.engine.game import GameOverError
from hackmatrix.game.rules.board import LIMIT

EMPTY = """
    X. .. .. .. .. ..
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    .@ .. .. .. .. ..
    player energy 9
    owned WAIT DELAY
"""


def crowd(enemies: int, **facts: Any) -> list[Data]:
    daemon = {"type": "daemon", "row": 5, "col": 5, "hp": 3, "disabled": 9}
    return [{**daemon, **facts} for _ in range(enemies)]


def coming(col: int, turns: int) -> Data:
    return {"type": "virus", "row": 3, "col": col, "turns": turns}


@pytest.mark.parametrize(("living", "landed"), [(29, 3), (30, 2), (31, 1), (32, 0)])
def test_at_most_32_enemies(engine: Engine, living: int, landed: int) -> None:
    turns = [1, 4, 0, 1]
    before = {
        **data_of(EMPTY),
        "enemies": crowd(living),
        "transmissions": [coming(col, n) for col, n in enumerate(turns)],
    }
    after, _, _ = play(engine, before, "WAIT")
    assert len(after["enemies"]) == living + landed
    assert [enemy["col"] for enemy in after["enemies"][living:]] == [0, 2, 3][:landed]
    waiting = [(t["col"], t["turns"]) for t in after["transmissions"]]
    assert waiting == sorted([(1, 3), *((col, 1) for col in [0, 2, 3][landed:])])


def test_the_one_that_waited_lands_when_there_is_room(engine: Engine) -> None:
    beside_the_player = crowd(1, row=0, col=1, hp=1)
    before = {
        **data_of(EMPTY),
        "enemies": beside_the_player + crowd(31),
        "transmissions": [coming(0, 1)],
    }
    after, _, _ = play(engine, before, "WAIT right")
    assert [enemy["type"] for enemy in after["enemies"]] == ["daemon"] * 31 + ["virus"]
    assert after["transmissions"] == []


def test_turn_and_next_task_saturate(engine: Engine) -> None:
    before = {**data_of(EMPTY), "turn": LIMIT, "next_task": LIMIT, "interval": 12}
    after, _, _ = play(engine, before, "WAIT")
    assert (after["turn"], after["next_task"]) == (LIMIT, LIMIT)
    assert len(after["transmissions"]) == 1


def test_next_task_saturates_by_siphoning(engine: Engine) -> None:
    before = data_of(EMPTY + "    next_task 32764\n    player siphons 1\n    flags calm\n")
    after, _, _ = play(engine, before, "siphon")
    assert after["next_task"] == LIMIT


def test_pending_saturates(engine: Engine) -> None:
    text = EMPTY.replace(".@ ..", ".@ D.") + "    cell 0,1 spawn 99\n    player siphons 1\n"
    before = {**data_of(text), "pending": LIMIT - 5, "step": True}
    after, _, _ = play(engine, before, "siphon")
    assert after["pending"] == LIMIT


def test_more_pending_than_cells(engine: Engine) -> None:
    after, _, _ = play(engine, {**data_of(EMPTY), "pending": LIMIT}, "WAIT")
    cells = {(t["row"], t["col"]) for t in after["transmissions"]}
    assert len(cells) == len(after["transmissions"]) == 35  # all but the player's
    assert after["pending"] == 0


def test_the_turns_of_transmissions_saturate(engine: Engine) -> None:
    before = {**data_of(EMPTY), "transmissions": [coming(0, LIMIT - 1)]}
    before["player"]["credits"] = 1
    after, _, _ = play(engine, before, "DELAY")
    assert after["transmissions"][0]["turns"] == LIMIT


# --- after the end -------------------------------------------------------------------------------


@pytest.mark.parametrize("over", ["won", "died", "invalid_action"])
def test_after_the_end_step_raises(over: str) -> None:
    game = Game.from_text(EMPTY + f"    over {over}\n")
    before = game.to_dict()
    with pytest.raises(GameOverError):
        game.step(0)
    assert game.to_dict() == before
    assert game.valid_actions() == []


@pytest.mark.parametrize("action", [-1, 28, 1000])
def test_an_action_that_is_none_is_refused(action: int) -> None:
    game = Game.from_text(EMPTY)
    before = game.to_dict()
    with pytest.raises(ValueError, match=r"action must be 0\.\.27"):
        game.step(action)
    assert game.to_dict() == before
