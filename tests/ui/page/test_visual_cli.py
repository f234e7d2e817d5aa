"""The page of `--visual-cli` in a browser: a client's steps are seen, a person's moves come out."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import begin, opened, settled

from hackmatrix.game.engine import Game

BINARY = Path(sys.executable).with_name("hackmatrix-game")
KEYS = ("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "s")
Json = dict[str, Any]
WATCH = """() => {
  window.seen = [];
  const see = () => document.body.classList.contains("moving") && seen.push(hackmatrix.game.at);
  new MutationObserver(see).observe(document.body, { attributeFilter: ["class"] });
}"""


class Client:
    """The process, as a client of the original starts it."""

    def __init__(self) -> None:
        command = [str(BINARY), "--visual-cli", "--no-open"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self.address = self.process.stderr.readline().split()[-1]  # type: ignore[union-attr]

    def read(self) -> Json:
        return dict(json.loads(self.process.stdout.readline()))  # type: ignore[union-attr]

    def ask(self, action: str, **fields: Any) -> Json:
        print(json.dumps({"action": action, **fields}), file=self.process.stdin, flush=True)
        return self.read()


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    assert client.process.communicate(timeout=60) == ("", "")
    assert client.process.returncode == 0


@pytest.mark.thorough
def test_steps_of_a_client_are_seen_and_moves_in_the_page_come_out(
    browser: Any, client: Client
) -> None:
    game = Game.new(347)

    def step_of_client() -> Json:
        action = played()
        return dict(client.ask("step", actionIndex=action)["observation"])

    def played() -> int:
        action = next(a for a in game.valid_actions() if a < len(KEYS))
        game.step(action)
        return action

    with opened(browser, client.address) as page:
        # Nothing has begun: an empty board, on which a move is refused and nothing is written.
        page.keyboard.press("ArrowUp")
        page.wait_for_selector("#problem:not([hidden])")
        assert "no game yet" in page.inner_text("#problem")
        page.evaluate(WATCH)
        client.ask("reset", seed=347)
        page.wait_for_function("() => hackmatrix.game.id === '347'")
        for step in range(1, 4):
            told = step_of_client()
            shown = settled(page, step)
            assert (told["turn"], shown["last"]["by"]) == (step, "client")
            place = shown["seen"]["player"]["row"], shown["seen"]["player"]["col"]
            assert place == (told["playerRow"], told["playerCol"])
        # Each of them was animated, in the page that was opened.
        assert sorted(set(page.evaluate("seen"))) == [1, 2, 3]

        # A person's move is a line of stdout, then the client goes on from there.
        action = played()
        page.keyboard.press(KEYS[action])
        manual = client.read()
        assert manual["manual"] == {"action": "step", "actionIndex": action}
        assert set(manual) == {"manual", "observation", "reward", "done", "info"}
        assert settled(page, 4)["last"]["by"] == "you"
        assert client.ask("getValidActions") == {"validActions": game.valid_actions()}
        assert step_of_client()["turn"] == 5
        settled(page, 5)

        # Who looks back sees the past while the client plays on; there no move can be made.
        page.keyboard.press(",")
        settled(page, 4)
        step_of_client()
        page.click("text=Back to the game")
        settled(page, 6)

        # A game begun in the page is one for both; a page that is opened again shows it.
        begin(page, "11")
        assert client.read()["manual"] == {"action": "reset", "seed": 11}
        assert client.ask("getValidActions") == {"validActions": Game.new(11).valid_actions()}
        page.reload()
        page.wait_for_selector("body[data-ready]")
        assert page.evaluate("[hackmatrix.game.id, hackmatrix.game.at]") == ["11", 0]
        assert page.evaluate("Object.keys(localStorage).filter((k) => k.includes('games'))") == []
        for hidden in ("#my-games", "#daily", "#puzzles", "#welcome"):
            assert not page.is_visible(hidden)
        page.click("#menu")
        for hidden in ("#copy-link", "#save", "#load"):
            assert not page.is_visible(hidden)
