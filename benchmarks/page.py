"""Speed of the page in a headless Chromium, and the bytes it sends."""

import contextlib
import functools
import http.server
import json
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.command import run_command
from hackmatrix.agents.roster.names import SHIPPED, resolve
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.core import machine
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import option
from hackmatrix.game.engine.actions import valid_actions
from hackmatrix.game.engine.replay import GameId
from hackmatrix.research.bench.options import Options
from hackmatrix.ui.page.export import export
from hackmatrix.ui.session.session import Session

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_READY = "() => document.body.dataset.ready && !hackmatrix.busy"
_PAINTED = """() => performance.getEntriesByName("first-contentful-paint").length
  && !document.body.classList.contains("loading")"""
_FILES = """() => performance.getEntries()
  .filter((entry) => entry.entryType === "navigation" || entry.entryType === "resource")
  .map((entry) => entry.encodedBodySize)"""

# Presses a key and waits for the picture after it, some times over: milliseconds of each.
_TIMED_KEYS = """
async ([keyOf, count]) => {
  const turn = () => new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = resolve;
    channel.port2.postMessage(0);
  });
  const times = [];
  while (times.length < count) {
    const position = hackmatrix.position;
    if (position.seen.over) { times.push(null); break; }
    const moves = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"];
    const key = keyOf || moves.filter((_, i) => position.actions[i].why === undefined)[0] || "s";
    const started = performance.now();
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    while (hackmatrix.position === position || hackmatrix.busy) await turn();
    times.push(performance.now() - started);
  }
  return times;
}"""

# Lets things move for some seconds: milliseconds from frame to frame while they do.
_FRAMES = """
async (seconds) => {
  const frames = [], end = performance.now() + 1000 * seconds;
  let before = null;
  while (performance.now() < end && !hackmatrix.position.seen.over) {
    const now = await new Promise(requestAnimationFrame);
    const moving = document.body.classList.contains("moving");
    if (moving && before !== null) frames.push(now - before);
    before = moving ? now : null;
    const enter = new KeyboardEvent("keydown", { key: "Enter", bubbles: true });
    if (!hackmatrix.busy) document.body.dispatchEvent(enter);
  }
  return frames;
}"""


@dataclass(frozen=True)
class PageOptions(Options):
    """The options of the command."""

    repeats: int = option(5, "times that each command is started", at_least=1)
    moves: int = option(100, "moves that are timed", at_least=10)
    pyodide: Path | None = option(
        None, "folder of Pyodide's npm package: then the exported page is measured too"
    )


class Figure(NamedTuple):
    """Measured values of one thing."""

    values: list[float]
    unit: str

    @property
    def median(self) -> float:
        """Their median."""
        return statistics.median(self.values)

    def text(self) -> str:
        """Median, least and greatest."""
        low, high = min(self.values), max(self.values)
        span = "" if low == high else f" ({low:,.4g} to {high:,.4g})"
        return f"{self.median:,.4g}{span} {self.unit}"


class PageBench(NamedTuple):
    """The figures by name."""

    figures: dict[str, Figure]

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        return {
            **{name: figure._asdict() for name, figure in self.figures.items()},
            **machine.machine(),
            "versions": machine.versions(),
        }

    def text(self) -> str:
        """The figures as text."""
        width = max(map(len, self.figures))
        return "\n".join(f"{name:<{width}}  {each.text()}" for name, each in self.figures.items())


def measure(options: PageOptions) -> PageBench:
    """Measures all of it, one after the other."""
    figures: dict[str, Figure] = {}
    figures |= processor_times(options.moves)
    with browsing() as browser:
        for command in ("play", "watch"):
            figures |= _from_the_command(browser, command, options.repeats)
        figures |= _moves(browser, options.moves)
        if options.pyodide is not None:
            figures |= _exported(browser, options)
    return PageBench(figures)


@contextmanager
def browsing() -> Iterator[Any]:
    """A headless Chromium."""
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        raise UserError("needs playwright: `make setup` installs it") from None
    path = next((path for name in _BROWSERS if (path := shutil.which(name))), None)
    if path is None:
        raise UserError(f"needs a browser on PATH: {', '.join(_BROWSERS)}")
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=path, args=arguments)


@contextmanager
def served(*arguments: str) -> Iterator[tuple[str, int]]:
    """`hackmatrix ARGUMENTS`: its address and process id."""
    command = [sys.executable, "-m", "hackmatrix", *arguments, "--port", "0", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[0], process.pid
        process.send_signal(signal.SIGINT)


@contextmanager
def _page(browser: Any, **options: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 860}, **options)
    yield context.new_page()
    context.close()


