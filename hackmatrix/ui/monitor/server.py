"""The server of the monitor's page: its files, two answers in JSON, plots of searches."""

import asyncio
import math
import os
import threading
import time
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hackmatrix.game.drawing.theme import COLOURS, LIGHT
from hackmatrix.ui.monitor.answers import Wanted, curves, overview
from hackmatrix.ui.monitor.played import game_routes
from hackmatrix.ui.monitor.runs import Runs
from hackmatrix.ui.monitor.status import AXES
from hackmatrix.ui.web.files import files_in
from hackmatrix.ui.web.guard import Guard
from hackmatrix.ui.web.server import give

_MOST_METRICS = 100  # of one answer
_MOST_ROWS = 100_000  # that smoothing is over
_MOST_PIXELS = 4000
_BREATH = 0.002  # seconds between two pieces of a long file, in which pages are answered


def make_app(
    runs: Runs, interval: float, *, token: str | None = None, host: str = "localhost"
) -> Starlette:
    """The application; see `hackmatrix.ui.page.server.make_app`.

    Args:
        runs: what it shows; `keep_reading` reads it.
        interval: seconds after which the page asks again.
        token: what a browser has to know; None on the machine itself.
        host: a further name by which the server is called.
    """
    file = give({"look.css": _look(), **files_in("web"), **files_in("monitor")})

    def answer() -> Any:
        with runs.lock:
            return overview(runs) | {"interval": interval}

    def draw_curves(wanted: Wanted) -> Any:
        with runs.lock:
            return {"version": runs.version, "curves": curves(runs.groups(), wanted)}

    async def tell(_: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(answer))

    async def draw(request: Request) -> Response:
        return JSONResponse(
            await asyncio.to_thread(draw_curves, _parse_query(request.query_params))
        )

    def picture(request: Request) -> Response:
        path = runs.pictures().get(request.path_params["name"])
        content = None if path is None else _own_content(path)
        if content is None:
            return Response("no such picture\n", 404, media_type="text/plain")
        return Response(content, media_type="image/svg+xml")

    routes = [
        Route("/", file),
        Route("/picture/{name}", picture),
        Route("/overview", tell),
        Route("/curves", draw),
        *game_routes(runs),
        Route("/{name}", file),
    ]
    middleware = [Middleware(Guard, token=token, host=host), Middleware(GZipMiddleware)]
    return Starlette(routes=routes, middleware=middleware)


def keep_reading(runs: Runs, interval: float) -> None:
    """Reads what is new every few seconds, in a thread that ends with the process."""

    def read() -> None:
        while True:
            while runs.read():
                time.sleep(_BREATH)
            time.sleep(interval)
            runs.find_more()

    threading.Thread(target=read, daemon=True).start()


def _own_content(path: Path) -> bytes | None:
    """The content of a file; None of what leads to another file, or is gone."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            return file.read()
    except OSError:
        return None


def _parse_query(query: QueryParams) -> Wanted:
    """The curves that a query asks for; what it leaves out or says wrongly has a default."""
    names = query.getlist("metric")[:_MOST_METRICS]
    axis = query.get("axis", AXES[0])
    return Wanted(
        tuple(names),
        axis if axis in AXES else AXES[0],
        min(max(_parse_number(query.get("rows")) or 1, 1), _MOST_ROWS),
        _parse_number(query.get("low")),
        _parse_number(query.get("high")),
        int(min(max(_parse_number(query.get("pixels")) or 400, 20), _MOST_PIXELS)),
    )


def _parse_number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _look() -> bytes:
    """The colours of the game as variables of CSS, light ones where the system's are."""
    dark, light = (
        "".join(f"--{name}: {colour};" for name, colour in colours.items())
        for colours in (COLOURS, LIGHT)
    )
    by_day = f"html:root {{color-scheme: light; {light}}}"
    return f":root {{{dark}}}\n@media (prefers-color-scheme: light) {{{by_day}}}\n".encode()
