"""`hackmatrix play`: the game in a browser or a terminal."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hackmatrix.cli.arguments import parse
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import check, option

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from hackmatrix.ui.session.session import Session

MAX_PORT = 65_535
_SIMULATIONS = 64  # of the search that can be asked


@dataclass(frozen=True)
class ServedOptions:
    """Where a page is served."""

    port: int = option(8642, "port of the page, 0 for any free one", at_least=0, at_most=MAX_PORT)
    host: str = option(
        "127.0.0.1", "address to listen at; for other machines to reach it, --token is required"
    )
    token: str | None = option(
        None, "secret without which nobody may open the page: http://HOST:PORT/?token=..."
    )
    open: bool = option(True, "open the page in a browser")

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class PageOptions(ServedOptions):
    """Where a game is shown."""

    terminal: bool = option(False, "use this terminal instead of a browser")


@dataclass(frozen=True)
class PlayOptions(PageOptions):
    """The command's options."""

    seed: str | None = option(
        None, "game to play, such as 7, or 7.3 for its episode 3; default a random one"
    )


def main(argv: list[str]) -> int:
    """Serves the page until Ctrl+C."""
    options = parse(
        PlayOptions,
        argv,
        command="hackmatrix play",
        purpose="Opens HackMatrix in your browser, to play by keyboard, mouse or touch.",
        example="  hackmatrix play --seed 7\n      opens the game of seed 7",
    )
    keep_products_single()
    from importlib.util import find_spec

    from hackmatrix.agents.roster.judge import judge
    from hackmatrix.agents.roster.names import SHIPPED, resolve
    from hackmatrix.agents.roster.search_player import Searching
    from hackmatrix.agents.roster.session_agents import cast
    from hackmatrix.game.engine.replay import GameId
    from hackmatrix.ui.session.session import Session

    # Who is asked afterwards what it would have done; a search only where there is JAX.
    search = _SIMULATIONS if find_spec("jax") else None
    agents = cast(resolve(SHIPPED, search), search_first=False)
    game = None if options.seed is None else GameId.read(options.seed)

    def session() -> Session:
        return Session(game, agents, judge=judge, playing=True)

    def at_end() -> None:
        for make in agents.values():
            if isinstance(make, Searching):
                make.stop()

    return show_page(options, session, at_end)


def keep_products_single() -> None:
    """Has NumPy, if it is not imported yet, compute products in one thread: the page's are small.

    Threads that share them would wait for each other, on a busy machine for most of the time.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def show_page(
    options: PageOptions,
    session: "Callable[[], Session]",
    at_end: "Callable[[], None]" = lambda: None,
) -> int:
    """Serves the page and opens it in a browser, or shows a session in the terminal.

    Args:
        options: where.
        session: makes the session of a tab.
        at_end: is called when it ends, so that no thread goes on waiting.

    Raises:
        UserError: the address can't be used.
    """
    if options.terminal:
        try:
            _terminal()(session(), at_end)
        finally:
            at_end()
        return 0

    def make(token: str | None, host: str) -> "Starlette":
        from hackmatrix.ui.page.server import make_app

        return make_app(session, token=token, host=host)

    return serve_page(options, make, at_end)


def serve_page(
    options: ServedOptions,
    make_app: "Callable[[str | None, str], Starlette]",
    at_end: "Callable[[], None]" = lambda: None,
) -> int:
    """Serves an application and opens it in a browser.

    Args:
        options: where.
        make_app: makes the application, given its token and host.
        at_end: is called when it ends.

    Raises:
        UserError: the address can't be used.
    """
    from hackmatrix.ui.web.server import bind, is_loopback, serve

    if not is_loopback(options.host) and not options.token:
        raise UserError(f"--host {options.host} lets other machines in: give a --token too")
    listening = bind(options.host, options.port)
    host = f"[{options.host}]" if ":" in options.host else options.host
    address = f"http://{host}:{listening.getsockname()[1]}/"
    address += f"?token={options.token}" if options.token else ""
    print(f"{address}   (Ctrl+C ends)", flush=True)
    if options.open:
        import threading
        import webbrowser

        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    serve(make_app(options.token, options.host), listening, at_end)
    return 0


def _terminal() -> "Callable[[Session, Callable[[], None]], None]":
    """Shows a session in the terminal."""
    from hackmatrix.ui.terminal import keys

    keys.check_terminal()
    from hackmatrix.ui.terminal import app as tui

    return tui.run
