"""The events of an action, in order: what the page and films draw."""

import pytest

from hackmatrix.game.engine import Game
from hackmatrix.game.rules.actions import ACTION_NAMES

EMPTY = ".. .. .. .. .. ..\n"
CASES = {
    "walking onto a data siphon, and a turn in which nothing happens": (
        "X. .. .. .. .. ..\n" + EMPTY * 3 + "s. .. .. .. .. ..\n.@ .. .. .. .. ..",
        "up",
        ["player_moved 0,0 1,0", "picked_up 1,0"],
    ),
    "an attack that stuns": (
        "X. .. .. .. .. ..\n" + EMPTY * 3 + ".d .. .. .. .. ..\n.@ .. .. .. .. ..",
        "up",
        ["attacked 1,0 daemon 1"],
    ),
    "an attack that kills": (
        "X. .. .. .. .. ..\n" + EMPTY * 3 + ".d .. .. .. .. ..\n.@ .. .. .. .. ..\n"
        "enemy daemon 1,0 hp 1",
        "up",
        ["attacked 1,0 daemon 1", "destroyed 1,0 daemon"],
    ),
    "a transmission is destroyed": (
        "X. .. .. .. .. ..\n" + EMPTY * 3 + ".+ .. .. .. .. ..\n.@ .. .. .. .. ..\n"
        "transmission daemon 1,0 turns 5",
        "up",
        ["destroyed 1,0 transmission"],
    ),
    "a transmission lands": (
        "X. .. .. .. .. .+\n" + EMPTY * 4 + ".@ .. .. .. .. ..\n"
        "transmission virus 5,5 turns 1\nowned WAIT\nplayer energy 1",
        "WAIT",
        ["program_ran wait", "landed 5,5 virus"],
    ),
    "an enemy comes and hits": (
        "X. .. .. .. .. ..\n" + EMPTY * 2 + ".v .. .. .. .. ..\n" + EMPTY + ".@ .. .. .. .. ..\n"
        "owned WAIT\nplayer energy 1",
        "WAIT",
        ["program_ran wait", "enemy_moved 2,0 1,0 virus", "hit 1,0 0,0 virus"],
    ),
    "a blow that kills the player": (
        "X. .. .. .. .. ..\n" + EMPTY * 3 + ".d .. .. .. .. ..\n.@ .. .. .. .. ..\n"
        "owned WAIT\nplayer energy 1 hp 1",
        "WAIT",
        ["program_ran wait", "hit 1,0 0,0 daemon", "died"],
    ),
    "siphoning": (
        "X. .. .. .. .. ..\n" + EMPTY * 4 + ".@ .. .. .. .. ..\nplayer siphons 1",
        "siphon",
        ["siphoned 0,0", "siphoned 1,0", "siphoned 0,1"],
    ),
    "CRASH": (
        "X. .. .. .. .. ..\n" + EMPTY * 3 + "D. .d .. .. .. ..\n.@ .. .. .. .. ..\n"
        "owned CRASH\nplayer credits 9 energy 9",
        "CRASH",
        ["program_ran crash", "block_removed 1,0", "destroyed 1,1 daemon"],
    ),
    "STEP": (
        "X. .. .. .. .. ..\n" + EMPTY * 4 + ".@ .. .. .. .. ..\nflags step",
        "right",
        ["player_moved 0,0 0,1", "enemy_turn_skipped"],
    ),
    "PUSH": (
        "X. .. .. .. .. ..\n" + EMPTY * 3 + ".d .. .. .. .. ..\n.@ .. .. .. .. ..\n"
        "owned PUSH\nplayer credits 9 energy 9",
        "PUSH",
        ["program_ran push", "enemy_moved 1,0 2,0 daemon"],
    ),
    "WARP": (
        "X. .. .. .. .. .d\n" + EMPTY * 4 + ".@ .. .. .. .. ..\n"
        "owned WARP\nplayer credits 9 energy 9",
        "WARP",
        ["program_ran warp", "destroyed 5,5 daemon", "player_moved 0,0 5,5"],
    ),
}


def words(game: Game, action: str) -> list[str]:
    def place(cell: int | None) -> str | None:
        return None if cell is None else f"{cell // 6},{cell % 6}"

    events = game.step(ACTION_NAMES.index(action)).events
    facts = ((e.kind, place(e.cell), place(e.to), e.piece, e.amount) for e in events)
    return [" ".join(str(fact) for fact in event if fact is not None) for event in facts]


@pytest.mark.parametrize("case", CASES)
def test_events(case: str) -> None:
    text, action, expected = CASES[case]
    assert words(Game.from_text(text), action) == expected


def test_a_stage_ends_and_the_next_begins() -> None:
    text = "X. .. .. .. .. ..\n.@ .. .. .. .. ..\n" + EMPTY * 4
    moved, completed, *spawned, began = words(Game.from_text(text + "stage 3"), "up")
    assert (moved, completed) == ("player_moved 4,0 5,0", "stage_completed 3")
    assert [event.split()[0] for event in spawned] == ["spawned"] * 4
    assert began == "stage_began 4"


def test_the_last_stage_ends_the_game() -> None:
    text = "X. .. .. .. .. ..\n.@ .. .. .. .. ..\n" + EMPTY * 4
    events = words(Game.from_text(text + "stage 8"), "up")
    assert events == ["player_moved 4,0 5,0", "stage_completed 8", "won"]


def test_a_new_game_has_none() -> None:
    assert Game.new(0).state.events == []


def test_undo() -> None:
    text = "X. .. .. .. .. ..\n" + EMPTY * 4 + ".@ .. .. .. .. ..\nowned UNDO\nplayer credits 9"
    game = Game.from_text(text)
    words(game, "up")
    assert words(game, "UNDO") == ["program_ran undo", "undone"]


def test_poly_names_the_new_type() -> None:
    text = (
        "X. .. .. .. .. .d\n"
        + EMPTY * 4
        + ".@ .. .. .. .. ..\nowned POLY\nplayer credits 9 energy 9"
    )
    game = Game.from_text(text)
    ran, changed = words(game, "POLY")
    assert ran == "program_ran poly"
    assert changed == f"changed_type 5,5 {game.state.enemies[0].type.name.lower()}"
