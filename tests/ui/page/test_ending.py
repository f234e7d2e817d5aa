"""The end of a game in a real browser: what it says, and what to do next."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import fresh, opened, served, settled

from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.game.engine.replay import GameId, Replay
from hackmatrix.ui.session.session import Session


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served("play", "--seed", "7") as it:
        yield it


@pytest.fixture(scope="module")
def desktop(browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address) as page:
        yield page


@pytest.fixture
def page(desktop: Any) -> Any:
    return fresh(desktop, "7")


def lost_game() -> tuple[Session, tuple[int, ...]]:
    """A game in which the player walks to the exit until it dies of a hit, and its actions."""
    for seed in range(100):
        session = Session(GameId(seed), cast(resolve("exit")))
        for _ in range(5):
            session.handle({"do": "agent", "steps": 100})
        if session.tree.state(session.at).over == "died":
            return session, session.tree.line(session.at)
    raise AssertionError("nobody died")


@pytest.fixture
def died(page: Any, tmp_path: Path) -> Any:
    """The page after the last action of a game that is lost, taken by hand."""
    game, actions = lost_game()
    assert actions[-1] < 4
    replay = tmp_path / "game.json"
    replay.write_text(json.dumps(Replay(game.tree.game, actions[:-1]).as_json()))
    page.locator("#file").set_input_files(replay)
    settled(page, len(actions) - 1)
    page.locator(f"#pad [data-action='{actions[-1]}']").dispatch_event("click")
    page.wait_for_selector("#ending:visible")
    return page, game, actions


def test_it_says_what_killed_how_far_it_went_and_plays_the_last_turns(died: Any) -> None:
    page, game, actions = died
    assert page.inner_text("#ending-words").startswith("You died. Score")
    assert page.inner_text("#ending-why").endswith("hits you")
    assert page.locator("#ending-stages .cleared").count() == game.tree.state(game.at).stage - 1
    page.click("#last-turns")
    page.wait_for_selector("#ending", state="hidden")
    page.wait_for_selector("#ending:visible")
    settled(page, len(actions))
    assert page.evaluate("hackmatrix.game.nodes.length") == len(actions) + 1  # nothing was played
    result = Axe().run(page).response
    assert [found["id"] for found in result["violations"]] == []


@pytest.mark.parametrize("key", ["r", "Enter"])
def test_one_key_begins_again_and_the_game_is_among_the_best(died: Any, key: str) -> None:
    page, game, actions = died
    page.keyboard.press(key)
    settled(page, 0)
    page.wait_for_function("() => hackmatrix.game.nodes.length === 1")
    assert page.is_hidden("#ending")
    page.click("#my-games")
    best = page.locator("#best-games li").all_inner_texts()
    state = game.tree.state(game.at)
    assert f"stage {state.stage}, score {state.player.score}, game {game.tree.game}" in best
    assert len(best) == len({*best})
    assert len(actions) > 1
    page.keyboard.press("Escape")
