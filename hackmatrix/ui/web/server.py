"""Listening, serving, access, and the files of a page: what all servers of pages share."""

import asyncio
import contextlib
import gzip
import re
import secrets
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from importlib import resources
from urllib.parse import parse_qs, urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request, cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from hackmatrix.core.errors import UserError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_COOKIE = "hackmatrix-token"
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}
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


def files_in(subpackage: str, folder: str = "static") -> dict[str, bytes]:
    """The files in a folder of a subpackage of `ui`, by name."""
    files = (resources.files("hackmatrix.ui") / subpackage / folder).iterdir()
    return {file.name: file.read_bytes() for file in files if file.is_file()}


class Guard:
    """ASGI middleware in front of the whole server.

    Without a token, only requests to a loopback name (or `host`) are answered, whatever address
    they come to: a foreign name that resolves to this machine is refused (DNS rebinding). With a
    token, it must be in the query once and in a cookie from then on. WebSockets must come from a
    page of this server.
    """

    def __init__(self, app: ASGIApp, *, token: str | None, host: str = "localhost") -> None:
        self.app = app
        self.token = token
        self.names = LOOPBACK | {host}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers or refuses a request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if scope["type"] == "http":
            await (refusal or self.app)(scope, receive, _with_headers(send))
        elif refusal is None:
            await self.app(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self.token is None and _name(f"http://{host}") not in self.names:
            return PlainTextResponse("This page answers on localhost only.\n", 403)
        if scope["type"] == "websocket" and not _is_own(headers.get("origin"), host):
            return PlainTextResponse("Another page may not connect.\n", 403)
        return None if self.token is None else self._check_token(scope, headers)

    def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        assert self.token is not None
        query = parse_qs(scope["query_string"].decode("latin-1"))
        given = query.get("token", [""])[0]
        if scope["type"] == "http" and _same(given, self.token):
            answer = RedirectResponse("/")
            answer.set_cookie(_COOKIE, self.token, httponly=True, samesite="strict")
            return answer
        cookie = cookie_parser(headers.get("cookie", "")).get(_COOKIE, "")
        if _same(cookie, self.token):
            return None
        return PlainTextResponse("Open the address with its token: /?token=...\n", 403)


def _same(value: str, token: str) -> bool:
    return secrets.compare_digest(value.encode(), token.encode())


def _name(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


def _is_own(origin: str | None, host: str) -> bool:
    return origin is not None and origin in (f"http://{host}", f"https://{host}")


def _with_headers(send: Send) -> Send:
    async def app_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(_HEADERS)
        await send(message)

    return app_with_headers


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
