"""Makes the pictures of docs/page.md in a real browser, or that of docs/monitor.md, of some runs.

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
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.game.engine.replay import GameId
from hackmatrix.ui.session.session import Session

DOCS = Path(__file__).parents[1] / "docs"
GAME = DOCS / "won.json"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SIZE = {"width": 1440, "height": 900}
SMALL = {"width": 1024, "height": 600}
PHONE = {"width": 390, "height": 844}


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


def walk(seed: int) -> dict[str, Any]:
    """A game in which the player walks to the exit until it dies."""
    walker = Session(GameId(seed), cast(resolve("exit")))
    walker.handle({"do": "agent", "steps": 100})
    replay: dict[str, Any] = walker.handle({"do": "save"})["replay"]
    return replay


def at_step(opened: Any, step: int) -> None:
    """Shows a step of the line."""
    opened.locator("#scrub").fill(str(step))
    opened.locator("#scrub").blur()
    opened.wait_for_function(
        f"() => hackmatrix.game.nodes[hackmatrix.game.at].step === {step} && !hackmatrix.busy"
    )


def monitor(browser: Any, runs: list[str], out: Path) -> None:
    """The picture of docs/monitor.md."""
    with page(browser, ["monitor", *runs, "--page"], viewport=SIZE) as opened:
        opened.click("#settings summary")
        plot = opened.locator(".card canvas").first
        plot.hover()
        opened.wait_for_function("() => monitor.view.cursor !== null")
        opened.wait_for_timeout(500)  # plots that came into sight are drawn
        opened.screenshot(path=out / "monitor.png")
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
        with page(browser, ["play", "--seed", "7"], viewport=SIZE) as opened:
            replay = json.loads(GAME.read_text())
            replay["actions"] = replay["actions"][:240]
            begun = {"name": "game.json", "mimeType": "application/json"}
            opened.locator("#file").set_input_files(
                [{**begun, "buffer": json.dumps(replay).encode()}]
            )
            opened.wait_for_function("() => hackmatrix.game.nodes.length === 241")
            cell = opened.evaluate(
                "hackmatrix.position.seen.player.row * 6 + hackmatrix.position.seen.player.col"
            )
            opened.locator(f"#grid button[data-cell='{cell}']").hover()
            opened.screenshot(path=out / "page-play.png")
        with page(browser, ["play", "--seed", "3"], viewport=SIZE) as opened:
            opened.locator("#file").set_input_files(
                [{**begun, "buffer": json.dumps(walk(3)).encode()}]
            )
            opened.click("#analyse")
            opened.wait_for_selector("#report:visible")
            opened.wait_for_selector("#report-progress", state="hidden")
            opened.locator("#worst-moves button").first.click()
            opened.wait_for_selector("#picture .own", state="attached")
            opened.screenshot(path=out / "page-review.png")
        with page(browser, ["play"], viewport=SMALL, color_scheme="light") as opened:
            opened.click("#learn")
            opened.wait_for_selector("#goal.task")
            opened.click("#task-next")
            opened.wait_for_function("() => hackmatrix.position.task.number === 1")
            opened.screenshot(path=out / "page-tutorial.png", animations="disabled")
        with page(browser, ["watch", str(GAME)], viewport=SIZE) as opened:
            at_step(opened, 200)
            opened.keyboard.press("2")
            opened.wait_for_selector("#tree:visible")
            opened.keyboard.press("End")
            opened.wait_for_selector("#ending:visible")
            at_step(opened, 200)
            opened.screenshot(path=out / "page-watch.png")
        touch = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
        with page(browser, ["play", "--seed", "7"], **touch) as opened:
            opened.screenshot(path=out / "page-phone.png")
        browser.close()
    print(f"page-play, page-watch, page-review, page-tutorial and page-phone .png are in {out}")


if __name__ == "__main__":
    main()
