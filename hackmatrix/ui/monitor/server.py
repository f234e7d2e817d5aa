"""The server of the monitor's page: its files, answers in JSON, and checkpoints as players."""

import asyncio
import math
import os
import threading
import time
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from hackmatrix.core.errors import UserError, in_words
from hackmatrix.game.drawing import draw
from hackmatrix.game.drawing.theme import COLOURS, LIGHT
from hackmatrix.game.engine.replay import GameId
from hackmatrix.game.rules.chance import EVALUATION_STREAM
from hackmatrix.ui.monitor.answers import Wanted, curves, overview
from hackmatrix.ui.monitor.run import Saved, key_of
from hackmatrix.ui.monitor.runs import Runs
from hackmatrix.ui.monitor.status import AXES
from hackmatrix.ui.page.server import page_routes
from hackmatrix.ui.session.growth import checkpoints, play_game
from hackmatrix.ui.session.session import Session
from hackmatrix.ui.session.variations import Tree
from hackmatrix.ui.web.server import Guard, files_in, give

_FIRST = GameId(EVALUATION_STREAM)  # as `hackmatrix watch`
_GONE = "there is no such agent: it may have been deleted"
_KEPT_PAGES, _KEPT_GAMES = 16, 64
_one_by_one = threading.Lock()  # games that are played
_MOST_METRICS = 100  # of one answer
_MOST_ROWS = 100_000  # that smoothing is over
_MOST_PIXELS = 4000
_BREATH = 0.002  # seconds between two pieces of a long file, in which pages are answered


def game_routes(runs: Runs) -> list[BaseRoute]:
    """The addresses of what checkpoints play; only those of the runs, and only by their keys."""

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        answer: ASGIApp
        try:
            answer = await asyncio.to_thread(_page_of, runs, scope["path_params"]["key"])
        except UserError as error:
            answer = WebSocketClose() if scope["type"] == "websocket" else _refusal(error)
        await answer(scope, receive, send)

    def games(request: Request) -> Response:
        try:
            folder = _folder(runs, request.path_params["key"])
            game = GameId.read(request.query_params.get("seed", str(_FIRST)))
            endings = [
                _ending_of_game(update, path, game) for update, path in checkpoints(folder).items()
            ]
        except UserError as error:
            return _refusal(error)
        return JSONResponse({"run": folder.name, "seed": str(game), "games": endings})

    def picture(request: Request) -> Response:
        update, step = request.path_params["update"], request.path_params["step"]
        try:
            folder = _folder(runs, request.path_params["key"])
            path = checkpoints(folder).get(update)
            game = GameId.read(request.query_params.get("seed", str(_FIRST)))
            tree = None if path is None else _game(path, _time_written(path), game)
        except UserError as error:
            return _refusal(error)
        if tree is None or step >= len(tree.nodes):
            return PlainTextResponse("no such picture\n", 404)
        return Response(draw(tree.state(step)), media_type="image/svg+xml")

    return [
        Mount("/played/{key}", page),
        Route("/grown/{key}", games),
        Route("/grown/{key}/{update:int}/{step:int}.svg", picture),
    ]


def _refusal(error: UserError) -> Response:
    return PlainTextResponse(f"{error}\n", 404)


def _playable(runs: Runs) -> list[Saved]:
    with runs.lock:
        return [each for run in runs.runs for each in run.saved_params() if each.playable]


def _folder(runs: Runs, key: str) -> Path:
    """The folder of a run's, or agent's, checkpoints."""
    folders = {saved.path.parent for saved in _playable(runs)}
    folder = next((each for each in folders if key_of(each) == key), None)
    if folder is None:
        raise UserError(_GONE)
    return folder


def _page_of(runs: Runs, key: str) -> ASGIApp:
    path = next((each.path for each in _playable(runs) if key_of(each.path) == key), None)
    if path is None:
        raise UserError(_GONE)
    return _page(path, _time_written(path))


def _time_written(path: Path) -> int:
    """When a file was written, so that what is kept of it is of the file that is there now."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise UserError(in_words(error)) from None
    if not S_ISREG(status.st_mode):  # a pipe would keep its reader waiting
        raise UserError(f"{path}: is no file of params")
    return status.st_mtime_ns


@lru_cache(_KEPT_PAGES)
def _page(path: Path, written: int) -> ASGIApp:
    from hackmatrix.agents.roster.judge import judge
    from hackmatrix.agents.roster.names import AgentName
    from hackmatrix.agents.roster.session_agents import cast

    del written
    agents = cast(AgentName(str(path), path, None))
    next(iter(agents.values()))()  # a damaged file is told at once
    return Router(page_routes(lambda: Session(_FIRST, agents, judge=judge)))


def _ending_of_game(update: int, path: Path, game: GameId) -> dict[str, object]:
    """How a checkpoint's game ends."""
    with _one_by_one:
        tree = _game(path, _time_written(path), game)
    end = tree.nodes[-1]
    return {
        "update": update,
        "steps": end.step,
        "stage": end.stage,
        "score": tree.state(end.index).player.score,
        "over": end.over,
        "page": f"played/{key_of(path)}/",
    }


@lru_cache(_KEPT_GAMES)
def _game(path: Path, written: int, game: GameId) -> Tree:
    """The game that a checkpoint plays, whose positions are the nodes of a tree with one line."""
    del written
    tree = Tree(game)
    for step, action in enumerate(play_game(path, game).actions):
        tree.play(step, action, path.stem)
    return tree


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
