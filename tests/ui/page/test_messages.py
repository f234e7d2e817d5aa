"""`messages.json` has all that the page's JavaScript sends, and reads of answers."""

import json
from pathlib import Path
from typing import Any

import pytest
from browser import begin, fresh, opened, press, settled
from page_messages import is_field, problems_of_answer, problems_of_request

from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.game.engine.replay import GameId, Replay
from hackmatrix.ui.session.session import Session

ARROWS = ("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight")

# Every answer becomes a proxy that writes down what is read of it, as lists of names.
RECORD = """
const parse = JSON.parse;
const paths = new Set();
window.pathsRead = paths;
const quiet = new Set(["then", "toJSON", "constructor"]); // read of any value
const proxies = new WeakMap();
const recorded = (value, path) => {
  if (typeof value !== "object" || value === null) return value;
  if (!proxies.has(value)) proxies.set(value, new Proxy(value, { get(target, name) {
    const inner = Reflect.get(target, name);
    if (typeof name === "symbol" || quiet.has(name)) return inner;
    if (Array.isArray(target) && !/^[0-9]+$/.test(name)) return inner; // its methods
    const here = [...path, Array.isArray(target) ? "[]" : name];
    paths.add(JSON.stringify(here));
    return recorded(inner, here);
  } }));
  return proxies.get(value);
};
JSON.parse = (...content) => {
  const value = parse(...content);
  return Number.isInteger(value?.id) ? recorded(value, []) : value;
};
"""


class Messages:
    """What a page sends, receives and reads."""

    def __init__(self) -> None:
        self.page: Any = None
        self.sockets: list[Any] = []
        self.requests: dict[tuple[int, int], str] = {}
        self.problems: list[str] = []

    def listen(self, page: Any) -> None:
        """Begins, before the page loads."""
        self.page = page
        page.add_init_script(RECORD)
        page.on("websocket", self._listen_to)

    def _listen_to(self, socket: Any) -> None:
        number = len(self.sockets)
        self.sockets.append(socket)

        def send(text: str) -> None:
            message = json.loads(text)
            self.requests[number, message["id"]] = message["do"]
            self.problems += problems_of_request(message)

        def receive(text: str) -> None:
            if message := json.loads(text):
                name = self.requests[number, message["id"]]
                self.problems += problems_of_answer(name, message)

        socket.on("framesent", send)
        socket.on("framereceived", receive)

    def check(self, *names: str) -> None:
        """All was of the schema, and requests of these names were among it."""
        assert self.problems == []
        assert set(names) <= set(self.requests.values())
        paths = [json.loads(path) for path in self.page.evaluate("[...pathsRead]")]
        assert ["seen", "player", "hp"] in paths
        assert [path for path in paths if not is_field(path)] == []


def moved(page: Any, count: int) -> None:
    """After so many moves."""
    for _ in range(count):
        position = settled(page)
        action = next(i for i in range(4) if "why" not in position["actions"][i])
        page.keyboard.press(ARROWS[action])
        settled(page, position["at"] + 1)


@pytest.fixture
def died(tmp_path: Path) -> Path:
    """A saved game in which the player walked to the exit until it died."""
    walker = Session(GameId(3), cast(resolve("exit")))
    walker.handle({"do": "agent", "steps": 100})
    path = tmp_path / "game.json"
    path.write_text(json.dumps(Replay(GameId(3), walker.tree.line(walker.at)).as_json()))
    return path


@pytest.mark.thorough
def test_messages_while_playing_coached_and_analysing(
    browser: Any, address: str, died: Path
) -> None:
    messages = Messages()
    with opened(browser, address, prepare=messages.listen) as page:
        fresh(page, "7")
        for switch in ("coach", "ghost"):
            press(page, f"#{switch}")
        moved(page, 3)
        page.wait_for_selector("#light.good, #light.fair, #light.bad")
        page.keyboard.press("/")
        page.keyboard.press("s")
        page.keyboard.press(",")
        page.set_input_files("#file", died)
        page.wait_for_selector("#ending:visible")
        page.click("#compare")
        page.wait_for_selector("#tree:visible")
        page.keyboard.press("[")  # from the agent's game
        settled(page)
        page.keyboard.press("!")
        page.wait_for_selector("#worst-moves button")
        page.locator("#worst-moves button").first.click()
        page.click(".why >> nth=0")
        page.locator("#said", has_text="16 futures").wait_for()
        page.click("#finish-games")
        page.wait_for_function(
            "() => /games/.test(document.getElementById('finished-words').textContent)"
        )
        press(page, "#puzzles")
        page.wait_for_selector("#goal.task")
        press(page, "#show-rules")
        page.click("#tutorial")
        page.wait_for_function("() => hackmatrix.position.task?.kind === 'room'")
        begin(page, "9")
        page.wait_for_function("() => hackmatrix.game.id === '9'")
        messages.check(
            *("hello", "new", "act", "go", "load", "review", "others", "ghost", "compare"),
            *("control", "futures", "finish", "puzzle", "lesson"),
        )


@pytest.mark.thorough
def test_messages_while_watching(browser: Any, watching: str) -> None:
    messages = Messages()
    with opened(browser, watching, prepare=messages.listen) as page:
        page.check("#developer")
        page.keyboard.press("Home")
        settled(page, 0)
        page.keyboard.press("1")
        settled(page, 1)
        page.keyboard.press("Enter")
        settled(page)
        page.check("#hidden")
        settled(page)
        page.click("#ask-others")
        page.wait_for_function(
            "() => document.getElementById('ask-others').textContent === 'Ask all'"
        )
        page.select_option("#controls", "scripted")
        settled(page)
        page.keyboard.press("Enter")
        settled(page)
        messages.check("hello", "act", "agent", "hidden", "others", "control")
