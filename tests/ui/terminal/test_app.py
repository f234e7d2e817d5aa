"""The terminal with panels: keys, clicks and the course of a game do what they do in the page."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from textual.widgets import Select

from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.replay import GameId
from hackmatrix.game.rules.board import NEIGHBOUR
from hackmatrix.ui.session.session import Session
from hackmatrix.ui.terminal.app import Watch

pytestmark = pytest.mark.thorough


def watching() -> Session:
    return Session(GameId(7), cast(resolve("exit")))


def driven(session: Session, script: Callable[[Watch, Any], Awaitable[None]]) -> Watch:
    """Runs a script against the app in a terminal of 100 x 40."""
    app = Watch(session)

    async def drive() -> None:
        async with app.run_test(size=(100, 40)) as pilot:
            await until(pilot, lambda: bool(app.answer))
            await script(app, pilot)

    with ThreadPoolExecutor(1) as thread:  # the browser of other tests has a loop in this one
        thread.submit(asyncio.run, drive()).result()
    return app


async def until(pilot: Any, holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        await pilot.pause(0.02)


def at(app: Watch, step: int) -> Callable[[], bool]:
    return lambda: app.session.tree.nodes[app.session.at].step == step and not app.is_asking


def shown(app: Watch, panel: str) -> str:
    return str(app.query_one(f"#{panel}").render())


def test_a_game_by_keys_and_clicks_is_the_engines() -> None:
    game = Game.new(7)
    first, second = game.valid_actions()[0], None

    async def script(app: Watch, pilot: Any) -> None:
        nonlocal second
        await pilot.press(("up", "down", "left", "right")[first])
        await until(pilot, at(app, 1))
        game.step(first)
        here = game.state.player.cell
        second = next(a for a in game.valid_actions() if a < 4 and NEIGHBOUR[here][a] is not None)
        row, col = divmod(NEIGHBOUR[here][second], 6)
        await pilot.click("#board", offset=(col * 10 + 4, (5 - row) * 4 + 1))
        await until(pilot, at(app, 2))
        await pilot.press("q")
        await until(pilot, lambda: "not owned" in shown(app, "news"))
        await pilot.press("comma")
        await until(pilot, at(app, 1))
        assert "step 1 of 2" in shown(app, "course")

    app = driven(Session(GameId(7)), script)
    assert app.session.tree.line(2) == (first, second)


def test_an_agent_plays_pauses_and_hands_over() -> None:
    async def script(app: Watch, pilot: Any) -> None:
        assert "1 " in shown(app, "suggestions")
        await pilot.press("question_mark")
        await until(pilot, lambda: len(app._notifications) == 1)
        await pilot.press("enter")
        await until(pilot, at(app, 1))
        assert "exit" in shown(app, "last")
        await pilot.press("space")
        await until(pilot, lambda: app.session.tree.nodes[app.session.at].step >= 3)
        await pilot.press("space")
        await until(pilot, lambda: not app.is_playing)
        await until(pilot, lambda: not app.is_asking)
        width = app.query_one("#course").content_size.width
        await pilot.click("#course", offset=(1, 0))
        await until(pilot, at(app, 0))
        await pilot.click("#course", offset=(width, 0))
        await until(pilot, lambda: app.session.at >= 3 and not app.is_asking)
        app.query_one(Select).value = "random"
        await until(pilot, lambda: app.session.controls == "random" and not app.is_asking)
        await pilot.press("home")
        await until(pilot, at(app, 0))
        await pilot.click("#others")
        await until(pilot, lambda: "exit: " in shown(app, "opinions"))
        taken = app.session.tree.nodes[1].action
        other = next(a for a in range(4) if a != taken and "why" not in app.answer["actions"][a])
        await pilot.press(("up", "down", "left", "right")[other])
        await until(pilot, lambda: len(app.session.tree.nodes[0].children) == 2)
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: app.session.at == 1)

    driven(watching(), script)


@pytest.mark.parametrize("size", [(80, 24), (120, 50)])
def test_it_fits_the_terminal(size: tuple[int, int]) -> None:
    async def script(app: Watch, pilot: Any) -> None:
        await pilot.resize_terminal(*size)
        await pilot.pause(0.2)
        for name in ("numbers", "board", "news", "course"):
            region = app.query_one(f"#{name}").region
            assert region.bottom <= size[1], name
            assert region.height > 0, name
        assert app.query_one("#board").region.bottom <= app.query_one("#news").region.y

    driven(watching(), script)
