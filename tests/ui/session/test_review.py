"""What moves cost, futures and games played on: judged from what the player sees alone."""

import random
from dataclasses import replace
from typing import Any

import pytest
from look_alikes import beside_a_hidden_cryptog, other_secrets, rich_game

from hackmatrix.agents.roster.judge import judge
from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.opinion import Agent
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.game.engine.actions import valid_actions
from hackmatrix.game.engine.game import Game, step
from hackmatrix.game.engine.replay import GameId, Replay
from hackmatrix.game.engine.state import State
from hackmatrix.game.engine.undo import copy_state
from hackmatrix.game.rules.actions import FIRST_PROGRAM
from hackmatrix.game.rules.programs import ProgramId
from hackmatrix.ui.session.review import future, odds_at, play_out, review_move
from hackmatrix.ui.session.session import Session


def playing(**options: Any) -> Session:
    return Session(GameId(3), cast(resolve("shipped")), judge=judge, playing=True, **options)


@pytest.fixture(scope="module")
def lost() -> Session:
    """A session of playing in which the player walked to the exit until it died."""
    walker = Session(GameId(3), cast(resolve("exit")))
    walker.handle({"do": "agent", "steps": 100})
    actions = walker.tree.line(walker.at)
    assert walker.tree.state(walker.at).over == "died"
    session = playing()
    session.handle({"do": "load", "replay": Replay(GameId(3), actions).as_json()})
    return session


def test_who_plays_sees_no_opinion_until_an_agent_has_the_controls() -> None:
    session = playing()
    hello = session.handle({"do": "hello"})
    assert hello["about"]["playing"]
    assert hello["about"]["reviews"]
    assert hello["controls"] is None
    assert "agent" not in hello
    assert hello["odds"] == []
    there = session.handle({"do": "control", "agent": "shipped"})
    assert there["controls"] == "shipped"
    assert sum(there["agent"]["probabilities"]) == pytest.approx(1, abs=1e-4)
    assert len(there["odds"]) == 1
    session.handle({"do": "hidden", "show": True})
    gone = session.handle({"do": "control", "agent": None})
    assert gone["controls"] is None
    assert "agent" not in gone
    assert not session.reveal
    session.handle({"do": "control", "agent": "shipped"})
    assert session.handle({"do": "new", "seed": "4"})["controls"] is None


def test_a_watcher_can_not_take_the_controls_from_all() -> None:
    session = Session(GameId(3), cast(resolve("shipped")), judge=judge)
    assert "no agent None" in session.handle({"do": "control", "agent": None})["error"]


def test_a_move_of_the_agent_costs_nothing_and_a_blunder_does(lost: Session) -> None:
    end = lost.tree.end(0)
    moves = lost.handle({"do": "review", "nodes": [*range(end - 5, end + 1)]})["moves"]
    assert [number for number, _, _ in moves] == [*range(end - 5, end + 1)]
    for number, best, cost in moves:
        assert 0 <= cost <= 1
        if lost.tree.nodes[number].action == best:
            assert cost == 0
    assert moves[-1][2] > 0.1  # the step into the last hit
    assert moves == lost.handle({"do": "review", "nodes": [*range(end - 5, end + 1)]})["moves"]


def test_futures_begin_with_the_action_and_the_player_where_it_is(lost: Session) -> None:
    lost.handle({"do": "go", "node": lost.tree.end(0) - 1})
    state = lost.tree.state(lost.at)
    action = lost.tree.nodes[lost.tree.end(0)].action
    futures = lost.handle({"do": "futures", "action": action})["futures"]
    assert len(futures) == 16
    for trail, end in futures:
        assert trail[0] == state.player.cell
        assert end in ("won", "died", "stage", None)
        assert 1 <= len(trail) <= 13
    assert any(end == "died" for _, end in futures)  # one hit is enough here
    blocked = next(a for a in range(28) if a not in lost.tree.valid_actions(lost.at))
    assert "error" in lost.handle({"do": "futures", "action": blocked})


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4))
def test_nothing_hidden_goes_into_a_cost_a_future_or_a_game_from_here(seed: int) -> None:
    rng = random.Random(seed)
    state = rich_game(rng)
    other = other_secrets(state, rng)
    if valid_actions(state) != valid_actions(other):
        pytest.skip("CRASH tells of a hidden cryptog beside the player")
    for action in rng.sample(valid_actions(state), 2):
        assert review_move(judge(), state, action, "a") == review_move(judge(), other, action, "a")
        assert future(judge(), state, action, "a") == future(judge(), other, action, "a")
    assert play_out(judge(), state, ["a"]) == play_out(judge(), other, ["a"])


