"""The views of the page that `hackmatrix play` serves, each by a function that shows it."""

import json
from collections.abc import Callable
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from browser import fresh, press, settled

from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.game.engine.replay import GameId
from hackmatrix.ui.session.session import Session

DESKTOP: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}}
SMALL: dict[str, Any] = {"viewport": {"width": 1024, "height": 600}}
TOUCH: dict[str, Any] = {"has_touch": True, "is_mobile": True}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, **TOUCH}

# axe leaves out this rule of WCAG 2.2; and what it does not object to need not be told.
_TARGETS = {"rules": {"target-size": {"enabled": True}}, "resultTypes": ["violations"]}

# Whatever can be tapped and is smaller than 44 pixels either way, on the page or in an open dialog.
TOO_SMALL = """
() => [...document.querySelectorAll("button, a, summary, select, label:has(input), input")]
  .filter((each) => each.checkVisibility())
  .filter((each) => each.matches("label") || !each.closest("label:has(input)"))
  .map((each) => [each.getBoundingClientRect(), each.outerHTML.slice(0, 90)])
  .filter(([box]) => box.width < 44 || box.height < 44)
  .map(([box, text]) => `${box.width.toFixed(1)} x ${box.height.toFixed(1)}: ${text}`)
"""

# Texts that overlap, of those on one layer: what is placed over others is a layer of its own.
# The numbers at the board's edge are of the board, and meet what is around it.
OVERLAPS = """
() => {
  const whole = document.querySelector("dialog[open]") ?? document.body, things = [];
  const isOver = (each) =>
    ["absolute", "fixed", "sticky"].includes(getComputedStyle(each).position);
  const layerOf = (each) => each && !isOver(each) ? layerOf(each.parentElement) : each;
  const add = (words, box, element, kind) => {
    const frame = element.closest("#said, aside, #beside, #sheet-body, dialog");
    const cut = frame?.getBoundingClientRect() ?? { top: -Infinity, bottom: Infinity };
    const top = Math.max(box.top, cut.top), bottom = Math.min(box.bottom, cut.bottom);
    const { left, right } = box;
    if (bottom - top > 2 && right - left > 2)
      things.push({ words, element, kind, layer: layerOf(element), top, bottom, left, right });
  };
  const walker = document.createTreeWalker(whole, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { currentNode: node } = walker, element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility() || element.closest("select, svg")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) add(node.data.trim(), box, element, "text");
  }
  const board = document.getElementById("board");
  for (const edge of document.querySelectorAll("#picture .edges path"))
    if (whole === document.body) add("a number", edge.getBoundingClientRect(), board, "edge");
  for (const button of document.querySelectorAll("#transport button"))
    if (whole === document.body) add("a button", button.getBoundingClientRect(), button, "button");
  const found = [], around = [undefined, "board", "table"];
  for (const [i, one] of things.entries()) for (const other of things.slice(i + 1)) {
    const kinds = [one.kind, other.kind];
    const isNear = kinds.includes("edge")
      && [one, other].every(({ layer }) => around.includes(layer?.id));
    const isFree = kinds.includes("button") && !kinds.includes("edge");
    if (one.layer !== other.layer && !isNear || one.element === other.element || isFree) continue;
    const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
    const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
    if (across > 1 && down > 3) found.push(`${one.words} / ${other.words}`);
  }
  return found;
}
"""


def _lost() -> tuple[dict[str, Any], int]:
    """A game in which the player walked to the exit until it died, as a file; its steps."""
    walker = Session(GameId(3), cast(resolve("exit")))
    walker.handle({"do": "agent", "steps": 100})
    replay = json.dumps(walker.handle({"do": "save"})["replay"]).encode()
    file = {"name": "game.json", "mimeType": "application/json", "buffer": replay}
    return file, len(walker.tree.line(walker.at))


def game_begins(page: Any) -> None:
    """The first position of a game."""


def game_ended(page: Any) -> None:
    """The card at the end of a game that is lost."""
    file, steps = _lost()
    page.locator("#file").set_input_files([file])
    settled(page, steps)
    page.wait_for_selector("#ending:visible")


def looking_back(page: Any) -> None:
    """An earlier position of a game with a variation."""
    game_ended(page)
    page.keyboard.press("Home")
    settled(page, 0)
    entries = page.evaluate("hackmatrix.position.actions")
    played = page.evaluate("hackmatrix.game.nodes[1].action")
    other = next(i for i in range(4) if "why" not in entries[i] and i != played)
    page.keyboard.press(("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight")[other])
    settled(page, 1)
    page.keyboard.press(",")
    page.wait_for_selector("#past:visible")
    page.wait_for_selector("#tree:visible")


def reviewed(page: Any) -> None:
    """The review of a game, at its worst move."""
    game_ended(page)
    page.click("#analyse")
    page.wait_for_selector("#report-progress[hidden]", state="attached")
    page.wait_for_selector("#worst-moves button", state="attached")
    page.locator("#worst-moves button").first.click()
    page.wait_for_selector("#picture .own", state="attached")


def puzzle(page: Any) -> None:
    """A puzzle."""
    page.click("#puzzles")
    page.wait_for_function("() => hackmatrix.position.task?.kind === 'puzzle' && !hackmatrix.busy")


def room(page: Any) -> None:
    """A room of the tutorial."""
    press(page, "#show-rules")
    page.click("#tutorial")
    page.wait_for_selector("#goal.task")


def my_games(page: Any) -> None:
    """The games of this browser."""
    page.click("#my-games")
    page.wait_for_selector("#games[open]")


def rules(page: Any) -> None:
    """The rules."""
    press(page, "#show-rules")
    page.wait_for_selector("#rules[open]")


def keys(page: Any) -> None:
    """The keys."""
    press(page, "#show-keys")
    page.wait_for_selector("#keys[open]")


def helped(page: Any) -> None:
    """The agent half transparent in the same game, the coach's light after a move, and a hint."""
    page.check("#ghost")
    page.check("#coach")
    entries = settled(page)["actions"]
    move = next(i for i in range(4) if "why" not in entries[i])
    page.keyboard.press(("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight")[move])
    page.wait_for_function("() => document.getElementById('light').className")
    page.click("#hint")
    page.wait_for_selector("#picture .figure", state="attached")


def settings(page: Any) -> None:
    """The switches, and all programs."""
    page.locator("#rest summary").click()
    page.locator("#wasd").scroll_into_view_if_needed()


def menu(page: Any) -> None:
    """The menu."""
    page.click("#menu")


def violations(page: Any) -> list[str]:
    """What axe finds, each with the first thing it finds it at."""
    found = Axe().run(page, options=_TARGETS).response["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found]


VIEWS: dict[str, Callable[[Any], None]] = {
    view.__name__: view
    for view in (
        game_begins,
        game_ended,
        looking_back,
        reviewed,
        puzzle,
        room,
        my_games,
        rules,
        keys,
        helped,
        settings,
        menu,
    )
}


def at_first(page: Any) -> Any:
    """The page as it is opened: nothing over it, the switches as at first, and a new game."""
    for box in ("#ghost", "#coach", "#places"):
        page.evaluate("(id) => document.querySelector(`${id}:checked`)?.click()", box)
    page.evaluate("() => { document.getElementById('rest').open = false; }")
    page.keyboard.press("Escape")
    if page.is_visible("#retry"):
        page.evaluate("() => document.getElementById('retry').click()")
    fresh(page, "7")
    page.wait_for_function("() => !document.body.classList.contains('watching')")
    page.evaluate("() => scrollTo(0, 0)")
    return page
