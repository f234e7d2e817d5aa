"""The server of the page: its files, the look, and a WebSocket with a session for each tab."""

import asyncio
import contextlib
import json
import socket
from collections.abc import Callable

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from hackmatrix.core.errors import UserError
from hackmatrix.ui.page.assets import page_files
from hackmatrix.ui.session.session import Session
from hackmatrix.ui.web.guard import LOOPBACK, Guard

MOST_SESSIONS = 64
MOST_BYTES = 2**20  # of a message to the server
_PER_SECOND = 120  # messages of a tab

_TYPES = {
    "css": "text/css",
    "html": "text/html",
    "js": "text/javascript",
    "json": "application/json",
    "svg": "image/svg+xml",
}


def make_app(
    new_session: Callable[[], Session], *, token: str | None = None, host: str = "localhost"
) -> Starlette:
    """The application.

    Args:
        new_session: makes the session of a tab.
        token: what a browser has to know; None on the machine itself.
        host: a further name by which the server is called.
    """
    files = page_files()

    async def file(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in files:
            return Response("no such file\n", 404, media_type="text/plain")
        return Response(files[name], media_type=_TYPES[name.rsplit(".", 1)[-1]])

    tabs = set[WebSocket]()

    async def tab(websocket: WebSocket) -> None:
        if len(tabs) >= MOST_SESSIONS:
            await websocket.close(1013, "too many tabs are open")
            return
        tabs.add(websocket)
        try:
            await websocket.accept()
            # Cancelled: the server ends while an agent is still thinking.
            with contextlib.suppress(WebSocketDisconnect, asyncio.CancelledError):
                await _converse(websocket, await asyncio.to_thread(new_session))
        finally:
            tabs.discard(websocket)

    routes = [
        Route("/", file),
        WebSocketRoute("/session", tab),
        Route("/{name}", file),
    ]
    return Starlette(routes=routes, middleware=[Middleware(Guard, token=token, host=host)])


async def _converse(websocket: WebSocket, session: Session) -> None:
    """Answers a tab's messages one by one, no faster than its rate."""
    clock = asyncio.get_running_loop().time
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


def bind(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        UserError: the address is not one of this machine, or is in use.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = error.strerror or error
        raise UserError(
            f"can't listen on {host} port {port} ({reason}): choose another --port, 0 for any"
        ) from None


def serve(app: Starlette, listening: socket.socket, at_end: Callable[[], None]) -> None:
    """Serves until the process is told to stop; then `at_end` frees threads that still wait."""
    config = uvicorn.Config(
        app,
        log_level="error",
        ws=WebSocketsSansIOProtocol,
        ws_max_size=MOST_BYTES,
        timeout_graceful_shutdown=1,
        lifespan="off",
    )

    async def served() -> None:
        try:
            await uvicorn.Server(config).serve(sockets=[listening])
        finally:
            at_end()

    asyncio.run(served())


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host."""
    return host in LOOPBACK