def onto_a_block() -> State:
    """DEBUG is valid, as PULL has put the cryptog onto a block."""
    return Game.from_text("""
        .. .. .. .. Dc X.
        .. .. .. .. .. ..
        .. .. .. .. .. ..
        .. .. .@ .. .. ..
        .. .. .. .. .. ..
        .. .. .. .. .. ..
        stage 3
        player hp 3 credits 9 energy 9 siphons 1
        owned DEBUG
        cell 5,4 points 3 spawn 3
        enemy cryptog 5,4 last 5,4
    """).state


@pytest.mark.parametrize(
    ("state", "program"),
    [(beside_a_hidden_cryptog().state, ProgramId.CRASH), (onto_a_block(), ProgramId.DEBUG)],
)
def test_an_action_that_a_made_up_game_does_not_allow_loses_none(
    state: State, program: ProgramId
) -> None:
    action = FIRST_PROGRAM + program
    after = copy_state(state)
    step(after, action)
    true_loss = odds_at(judge(), state).win - odds_at(judge(), after).win
    assert review_move(judge(), state, action, "a").cost < max(true_loss, 0) + 0.1
    assert future(judge(), state, action, "a").end != "invalid_action"


@pytest.mark.thorough
def test_games_from_here_are_counted_on_and_tell_how_they_ended() -> None:
    session = playing()
    two = session.handle({"do": "finish", "games": 2})["finished"]
    third = session.handle({"do": "finish", "games": 1, "first": 1})["finished"]
    assert third == two[1:]
    for won, stages in two:
        assert stages == 8 if won else 0 <= stages < 8


@pytest.mark.thorough
def test_games_from_here_go_together_and_end_as_each_alone(lost: Session) -> None:
    """Speed by counting: the network is asked once for all games that go on, not once for each."""
    lost.handle({"do": "go", "node": lost.tree.end(0) - 6})
    state, seeds = lost.tree.state(lost.at), [str(i) for i in range(3)]
    alone = replace(judge(), play_together=None)
    assert play_out(judge(), state, seeds) == play_out(alone, state, seeds)

    def forbidden(*position: object) -> Any:
        raise AssertionError(f"{position} was asked of alone")

    together = replace(judge(), agent=Agent("shipped", forbidden))
    session = Session(GameId(3), cast(resolve("shipped")), judge=lambda: together, playing=True)
    assert len(session.handle({"do": "finish", "games": 3})["finished"]) == 3


def test_scripted_is_watched_beside_shipped() -> None:
    session = Session(GameId(3), cast(resolve("scripted")))
    names = [name for name, *_ in session.handle({"do": "others"})["others"]]
    assert names[:2] == ["scripted", "shipped"]


@pytest.mark.parametrize(
    "message",
    [
        {"do": "review"},
        {"do": "review", "nodes": "1"},
        {"do": "review", "nodes": [0]},
        {"do": "review", "nodes": [999]},
        {"do": "review", "nodes": [1] * 21},
        {"do": "futures", "action": 99},
        {"do": "finish", "games": 26},
        {"do": "finish", "games": 1, "first": -1},
    ],
)
def test_what_can_not_be_asked_is_an_error(message: dict[str, Any]) -> None:
    assert "error" in playing().handle(message)


def test_without_a_judge_nothing_is_reviewed() -> None:
    session = Session(GameId(3))
    session.handle({"do": "act", "action": session.tree.valid_actions(0)[0]})
    assert "judge" in session.handle({"do": "review", "nodes": [1]})["error"]
    assert not session.handle({"do": "hello"})["about"]["reviews"]
