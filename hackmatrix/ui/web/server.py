"""Listening, serving, and the files of a page: what all servers of pages share."""

import asyncio
import contextlib
import gzip
import re
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from hackmatrix.core.errors import UserError
from hackmatrix.ui.web.guard import LOOPBACK

MOST_BYTES = 2**20  # of a message to the server
_FAREWELL = 3  # seconds in which a thread that serves may end

_TYPES = {
    "css": "text/css",
    "html": "text/html",
    "js": "text/javascript",
    "json": "application/json",
    "svg": "image/svg+xml",
    "txt": "text/plain",
}


def give(files: Mapping[str, bytes]) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that answers with the file of the path's `name`, `index.html` without one.

    Every file is compressed once, here, and goes out so to all who accept it.
    """
    packed = {name: gzip.compress(content, mtime=0) for name, content in files.items()}

    async def file(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in files:
            return Response("no such file\n", 404, media_type="text/plain")
        headers = {"vary": "accept-encoding"}
        if is_packed := _takes_gzip(request.headers.get("accept-encoding", "")):
            headers["content-encoding"] = "gzip"
        content = (packed if is_packed else files)[name]
        return Response(content, headers=headers, media_type=_TYPES[name.rsplit(".", 1)[-1]])

    return file


def _takes_gzip(accepted: str) -> bool:
    """Whether the codings of Accept-Encoding (RFC 9110, 12.5.3) have gzip, not with weight 0."""
    weights = dict[str, bool]()
    for coding in accepted.lower().split(","):
        name, _, weight = coding.partition(";")
        weights[name.strip()] = not re.fullmatch(r"\s*q\s*=\s*0(\.0*)?\s*", weight)
    return weights.get("gzip", weights.get("*", False))


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

    async def run_server() -> None:
        try:
            await _server(app).serve(sockets=[listening])
        finally:
            at_end()

    asyncio.run(run_server())


@contextlib.contextmanager
def serving(app: Starlette, listening: socket.socket) -> Iterator[None]:
    """Serves in a thread of its own as long as the context lasts."""
    server = _server(app)
    work = server.serve(sockets=[listening])
    thread = threading.Thread(target=asyncio.run, args=(work,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(_FAREWELL)


def _server(app: Starlette) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        log_level="error",
        ws=WebSocketsSansIOProtocol,
        ws_max_size=MOST_BYTES,
        timeout_graceful_shutdown=1,
        lifespan="off",
    )
    return uvicorn.Server(config)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host."""
    return host in LOOPBACK
