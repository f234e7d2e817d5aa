"""The end of a game in a real browser: what it says, and what to do next."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from browser import settled
from page_views import PHONE, SMALL
from paths import ROOT
from suites import first_quickly

from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.game.engine.events import EventKind
from hackmatrix.game.engine.replay import GameId
from hackmatrix.game.rules.board import NEIGHBOUR, col, row
from hackmatrix.ui.session.session import Session

pytestmark = pytest.mark.thorough

ARROWS = ("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight")
WON = json.loads((ROOT / "docs" / "won.json").read_text())
CLEARED = """(here) => [...document.querySelectorAll("#picture .ground > g")].every(
  (cell, i) => i === here || getComputedStyle(cell).opacity === "0")"""


def lost_game(rows: range = range(6)) -> tuple[Session, tuple[int, ...]]:
    """A game in which the player walks to the exit until it dies in some rows, and its actions."""
    for seed in range(100):
        session = Session(GameId(seed), cast(resolve("exit")))
        for _ in range(5):
            session.handle({"do": "agent", "steps": 100})
        state = session.tree.state(session.at)
        if state.over == "died" and row(state.player.cell) in rows:
            return session, session.tree.line(session.at)
    raise AssertionError("nobody died")


def killer(game: Session) -> str:
    """The enemies that hit in the last turn, as the page names them."""
    before, outcome = game.tree.last(game.at) or (None, None)
    assert before is not None
    assert outcome is not None
    hits = [event for event in outcome.events if event.kind == EventKind.HIT]
    return " and the ".join(f"{e.piece} at {row(e.cell or 0)},{col(e.cell or 0)}" for e in hits)


@pytest.fixture
def died(page: Any, tmp_path: Path) -> Any:
    """The page after the last action of a game that is lost, taken by hand."""
    game, actions = lost_game()
    end(page, tmp_path, str(game.tree.game), actions)
    return page, game, actions


def end(page: Any, folder: Path, seed: str, actions: Sequence[int]) -> None:
    """Opens a game that was played by hand up to its last action, and takes that."""
    assert actions[-1] < 4
    begin(page, folder, seed, actions[:-1])
    page.locator(f"#pad [data-action='{actions[-1]}']").dispatch_event("click")
    page.wait_for_selector("#ending:visible")


def begin(page: Any, folder: Path, seed: str, actions: Sequence[int]) -> None:
    """Opens a game that was played by hand."""
    nodes = [[number, action, "you"] for number, action in enumerate(actions)]
    file = folder / "game.json"
    file.write_text(json.dumps({"seed": seed, "nodes": nodes, "at": len(nodes)}))
    page.locator("#file").set_input_files(file)
    page.wait_for_function("(seed) => hackmatrix.game.id === seed", arg=seed)
    settled(page, len(actions))


def begun_again(page: Any) -> None:
    page.wait_for_function("() => hackmatrix.game.nodes.length === 1")
    settled(page, 0)
    assert page.is_hidden("#ending")


def test_it_says_what_killed_plays_the_last_turns_and_shares_a_line(died: Any) -> None:
    page, game, actions = died
    state = game.tree.state(game.at)
    assert page.inner_text("#ending-words") == "You died."
    cleared = state.stage - 1
    hits = game.handle({"do": "hello"})["hits"]
    course = f"{cleared} of 8 stages · {len(actions)} moves · {hits} hits taken · score "
    assert page.inner_text("#ending-course").startswith(course)
    assert page.inner_text("#ending-why") == f"Killed by the {killer(game)}."
    assert page.locator("#ending-stages .cleared").count() == cleared
    page.click("#last-turns")
    page.wait_for_selector("#ending", state="hidden")
    page.wait_for_selector("#ending:visible")
    settled(page, len(actions))
    assert page.evaluate("hackmatrix.game.nodes.length") == len(actions) + 1  # nothing was played
    # Without a link, as others do not reach 127.0.0.1.
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("#share-end")
    page.wait_for_function(
        "() => document.getElementById('problem').textContent.includes('copied')"
    )
    words = page.evaluate("navigator.clipboard.readText()")
    squares = "\N{LARGE GREEN SQUARE}" * cleared + "\N{BLACK LARGE SQUARE}" * (8 - cleared)
    assert words.endswith(f"{squares} {cleared} of 8, score {state.player.score}")
    assert "without a link" in page.inner_text("#problem")


def test_one_key_begins_again_and_the_game_is_among_the_best(died: Any) -> None:
    page, game, _ = died
    page.keyboard.press("r")
    begun_again(page)
    page.click("#my-games")
    best = page.locator("#best-games li").all_inner_texts()
    state = game.tree.state(game.at)
    assert f"stage {state.stage}, score {state.player.score}, game {game.tree.game}" in best
    assert len(best) == len({*best})


def test_the_card_leaves_the_board_to_the_analysis(died: Any) -> None:
    page, _, _ = died
    page.click("#analyse")
    page.wait_for_selector("#report", state="attached")
    page.wait_for_selector("#ending", state="hidden")
    page.evaluate("() => document.getElementById('retry').click()")
    page.wait_for_selector("#ending:visible")
    page.keyboard.press("Enter")
    begun_again(page)


def streaks(page: Any) -> list[str]:
    page.click("#my-games")
    found: list[str] = page.locator("#best-streaks li").all_inner_texts()
    page.keyboard.press("Escape")
    return found


def test_the_best_streak_stands_on_a_ladder_of_agents(page: Any) -> None:
    kept = '[{"seeds": ["1", "2"], "score": 20, "open": true}]'
    page.evaluate("(kept) => localStorage.setItem('hackmatrix-streaks', kept)", kept)
    page.click("#my-games")
    rungs = page.locator("#ladder li").all_inner_texts()
    names, scores = zip(*(rung.split("\n") for rung in rungs), strict=True)
    assert sorted(map(float, scores), reverse=True) == [float(score) for score in scores]
    assert names == ("score", "you, at best", "shipped", "scripted")
    assert page.locator("#ladder .mine").inner_text() == "you, at best\n20"


def test_a_win_clears_the_board_and_wins_in_a_row_are_added_up(page: Any, tmp_path: Path) -> None:
    page.evaluate("() => localStorage.removeItem('hackmatrix-streaks')")
    assert streaks(page) == ["None yet."]
    page.select_option("#speed", "2")
    end(page, tmp_path, WON["seed"], WON["actions"])
    player = settled(page)["seen"]["player"]
    cell, score = player["row"] * 6 + player["col"], player["score"]
    page.wait_for_function(CLEARED, arg=cell)
    assert page.inner_text("#ending-words").startswith("You have won!")
    assert page.inner_text("#ending-course").startswith(f"8 of 8 stages · {len(WON['actions'])} ")
    page.wait_for_selector("#ghost-stages:visible")
    assert page.locator("#ghost-stages .cleared").count() >= 1
    assert "agent" in page.inner_text("#ghost-words")
    assert page.inner_text("#ending-streak").startswith(f"1 win in a row, score {score}. Next: ")
    page.keyboard.press(",")
    page.wait_for_function("() => !hackmatrix.busy && document.getElementById('ending').hidden")
    assert not page.evaluate(CLEARED, cell)  # it is drawn again
    assert streaks(page) == [f"1 win in a row, score {score}, goes on"]
    page.select_option("#speed", "0")
    # The same game again is not another win.
    end(page, tmp_path, WON["seed"], WON["actions"])
    assert streaks(page) == [f"1 win in a row, score {score}, goes on"]
    game, actions = lost_game()
    end(page, tmp_path, str(game.tree.game), actions)
    assert page.inner_text("#ending-streak") == ""
    assert streaks(page) == [f"1 win in a row, score {score}"]


@pytest.mark.parametrize("helper", ["#coach", "#ghost"])
def test_a_win_with_help_counts_for_no_streak(page: Any, tmp_path: Path, helper: str) -> None:
    page.evaluate("() => localStorage.removeItem('hackmatrix-streaks')")
    page.check(helper)
    end(page, tmp_path, WON["seed"], WON["actions"])
    assert "does not count" in page.inner_text("#ending-streak")
    assert streaks(page) == ["None yet."]


def test_a_game_in_which_a_move_was_taken_back_is_no_score(page: Any, tmp_path: Path) -> None:
    page.evaluate("() => localStorage.clear()")
    *before, last = WON["actions"]
    begin(page, tmp_path, WON["seed"], before)
    valid = [a for a in range(4) if "why" not in settled(page)["actions"][a]]
    page.keyboard.press(ARROWS[next(a for a in valid if a != last)])
    settled(page, len(before) + 1)
    page.keyboard.press(",")
    settled(page, len(before))
    page.keyboard.press(ARROWS[last])
    page.wait_for_selector("#ending:visible")
    assert page.inner_text("#ending-words").startswith("You have won!")
    assert streaks(page) == ["None yet."]
    assert page.evaluate("() => localStorage.getItem('hackmatrix-best')") is None


@pytest.mark.parametrize("rows", first_quickly([range(3), range(3, 6)]))
def test_the_card_leaves_in_sight_who_died_and_of_what(
    page: Any, tmp_path: Path, rows: range
) -> None:
    usual = page.viewport_size
    game, actions = lost_game(rows)
    end(page, tmp_path, str(game.tree.game), actions)
    here = game.tree.state(game.at).player.cell
    for screen in (PHONE, SMALL):
        page.set_viewport_size(screen["viewport"])
        card = page.locator("#ending").bounding_box()
        for cell in (here, *(c for c in NEIGHBOUR[here] if c is not None and row(c) in rows)):
            box = page.locator(f"#grid [data-cell='{cell}']").bounding_box()
            assert box["y"] + box["height"] <= card["y"] or box["y"] >= card["y"] + card["height"]
    page.set_viewport_size(usual)


def test_the_days_game_is_compared_with_the_agents(page: Any, tmp_path: Path) -> None:
    walker = Session(GameId(20260101), cast(resolve("exit")))
    walker.handle({"do": "agent", "steps": 100})
    mine = walker.tree.line(walker.at)
    assert walker.tree.state(walker.at).over
    agents = Session(GameId(20260101), cast(resolve("shipped")))
    while not agents.tree.state(agents.at).over:
        agents.handle({"do": "agent", "steps": 100})
    theirs = agents.tree.line(agents.at)
    end(page, tmp_path, "20260101", mine)
    page.wait_for_selector("#ending-ghost:visible")
    score = agents.tree.state(agents.at).player.score
    assert f"score {score}" in page.inner_text("#ghost-words")
    page.click("#compare")
    leaves = next(
        i for i, (one, other) in enumerate(zip(mine, theirs, strict=False)) if one != other
    )
    settled(page, leaves)
    page.wait_for_function(
        "(steps) => document.getElementById('step-number').textContent.endsWith(` of ${steps}`)",
        arg=len(theirs),
    )
    page.keyboard.press(".")
    assert settled(page, leaves + 1)["last"]["by"] == "shipped"
    assert page.is_visible("#tree")
    page.keyboard.press("End")
    settled(page, len(theirs))
    assert page.inner_text("#ending-words").startswith("The agent ")
