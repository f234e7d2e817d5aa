"""The odds of the packaged agent: what it is worth to be in a position, for everybody to read."""

import numpy as np
import pytest
from paths import ROOT

from hackmatrix.agents.roster.judge import Odds, judge, odds_of, read_fit
from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.game.engine.replay import GameId, load_replay
from hackmatrix.game.rules.stages import LAST_STAGE
from hackmatrix.ui.session.navigation import line, surprises
from hackmatrix.ui.session.session import Session

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def won() -> Session:
    """A watcher's session of a game that the packaged agent won."""
    replay = load_replay(ROOT / "docs/won.json")
    session = Session(replay.game, cast(resolve("shipped")), start=replay, judge=judge)
    session.handle({"do": "hello"})
    return session


def test_a_higher_value_never_means_worse_odds() -> None:
    for stage in range(1, LAST_STAGE + 1):
        odds = [odds_of(value, stage, read_fit()) for value in np.linspace(-2, 12, 200)]
        assert [each.win for each in odds] == sorted(each.win for each in odds)
        assert [each.stages for each in odds] == sorted(each.stages for each in odds)
        assert all(0 <= each.win <= 1 and stage - 1 <= each.stages <= LAST_STAGE for each in odds)


def test_an_end_is_certain() -> None:
    assert Odds.of_end(8, won=True) == (1, 8)
    assert Odds.of_end(3, won=False) == (0, 2)


def test_a_victory_is_no_surprise(won: Session) -> None:
    moments = line(won)
    odds = [won.odds[n].win for n in moments]
    assert odds[-1] == 1
    assert odds[-1] > odds[0]
    ranked = surprises(won)
    falls = [odds[n] - odds[n + 1] for n in ranked]  # a game without variations: node n is step n
    assert falls == sorted(falls, reverse=True)
    assert all(fall >= 0.05 for fall in falls)
    assert moments[-2] not in ranked


def test_odds_of_a_position_depend_on_what_is_seen_alone_and_reach_the_watcher(
    won: Session,
) -> None:
    answer = won.handle({"do": "go", "node": 3})
    assert answer["odds"] == [[3, round(won.odds[3].win, 4), round(won.odds[3].stages, 2)]]
    assert [each[0] for each in won.handle({"do": "hello"})["odds"]] == [
        *range(len(won.tree.nodes))
    ]


def test_who_plays_is_told_no_odds() -> None:
    assert Session(GameId(7), judge=judge).handle({"do": "hello"})["odds"] == []


def test_another_agent_at_the_controls_does_not_change_them(won: Session) -> None:
    before = dict(won.odds)
    won.handle({"do": "control", "agent": "scripted"})
    won.handle({"do": "go", "node": 1})
    assert won.odds == before
