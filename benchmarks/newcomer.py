"""Somebody who has never seen the game, on the page: the time until stage 1 is cleared.

A script in place of a person. It knows what the page says and nothing else: the sentences of the
tutorial, the goal line, what the cells are called to a screen reader, and what is said of an action
when one points at it. It reads 200 words a minute and thinks for a second before it acts or points;
that is counted, not waited for.
"""

import re
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

from benchmarks.command import run_command
from benchmarks.page import browsing, served
from hackmatrix.core import machine
from hackmatrix.core.options import option
from hackmatrix.research.bench.options import Options

_SECONDS_A_WORD, _THOUGHT = 60 / 200, 1.0
_LIMIT = 300.0  # seconds, in which it should be done
_SIZE = 6
_KEYS = {(1, 0): "ArrowUp", (-1, 0): "ArrowDown", (0, -1): "ArrowLeft", (0, 1): "ArrowRight"}
_BLOCK = re.compile(r"\b(data|program|question)\b")
_PATIENCE = 3  # times that a room is tried
_GOES_ON = "() => !document.getElementById('goal').dataset.outcome"
_SETTLED = "() => document.body.dataset.ready && !hackmatrix.busy"

Place = tuple[int, int]


@dataclass(frozen=True)
class NewcomerOptions(Options):
    """The options of the command."""

    games: int = option(20, "people, each with another first game", at_least=1)


class Trials(NamedTuple):
    """Times of the trials."""

    seconds: list[float | None]  # until stage 1 was cleared; None where it was not in time
    tutorials: list[float]  # until the tutorial was done

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {**self._asdict(), "limit": _LIMIT, **machine.machine()}

    def text(self) -> str:
        """A line."""
        done = sorted(s for s in self.seconds if s is not None)
        times = f"; median {median(done):.0f} s, longest {done[-1]:.0f} s" if done else ""
        return (
            f"{len(done)} of {len(self.seconds)} cleared stage 1 within {_LIMIT:.0f} s of the "
            f"first paint{times}; the tutorial ended after {median(self.tutorials):.0f} s"
        )


