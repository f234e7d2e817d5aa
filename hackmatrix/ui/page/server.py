"""The server of the page: its files, the look, and a WebSocket with a session for each tab."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from functools import partial

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from hackmatrix.ui.page.assets import page_files
from hackmatrix.ui.session.session import Session
from hackmatrix.ui.web.guard import Guard
from hackmatrix.ui.web.server import give

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
