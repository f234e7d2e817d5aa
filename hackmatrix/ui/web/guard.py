"""Who may talk to the server: checks of Host, Origin and token, and headers that bind the page."""

import secrets
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