class Newcomer:
    """One who has just opened the page."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self._opened = time.perf_counter()
        self._counted = 0.0
        self._read = set[str]()

    @property
    def seconds(self) -> float:
        """Since the first paint, with what it read and thought."""
        return time.perf_counter() - self._opened + self._counted

    def learn(self) -> None:
        """Follows the offer to learn, through all the rooms."""
        self._read_text("#learn")
        self._page.click("#learn")
        self._page.wait_for_selector("#goal.task")
        lost = dict[str, int]()
        while self._sees("#goal.task") and self.seconds < _LIMIT:
            self._settle()
            room, outcome = self._read_text("#goal-title"), self._outcome()
            if outcome:
                lost[room] = lost.get(room, 0) + (outcome == "lost")
                self._press("Enter")  # the button that is in colour: next room, again, play
                self._page.wait_for_function(_GOES_ON)
            elif lost.get(room, 0) >= _PATIENCE:
                self._counted += _THOUGHT
                self._page.click("#task-next")  # which says: skip
                lost[room] = 0
            else:
                self._press(self._key(self._read_text("#goal-text")))

    def play(self) -> bool:
        """Plays until stage 1 is cleared; whether it was in time."""
        while self.seconds < _LIMIT:
            self._settle()
            if self._sees("#ending"):
                self._press("r")
            elif not self._read_text("#goal-title").startswith("Stage 1 "):
                return True
            else:
                self._press(self._key("Reach the exit"))
        return False

    def _key(self, wanted: str) -> str:
        """What to press, after a sentence that says what is wanted."""
        board = Board(self._page.locator("#grid button").evaluate_all(_LABELS))
        if "runs it" in wanted:
            return str(self._page.inner_text("#owned kbd")).lower()
        if "press S" in wanted:
            word = "siphon" if "Walk onto the data siphon" in wanted else "program ROW"
            there = board.find(word)
            goals = [] if there is None else [there] if word == "siphon" else board.beside(there)
            return "s" if not goals or board.player in goals else board.towards(goals)
        ways = board.ways(board.find("exit"))
        return next((key for key in ways if self._is_safe(board, key)), ways[0])

    def _is_safe(self, board: "Board", key: str) -> bool:
        """Whether no hit may follow an action, as the page says of a cell that is pointed at."""
        row, col = board.beyond(key)
        self._counted += _THOUGHT
        self._page.hover(f"#grid [data-cell='{row * _SIZE + col}']")
        return "next turn" not in self._read_text("#info-text")

    def _outcome(self) -> str:
        return str(self._page.get_attribute("#goal", "data-outcome"))

    def _press(self, key: str) -> None:
        self._counted += _THOUGHT
        self._page.keyboard.press(key)

    def _read_text(self, selector: str) -> str:
        text = str(self._page.inner_text(selector))
        if text not in self._read:
            self._counted += _SECONDS_A_WORD * len(text.split())
            self._read.add(text)
        return text

    def _sees(self, selector: str) -> bool:
        return bool(self._page.is_visible(selector))

    def _settle(self) -> None:
        self._page.wait_for_function(_SETTLED)


_LABELS = "(buttons) => buttons.map((button) => button.ariaLabel)"


class Board:
    """The cells by their labels."""

    def __init__(self, labels: Sequence[str]) -> None:
        self._cells: dict[Place, str] = {}
        for label in labels:
            place, words = label.split(": ", 1)
            row, col = map(int, re.findall(r"\d", place))
            self._cells[row, col] = words
        self.player = self.find("player") or (0, 0)

    def find(self, word: str) -> Place | None:
        """The cell whose label has a word."""
        return next((at for at, words in self._cells.items() if word in words), None)

    def beside(self, place: Place) -> list[Place]:
        """The free cells beside one."""
        return [there for there in _around(place) if self._is_free(there)]

    def ways(self, goal: Place | None) -> list[str]:
        """Keys that may be pressed, the most promising first: shots, then steps to a place."""
        aims = {key: self._aims(direction) for direction, key in _KEYS.items()}
        best = {} if goal is None else {self._step({goal}): 1}
        valid = [key for key in aims if aims[key] or self._is_free(self.beyond(key))]
        return sorted(valid, key=lambda key: (not aims[key], key not in best))

    def beyond(self, key: str) -> Place:
        """The cell beside the player in the direction of a key."""
        return next(_moved(self.player, way) for way, name in _KEYS.items() if name == key)

    def towards(self, goals: Sequence[Place]) -> str:
        """The key of the first step to the nearest of some places."""
        return self._step(set(goals)) or self.ways(None)[0]

    def _aims(self, direction: Place) -> bool:
        """Whether an enemy is in line."""
        there = self.player
        while (there := _moved(there, direction)) in self._cells:
            if re.search(r"enemy|transmission", self._cells[there]):
                return True
            if _BLOCK.search(self._cells[there]):
                break
        return False

    def _step(self, ends: set[Place]) -> str | None:
        first: dict[Place, str] = {self.player: ""}
        ways = deque([self.player])
        while ways:
            here = ways.popleft()
            if here in ends:
                return first[here]
            for direction, key in _KEYS.items():
                there = _moved(here, direction)
                if self._is_free(there) and there not in first:
                    first[there] = first[here] or key
                    ways.append(there)
        return None

    def _is_free(self, place: Place) -> bool:
        return place in self._cells and not _BLOCK.search(self._cells[place])


def _moved(place: Place, direction: Place) -> Place:
    return place[0] + direction[0], place[1] + direction[1]


def _around(place: Place) -> list[Place]:
    return [_moved(place, direction) for direction in _KEYS]


def measure(options: NewcomerOptions) -> Trials:
    """Lets each of them come to the page."""
    found, tutorials = list[float | None](), list[float]()
    with browsing() as browser:
        for game in range(options.games):
            with served("play", "--seed", str(game)) as (address, _):
                context = browser.new_context(viewport={"width": 1280, "height": 860})
                page = context.new_page()
                page.goto(address)
                page.wait_for_selector("#picture .piece")
                newcomer = Newcomer(page)
                newcomer.learn()
                tutorials.append(newcomer.seconds)
                found.append(newcomer.seconds if newcomer.play() else None)
                context.close()
    return Trials(found, tutorials)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "newcomer",
        measure,
        NewcomerOptions,
        argv,
        purpose="Measures how soon somebody new to the game clears stage 1, by a script.",
        example="--games 100\n      a hundred of them",
    )


if __name__ == "__main__":
    sys.exit(main())
