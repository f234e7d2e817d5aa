"""The pages of checkpoints: an agent of a run that is monitored, watched in the browser."""

import hashlib
from pathlib import Path

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from hackmatrix.core.errors import UserError
from hackmatrix.ui.monitor.runs import Runs


def key_of(path: Path) -> str:
    """The name under which a file of params is watched."""
    return hashlib.sha256(str(path).encode()).hexdigest()[:16]


class Played:
    """An ASGI application: `/KEY/` is the page of an agent, and only of one that can be watched."""

    def __init__(self, runs: Runs, token: str | None, host: str) -> None:
        self._runs, self._token, self._host = runs, token, host
        self._pages: dict[str, ASGIApp] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers with the page, or says why there is none."""
        key = scope["path_params"]["key"]
        try:
            if key not in self._pages:
                self._pages[key] = self._page(key)
            app = self._pages[key]
        except UserError as error:
            app = PlainTextResponse(f"{error}\n", 404)
        if scope["type"] == "websocket" and key not in self._pages:
            await send({"type": "websocket.close", "code": 1008})
            return
        await app(scope, receive, send)

    def _page(self, key: str) -> ASGIApp:
        from hackmatrix.agents.roster.judge import judge
        from hackmatrix.agents.roster.names import resolve
        from hackmatrix.agents.roster.session_agents import cast
        from hackmatrix.game.engine.replay import GameId
        from hackmatrix.game.rules.chance import EVALUATION_STREAM
        from hackmatrix.ui.page.server import make_app
        from hackmatrix.ui.session.session import Session

        with self._runs.lock:
            saved = [each for run in self._runs.runs for each in run.saved() if each.playable]
        path = next((each.path for each in saved if key_of(each.path) == key), None)
        if path is None:
            raise UserError("there is no such agent: it may have been deleted")
        agents = cast(resolve(str(path)))
        next(iter(agents.values()))()  # a damaged file is told at once
        game = GameId(EVALUATION_STREAM)
        return make_app(
            lambda: Session(game, agents, judge=judge), token=self._token, host=self._host
        )
