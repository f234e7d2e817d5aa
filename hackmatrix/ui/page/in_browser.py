"""The session of an exported page: what its Web Worker runs, on Pyodide."""

import json
from collections.abc import Callable
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

from hackmatrix.agents.roster.built_in import built_in_agents
from hackmatrix.agents.roster.judge import Judge
from hackmatrix.agents.roster.opinion import Agent
from hackmatrix.agents.roster.plain_mlp import make_policy
from hackmatrix.game.engine.replay import GameId
from hackmatrix.game.rules.chance import EVALUATION_STREAM
from hackmatrix.ui.session.session import Session

# The pages, and the game that each opens: what `hackmatrix watch` opens; to play, an example, which
# is shown while Python loads: then everybody is given another game.
PAGES = {"watch": GameId(EVALUATION_STREAM), "play": GameId(7)}
_REMEMBERED = 256  # positions of which the agent and the judge ask the same network
SETTINGS, WEIGHTS = "agent.json", "agent.bin"  # the agent's files


def begin(page: str) -> Callable[[str], str]:
    """A new session of a page, with the agent's files in the current folder."""
    return open_session(page, json.loads(Path(SETTINGS).read_text()), Path(WEIGHTS).read_bytes())


def open_session(page: str, settings: dict[str, Any], weights: bytes) -> Callable[[str], str]:
    """A function that answers messages in JSON: a new session.

    Args:
        page: one of `PAGES`.
        settings: the agent's `name`, those that `plain_mlp.make_policy` takes if it is an MLP, and
            `odds`, the fit of the judge, if it is the packaged agent.
        weights: of its network, if it has one.
    """

    @cache
    def agent() -> Agent:
        policy = make_policy(settings, weights)
        asked = lru_cache(_REMEMBERED)(lambda record: policy(record, ()))
        return Agent(settings["name"], lambda record, _: asked(record))

    agents, name = built_in_agents(), settings["name"]
    if "layout" in settings:
        agents[name] = agent
    agents = {name: agents.pop(name), **agents}

    def judge() -> Judge:
        return Judge(agent(), settings["odds"])

    judged = judge if "odds" in settings else None
    session = Session(PAGES[page], agents, judge=judged, playing=page == "play")
    session.is_given = page == "watch"
    return partial(_answer, session)


def _answer(session: Session, text: str) -> str:
    answer = session.handle(json.loads(text))
    return json.dumps(answer, separators=(",", ":"), allow_nan=False)
