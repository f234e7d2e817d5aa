"""A page in a real, headless browser, served by the command itself."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

NO_BROWSER = "needs chromium on PATH"
# The shell has no windows, and takes half the processor time of a whole Chromium.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


def find_browser() -> str:
    """The path of a Chromium; without one the tests are skipped, except where CI has put one."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        assert not os.environ.get("HACKMATRIX_CI"), "CI installs chromium"
        pytest.skip(NO_BROWSER)
    return found


@contextmanager
def served(*arguments: str, port: int = 0) -> Iterator[str]:
    """`hackmatrix ARGUMENTS` at a port, by default at any; gives its address."""
    command = [sys.executable, "-m", "hackmatrix", *arguments, "--port", str(port), "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[0]
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait(60) in (0, 130)


_AS_USUAL = {"viewport": {"width": 1280, "height": 860}, "color_scheme": "dark"}


@contextmanager
def opened(
    browser: Any, address: str, *, prepare: Callable[[Any], None] | None = None, **options: Any
) -> Iterator[Any]:
    """A page that is ready; at its end it must have asked no other host and said no error.

    `prepare` is called with the page before it loads.
    """
    context = browser.new_context(**_AS_USUAL | options)
    page = context.new_page()
    if prepare is not None:
        prepare(page)
    problems: list[str] = []
    page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    own = urlsplit(address).netloc

    def asked(request: Any) -> None:
        if urlsplit(request.url).netloc not in ("", own):
            problems.append(request.url)

    page.on("request", asked)
    page.set_default_timeout(240_000)  # others may take the processor
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    yield page
    context.close()
    assert problems == []


def settled(page: Any, step: int | None = None, seconds: float = 60) -> dict[str, Any]:
    """The position that the page shows once it has answered and nothing moves."""
    position: dict[str, Any] = page.evaluate(_SETTLED, [step, seconds])
    return position


_SETTLED = """
async ([step, seconds]) => {
  const end = performance.now() + 1000 * seconds;
  const isThere = () => step === null || hackmatrix.game.nodes[hackmatrix.game.at]?.step === step;
  while (hackmatrix.busy || !isThere()) {
    if (performance.now() > end) throw new Error(`step ${step} is not there`);
    await new Promise((resolve) => setTimeout(resolve, 4));
  }
  return hackmatrix.position;
}"""


def fresh(page: Any, seed: str) -> Any:
    """The page with its switches as they are at first, nothing moving, and a new game."""
    page.keyboard.press("Escape")
    page.mouse.move(0, 0)
    page.evaluate(_SWITCHES)
    settled(page)
    before = page.evaluate_handle("hackmatrix.position")
    begin(page, seed)
    page.wait_for_function("(before) => hackmatrix.position !== before", arg=before)
    settled(page, 0)
    return page


def press(page: Any, target: str) -> None:
    """Clicks or taps a thing, that of the menu too."""
    if not page.is_visible(target):
        page.click("#menu")
    page.click(target)


def begin(page: Any, seed: str) -> None:
    """Asks for the game of a seed."""
    press(page, "#seed")
    page.fill("#seed", seed)
    page.click("text=Start")


_SWITCHES = """
() => {
  const off = { guess: false, wasd: false, hidden: false, developer: false };
  const first = { threat: true, chances: true, ...off };
  for (const [id, isOn] of Object.entries(first)) {
    const box = document.getElementById(id);
    if (box.checked !== isOn) box.click();
  }
  for (const [id, value] of [["speed", "0"], ["pace", "4"]]) {
    const list = document.getElementById(id);
    list.value = value;
    list.dispatchEvent(new Event("change"));
  }
}"""


def covered(page: Any) -> int:
    """How many marks of the agent lie on what stands in the cells beside the player."""
    return int(page.evaluate(_COVERED))


_COVERED = """() => {
  const box = (element) => element.getBoundingClientRect();
  const { row, col } = hackmatrix.position.seen.player;
  const near = [[1, 0], [-1, 0], [0, 1], [0, -1]].map(([r, c]) => (row + r) * 6 + col + c);
  const cells = [...document.querySelectorAll("#grid button")]
    .filter((button) => near.includes(Number(button.dataset.cell))).map(box);
  const inner = (cell) => { // where its piece or its content stands
    const margin = cell.width * 0.2;
    return [cell.x + margin, cell.y + margin, cell.right - margin, cell.bottom - margin];
  };
  const marks = [...document.querySelectorAll("#picture .chances > *, #picture .moves > *")];
  return marks.map(box).flatMap((mark) => cells.map(inner).filter(([left, top, right, bottom]) =>
    mark.left < right && mark.right > left && mark.top < bottom && mark.bottom > top)).length;
}"""
