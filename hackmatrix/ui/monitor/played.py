"""Checkpoints of the monitored runs as players: the page of each, and several on the same game."""

import asyncio
import os
import threading
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from hackmatrix.core.errors import UserError, in_words
from hackmatrix.game.drawing import draw
from hackmatrix.game.engine.replay import GameId
from hackmatrix.game.rules.chance import EVALUATION_STREAM
from hackmatrix.ui.monitor.run import Saved, key_of
from hackmatrix.ui.monitor.runs import Runs
from hackmatrix.ui.page.server import page_routes
from hackmatrix.ui.session.growth import checkpoints, play_game
from hackmatrix.ui.session.session import Session
from hackmatrix.ui.session.variations import Tree

_FIRST = GameId(EVALUATION_STREAM)  # as `hackmatrix watch`
_GONE = "there is no such agent: it may have been deleted"
_KEPT_PAGES, _KEPT_GAMES = 16, 64
_one_by_one = threading.Lock()  # games that are played


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