def _from_the_command(browser: Any, command: str, repeats: int) -> dict[str, Figure]:
    """Seconds from the start of the command, with a browser that runs already."""
    boards, moves, files = [], [], []
    for _ in range(repeats):
        started = time.perf_counter()
        with _page(browser) as page, served(command) as (address, _):
            page.goto(address)
            page.wait_for_function(_READY)
            boards.append(time.perf_counter() - started)
            page.select_option("#speed", "0")
            page.evaluate(_TIMED_KEYS, ["Enter" if command == "watch" else None, 1])
            moves.append(time.perf_counter() - started)
            files = page.evaluate(_FILES)
    who = "the agent's first move" if command == "watch" else "the first move"
    return {
        f"{command}: the board is shown": Figure(boards, "s after the start of the command"),
        f"{command}: {who} is shown": Figure(moves, "s after the start of the command"),
        f"{command}: files": Figure([sum(files) / 1e3], f"kB in {len(files)}, compressed"),
    }


def _moves(browser: Any, count: int) -> dict[str, Figure]:
    """Milliseconds of moves, bytes of their messages, and frames while things move."""
    figures = {}
    with served("watch") as (address, _), _page(browser) as page:
        messages: list[int] = []
        page.on(
            "websocket", lambda it: it.on("framereceived", lambda text: messages.append(len(text)))
        )
        page.goto(address)
        page.wait_for_function(_READY)
        frames = page.evaluate(_FRAMES, 10)
        figures["frames while things move"] = Figure(
            [1000 * len(frames) / sum(frames)], f"a second, the longest of {max(frames):.0f} ms"
        )
        page.select_option("#speed", "0")
        messages.clear()
        figures["a move of the agent"] = _milliseconds(page, "Enter", count)
        figures["its message"] = Figure([n / 1e3 for n in messages], "kB")
    with served("play", "--seed", "7") as (address, _), _page(browser) as page:
        page.goto(address)
        page.wait_for_function(_READY)
        page.select_option("#speed", "0")
        figures["a move by hand"] = _milliseconds(page, None, count)
    return figures


def processor_times(count: int) -> dict[str, Figure]:
    """The server's work, in time of a processor: whatever else the machine does."""
    starts = []
    for command in ("play", "watch"):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with served(command):
            pass
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        starts.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    playing, watching = Session(GameId(7)), Session(GameId(7), cast(resolve(SHIPPED)))
    watching.handle({"do": "hello"})  # loads the agent
    messages = {"a move by hand": (playing, "act"), "a move of the agent": (watching, "agent")}
    return {
        "processor: start of `play`": Figure(starts[:1], "s"),
        "processor: start of `watch`": Figure(starts[1:], "s"),
        **{
            f"processor: {name}": Figure([_handled(*it) for _ in range(count)], "ms in the server")
            for name, it in messages.items()
        },
    }


def _handled(session: Session, do: str) -> float:
    """Milliseconds of processor time for a move and the answer about it."""
    node = session.tree.nodes[session.at]
    if node.over:
        session.handle({"do": "new"})
    action = valid_actions(session.tree.state(session.at))[0]
    started = time.process_time()
    json.dumps(session.handle({"do": do, "action": action}))
    return 1000 * (time.process_time() - started)


def _milliseconds(page: Any, key: str | None, count: int) -> Figure:
    """Of moves, from the key to the picture; those of further games if one ends."""
    times = list[float]()
    while len(times) < count:
        times += [t for t in page.evaluate(_TIMED_KEYS, [key, count - len(times)]) if t is not None]
        if len(times) < count:
            page.click("#next-game")
            page.wait_for_function("() => hackmatrix.game.nodes.length === 1 && !hackmatrix.busy")
    return Figure(times, "ms")


def _exported(browser: Any, options: PageOptions) -> dict[str, Figure]:
    """The exported page, from a web server of this machine, with an empty cache each time."""
    painted, boards, first = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        assert options.pyodide is not None
        size, packed = export(Path(folder) / "site", resolve(SHIPPED), options.pyodide)
        with _web_server(folder) as address:
            for _ in range(options.repeats):
                with _page(browser) as page:
                    started = time.perf_counter()
                    page.goto(f"{address}/site/")
                    page.wait_for_function(_PAINTED)
                    painted.append(time.perf_counter() - started)
                with _page(browser) as page:
                    started = time.perf_counter()
                    page.goto(f"{address}/site/watch.html")
                    page.wait_for_function(_READY)
                    boards.append(time.perf_counter() - started)
                    page.select_option("#speed", "0")
                    page.evaluate(_TIMED_KEYS, ["Enter", 1])
                    first.append(time.perf_counter() - started)
                    moves = _milliseconds(page, "Enter", options.moves)
    return {
        "exported: a board to play on is painted": Figure(painted, "s after it is opened"),
        "exported: the board is shown": Figure(boards, "s after it is opened"),
        "exported: the agent's first move is shown": Figure(first, "s after it is opened"),
        "exported: a move of the agent": moves,
        "exported: files": Figure([size / 1e6], f"MB, {packed / 1e6:.1f} MB compressed"),
    }


@contextmanager
def _web_server(folder: str) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def copyfile(self, *files: Any) -> None:
            with contextlib.suppress(ConnectionError):  # the page was closed
                super().copyfile(*files)

    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "page",
        measure,
        PageOptions,
        argv,
        purpose="Measures the page in a headless Chromium.",
        example="--pyodide node_modules/pyodide\n      the exported page too",
    )


if __name__ == "__main__":
    sys.exit(main())
