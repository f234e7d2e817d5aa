"""The window of the process: pages on which its game is seen and played while a client plays it.

There is one game and one lock. Requests of the client and of persons are answered one after the
other, and a line is written before the next request is looked at.
"""

import json
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from hackmatrix.core.errors import UserError
from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.replay import GameId
from hackmatrix.game.engine.state import State
from hackmatrix.game.engine.undo import copy_state
from hackmatrix.integrations.process.answers import to_json
from hackmatrix.integrations.process.session import ProcessSession
from hackmatrix.integrations.process.set_state import read_state
from hackmatrix.ui.session import session as page
from hackmatrix.ui.session.variations import MOST_NODES, GameNode, Tree

CLIENT = "client"
_FAR = 20  # steps that a page shows one by one when it is behind


class Window:
    """The game of a process, for its client and for tabs of the page."""

    def __init__(self, session: ProcessSession, write: Callable[[str], None]) -> None:
        """Shows an empty board until a game begins.

        Args:
            session: the client's, without a game.
            write: writes a line of the process's output.
        """
        self.lock = threading.RLock()
        self.tabs = weakref.WeakSet[Tab]()
        # What was played of the game, a tree without branches: its last node is the present.
        self.tree = _from(read_state({"player": {"row": 0, "col": 0}}, Dice(0, 0)))
        self._write, self._session = write, session
        session.on_change = self._on_change
        self._acting: Tab | None = None

    def serve(self, requests: Iterable[bytes]) -> None:
        """Answers each line of the client with a line."""
        for line in requests:
            with self.lock:
                self._write(self._session.answer(line))

    def play(self, tab: "Tab", **request: Any) -> None:
        """Carries out a person's request; it and its answer are written as one line.

        Raises:
            UserError: the request was refused; nothing is written.
        """
        self._acting = tab
        try:
            answer = self._session.answer(to_json(request).encode())
        finally:
            self._acting = None
        if answer.startswith('{"error"'):
            raise UserError(json.loads(answer)["error"])
        self._write(f'{{"manual":{to_json(request)},{answer[1:]}')

    def _on_change(self, state: State, action: int | None) -> None:
        present = len(self.tree.nodes) - 1
        if action is None or len(self.tree.nodes) >= MOST_NODES:
            self.tree = _from(state)
        else:
            self.tree.play(present, action, page.YOU if self._acting else CLIENT)
        for tab in list(self.tabs):
            if tab is not self._acting:
                tab.notify()


class Tab(page.Session):
    """What one tab shows of a window: the present, or a step back; it follows when told to."""

    does = ("hello", "new", "act", "go", "follow")

    def __init__(self, window: Window) -> None:
        self.window = window
        self.nodes_shown = 1  # nodes that the page knows
        super().__init__()
        self._join()
        window.tabs.add(self)

    def handle(self, message: Any) -> page.Message:
        """Answers a message, see `page.Session`, while nobody else changes the game."""
        with self.window.lock:
            try:
                return super().handle(message)
            except BrokenPipeError:
                return {"error": "the client of this game has gone"}

    def hello(self, message: page.Message) -> page.Message:
        """The present position, and what the page needs to know once."""
        self._join()
        answer = super().hello(message)
        answer["about"] |= {"agents": [CLIENT], "shared": True}
        return answer

    def new(self, message: page.Message) -> page.Message:
        """Begins a game for all, of `seed` or a random one."""
        seed = message.get("seed", "")
        if not isinstance(seed, str):
            raise UserError("seed: expected text")
        game = GameId.read(seed) if seed else None
        if game is not None and game.episode:
            raise UserError("seed: the process has no episodes but the first, write it as 7")
        self.window.play(self, action="reset", **({} if game is None else {"seed": game.stream}))
        self._join()
        return self._position(fresh=True)

    def act(self, message: page.Message) -> page.Message:
        """Takes an action in the present position, if that is the one shown."""
        if self._behind():
            raise UserError("the game has gone on: this is not its last position")
        return super().act(message)

    def go(self, message: page.Message) -> page.Message:
        """Shows the position at `node`; from the last one that is known here the tab follows."""
        answer = super().go(message)
        if self._follows() and self._behind():
            self.notify()
        return answer

    def follow(self, _: page.Message) -> page.Message:
        """The next position, unless the tab looks back, and how many steps it is `behind` then."""
        if not self._follows() or not self._behind():
            return {"behind": 0}
        last = len(self.tree.nodes) - 1
        if self.at == last:
            self._join(from_start=len(self.window.tree.nodes) <= _FAR)
            answer = self._position(fresh=True)
            return answer | {"nodes": answer["nodes"][: self.nodes_shown], "behind": self._behind()}
        self.at = self.at + 1 if last - self.at <= _FAR else last
        added = self.tree.nodes[self.nodes_shown : self.at + 1]
        self.nodes_shown = self.at + 1
        return self._answer_play(added) | {"behind": self._behind()}

    def _join(self, *, from_start: bool = False) -> None:
        """Shows the game that is played now, at its present or from its start."""
        self._open(self.window.tree.game)
        self.tree = self.window.tree
        self.nodes_shown = 1 if from_start else len(self.tree.nodes)
        self.at = self.nodes_shown - 1

    def _follows(self) -> bool:
        return self.at == self.nodes_shown - 1

    def _behind(self) -> int:
        """Steps to the present; the change to another game counts as one."""
        return len(self.tree.nodes) - 1 - self.at + (self.tree is not self.window.tree)

    def _play(self, action: int, by: str) -> GameNode:
        self.window.play(self, action="step", actionIndex=action)
        self.at, self.nodes_shown = len(self.tree.nodes) - 1, len(self.tree.nodes)
        return self._node()


def _from(state: State) -> Tree:
    return Tree(GameId(state.dice.stream, state.dice.episode), copy_state(state))
