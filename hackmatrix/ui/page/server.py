"""The server of the page: its files, the look, and a WebSocket with a session for each tab."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from hackmatrix.game.drawing.theme import LIGHT, LOOK
from hackmatrix.game.rules.actions import ACTION_NAMES
from hackmatrix.game.rules.board import CROSS, NEIGHBOUR
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.stages import LAST_STAGE, MAX_HP
from hackmatrix.ui.session.descriptions import PROGRAM_KEYS, PROGRAM_WORDS
from hackmatrix.ui.session.how_to_play import RULES
from hackmatrix.ui.session.session import Session
from hackmatrix.ui.web.server import Guard, files_in, give

MOST_SESSIONS = 64
_PER_SECOND = 120  # messages of a tab


def make_app(
    new_session: Callable[[], Session], *, token: str | None = None, host: str = "localhost"
) -> Starlette:
    """The application.

    Args:
        new_session: makes the session of a tab.
        token: what a browser has to know; None on the machine itself.
        host: a further name by which the server is called.
    """
    guard = Middleware(Guard, token=token, host=host)
    return Starlette(routes=page_routes(new_session), middleware=[guard])


def page_routes(new_session: Callable[[], Session]) -> list[BaseRoute]:
    """The page's addresses, for an application whose `Guard` stands before them."""
    file, tabs = give(page_files()), set[WebSocket]()

    async def tab(websocket: WebSocket) -> None:
        await websocket.accept()
        if len(tabs) >= MOST_SESSIONS:  # accepted first: else the page would not learn why
            await websocket.close(1013, f"{MOST_SESSIONS} tabs are open already: close one of them")
            return
        tabs.add(websocket)
        try:
            # Cancelled: the server ends while an agent is still thinking.
            with contextlib.suppress(WebSocketDisconnect, asyncio.CancelledError):
                await _converse(websocket, await asyncio.to_thread(new_session))
        finally:
            tabs.discard(websocket)

    return [Route("/", file), WebSocketRoute("/session", tab), Route("/{name}", file)]


async def _converse(websocket: WebSocket, session: Session) -> None:
    """Answers a tab's messages one by one, no faster than its rate."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()
    session.notify = partial(loop.call_soon_threadsafe, changed.set)
    teller = asyncio.create_task(_tell(websocket, changed))
    try:
        await _answer(websocket, session, loop.time)
    finally:
        teller.cancel()


async def _tell(websocket: WebSocket, changed: asyncio.Event) -> None:
    """Sends an empty message, which answers none, whenever the game was changed by others."""
    with contextlib.suppress(WebSocketDisconnect):
        while await changed.wait():
            changed.clear()
            await websocket.send_text("{}")


async def _answer(websocket: WebSocket, session: Session, clock: Callable[[], float]) -> None:
    free_at = clock()
    while True:
        received = await websocket.receive()
        if received["type"] == "websocket.disconnect":
            return
        free_at = max(free_at, clock() - 1) + 1 / _PER_SECOND
        await asyncio.sleep(max(0, free_at - clock()))
        try:
            message = json.loads(received["text"])
        except (KeyError, ValueError, RecursionError):  # KeyError: it is bytes, no text
            message = None
        answer = await asyncio.to_thread(session.handle, message)
        if isinstance(message, dict) and isinstance(message.get("id"), int):
            answer["id"] = message["id"]
        await websocket.send_text(json.dumps(answer, separators=(",", ":"), allow_nan=False))


# --- The files that the page is given once: its own, the look, and the game's tables --------------


def page_files(folder: str = "static") -> dict[str, bytes]:
    """The files of the page by name; those of `static` with `look.json`, which is made here."""
    found = files_in("page", folder)
    if folder != "static":
        return found
    return {"look.json": look(), **files_in("web"), **found}


def look() -> bytes:
    """The table of shapes and colours, the game's tables, and its rules in pictures, as JSON."""
    programs = [
        {
            **program._asdict(),
            "does": PROGRAM_WORDS[program.name][0],
            "key": PROGRAM_KEYS[program.name],
        }
        for program in PROGRAMS
    ]
    tables: dict[str, Any] = {
        "light": LIGHT,
        "actions": ACTION_NAMES,
        "programs": programs,
        "neighbours": NEIGHBOUR,
        "cross": CROSS,
        "stages": LAST_STAGE,
        "hp": MAX_HP,
        "rules": [rule.as_json() for rule in RULES],
    }
    return json.dumps(LOOK | tables).encode()
