"""Makes the pictures of docs/page.md in a real browser, or that of docs/monitor.md, of some runs.

With those of docs/page.md comes `preview.png`, which messengers show beside links to an export.
It needs Chromium, and the packages of the group `dev`.
"""

import argparse
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.game.engine.replay import GameId
from hackmatrix.ui.session.session import Session

DOCS = Path(__file__).parents[1] / "docs"
EXPORTED = DOCS.parent / "hackmatrix" / "ui" / "page" / "exported"
GAME = DOCS / "won.json"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LAPTOP = {"viewport": {"width": 1440, "height": 900}}
SCREENS = (
    LAPTOP,
    {"viewport": {"width": 1024, "height": 600}, "color_scheme": "light"},
    {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
)
PREVIEW = {"viewport": {"width": 1200, "height": 630}}
COLOURS = 64  # of a picture: enough for flat areas, and small


@contextmanager
def page(browser: Any, arguments: list[str], **options: Any) -> Iterator[Any]:
    """The page that a command serves."""
    command = [sys.executable, "-m", "hackmatrix", *arguments, "--port", "0", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            context = browser.new_context(**{"color_scheme": "dark", **options})
            opened = context.new_page()
            opened.goto(server.stdout.readline().split()[0])
            opened.wait_for_selector("body[data-ready]")
            yield opened
            context.close()
        finally:
            server.send_signal(signal.SIGINT)


def walk(seed: int) -> list[int]:
    """The actions of a game in which the player walks to the exit until it dies."""
    walker = Session(GameId(seed), cast(resolve("exit")))
    walker.handle({"do": "agent", "steps": 100})
    return list(walker.tree.line(walker.at))


def at_step(opened: Any, step: int) -> None:
    """Shows a step of the line."""
    opened.locator("#scrub").fill(str(step))
    opened.locator("#scrub").blur()
    opened.wait_for_function(
        f"() => hackmatrix.game.nodes[hackmatrix.game.at].step === {step} && !hackmatrix.busy"
    )


def open_game(opened: Any, seed: str, actions: list[int]) -> None:
    """Opens a game that was played by hand, at its last position."""
    nodes = [[number, action, "you"] for number, action in enumerate(actions)]
    content = json.dumps({"seed": seed, "nodes": nodes, "at": len(nodes)}).encode()
    file = {"name": "game.json", "mimeType": "application/json", "buffer": content}
    opened.locator("#file").set_input_files([file])
    opened.wait_for_function(
        f"() => hackmatrix.game.nodes.length === {len(actions) + 1} && !hackmatrix.busy"
    )


def picture(opened: Any, path: Path) -> None:
    """Saves what is shown, in few colours."""
    shown = Image.open(BytesIO(opened.screenshot(animations="disabled"))).convert("RGB")
    method, dither = Image.Quantize.MAXCOVERAGE, Image.Dither.NONE
    few = shown.quantize(COLOURS, method=method, kmeans=2, dither=dither)  # rare hues stay, too
    few.save(path, optimize=True)


def views(opened: Any) -> Iterator[str]:
    """Goes through the page of `hackmatrix play`; the names of what is shown."""
    opened.click("#learn")
    opened.wait_for_selector("#goal.task")
    opened.click("#task-next")
    opened.wait_for_function("() => hackmatrix.position.task.number === 1 && !hackmatrix.busy")
    yield "tutorial"
    opened.evaluate("document.getElementById('puzzles').click()")
    opened.wait_for_function(
        "() => hackmatrix.position.task?.kind === 'puzzle' && !hackmatrix.busy"
    )
    yield "puzzle"
    won = json.loads(GAME.read_text())
    open_game(opened, won["seed"], won["actions"][:240])
    player = opened.evaluate("hackmatrix.position.seen.player")
    cell = opened.locator(f"#grid button[data-cell='{player['row'] * 6 + player['col']}']")
    cell.hover()
    yield "play"
    open_game(opened, "3", walk(3))
    opened.wait_for_selector("#ending:visible")
    yield "end"
    opened.click("#analyse")
    opened.wait_for_selector("#accuracy:text('accuracy')", state="attached")
    first = opened.locator("#worst-moves button").first
    first.evaluate("button => button.click()")
    opened.wait_for_selector("#picture .own", state="attached")
    yield "review"


def monitor(browser: Any, runs: list[str], out: Path) -> None:
    """The picture of docs/monitor.md."""
    with page(browser, ["monitor", *runs, "--page"], **LAPTOP) as opened:
        opened.click("#settings summary")
        opened.locator(".card .u-over").first.hover()
        opened.wait_for_function("() => monitor.view.cursor !== null")
        opened.wait_for_timeout(500)  # plots that came into sight are drawn
        picture(opened, out / "monitor.png")
    print(f"monitor.png is in {out}")


def main() -> None:
    """Takes the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DOCS, help="folder of the pictures")
    parser.add_argument("--runs", nargs="+", help="folders of runs, for the picture of the monitor")
    options = parser.parse_args()
    out = options.out
    chromium = next(filter(None, map(shutil.which, BROWSERS)), None)
    if chromium is None:
        parser.error(f"needs a browser on PATH: {', '.join(BROWSERS)}")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        if options.runs:
            monitor(browser, options.runs, out)
            return
        for screen in SCREENS:
            with page(browser, ["play", "--seed", "7"], **screen) as opened:
                for name in views(opened):
                    picture(opened, out / f"page-{name}-{screen['viewport']['width']}.png")
        with page(browser, ["watch", str(GAME)], **LAPTOP) as opened:
            at_step(opened, 200)
            opened.keyboard.press("2")
            opened.wait_for_selector("#tree:visible")
            opened.keyboard.press("End")
            opened.wait_for_selector("#ending:visible")
            at_step(opened, 200)
            picture(opened, out / "page-watch.png")
        with page(browser, ["play", "--seed", "7"], **PREVIEW) as opened:
            won = json.loads(GAME.read_text())
            open_game(opened, won["seed"], won["actions"][:240])
            picture(opened, (EXPORTED if out == DOCS else out) / "preview.png")
        browser.close()
    print(f"page-watch.png, and page-*.png for three screens are in {out}")


if __name__ == "__main__":
    main()
