"""A session's messages are those of `messages.json`, whether it plays, watches or analyses."""

import json
import runpy
from typing import Any

import pytest
from page_messages import EXCHANGES, MESSAGES, problems_of_answer, problems_of_request
from paths import ROOT

from hackmatrix.agents.roster.judge import judge
from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.game.engine.replay import GameId, Replay
from hackmatrix.integrations.process.session import ProcessSession
from hackmatrix.integrations.process.window import Tab, Window
from hackmatrix.ui.session.session import Session

WON = json.loads((ROOT / "docs" / "won.json").read_text())
BEGUN = WON | {"actions": WON["actions"][:50]}


class Checked:
    """A session whose messages are compared with the schema, both ways."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.names: set[str] = set()
        self.answers: list[dict[str, Any]] = []

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        message = {"do": do, **fields}
        assert problems_of_request(message) == []
        answer: dict[str, Any] = json.loads(json.dumps(self.session.handle(message)))
        assert "error" not in answer, answer
        assert problems_of_answer(do, answer) == []
        self.names.add(do)
        self.answers.append(answer)
        return answer


def valid(position: dict[str, Any]) -> int:
    return next(i for i, action in enumerate(position["actions"]) if "why" not in action)


def played_and_analysed() -> Checked:
    page = Checked(Session(GameId(3), cast(resolve("shipped")), judge=judge, playing=True))
    position = page.ask("hello")
    while not position["seen"]["over"]:
        position = page.ask("act", action=valid(position))
        if position["at"] < 4:  # as the coach does
            page.ask("review", nodes=[position["at"]])
            page.ask("others", agent="shipped")
    page.ask("go", node=1)
    page.ask("control", agent="shipped")
    page.ask("futures", action=valid(page.ask("go", node=0)))
    page.ask("finish", games=1)
    page.ask("control", agent=None)
    page.ask("ghost")
    page.ask("compare")
    return page


def kept_and_opened() -> Checked:
    page = Checked(Session(GameId(7), cast(resolve("shipped")), judge=judge, playing=True))
    page.ask("resume", seed="7", nodes=[[0, 1, "you"], [0, 2, "you"]], at=1)
    replay = page.ask("save")["replay"]
    page.ask("load", replay=replay, step=0)
    page.ask("new", seed=WON["seed"])
    page.ask("load", replay=BEGUN)
    page.ask("lesson", number=0)
    page.ask("puzzle", rating=1000, done=[3])
    page.ask("act", action=valid(page.ask("puzzle", number=2)))
    page.ask("new")
    return page


def watched() -> Checked:
    agents = cast(resolve("shipped"))
    page = Checked(Session(None, agents, judge=judge, start=Replay.of_json(BEGUN)))
    page.ask("hello")
    page.ask("new", seed="5")
    page.ask("hidden", show=True)
    page.ask("agent", steps=60)
    page.ask("others")
    page.ask("control", agent="scripted")
    page.ask("agent")
    return page


def shared() -> Checked:
    window = Window(ProcessSession(), lambda _: None)
    page, other = Checked(Tab(window)), Tab(window)
    page.ask("new", seed="7")
    other.handle({"do": "hello"})
    page.ask("follow")
    other.handle({"do": "act", "action": valid(page.ask("hello"))})
    assert page.ask("follow")["added"]
    return page


SESSIONS = (played_and_analysed, kept_and_opened, watched, shared)


@pytest.fixture(scope="module")
def sessions() -> list[Checked]:
    return [session() for session in SESSIONS]


@pytest.mark.thorough
def test_messages_are_those_of_the_schema(sessions: list[Checked]) -> None:
    """And all of them: what no session says is no part of it, nor a field of a position."""
    assert set().union(*(page.names for page in sessions)) == set(EXCHANGES)
    assert set(EXCHANGES) == {*Session.does, *Tab.does}
    assert problems_of_answer("go", Session(GameId(7)).handle({"do": "go", "node": 9})) == []
    positions = [answer for page in sessions for answer in page.answers if "board" in answer]
    fields = {name for answer in positions for name in answer}
    assert fields == set(MESSAGES["$defs"]["Position"]["properties"])


def test_types_of_javascript_are_made_from_the_schema() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "message_types.py"))
    types = ROOT / "hackmatrix" / "ui" / "session" / "messages.d.ts"
    assert types.read_text() == script["declare"](MESSAGES), "run scripts/message_types.py"
