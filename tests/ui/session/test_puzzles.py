"""Puzzles: the packaged ones are what they say, and a session opens and judges them."""

import random
from pathlib import Path

import pytest
from suites import first_quickly

from hackmatrix.agents.roster.judge import judge
from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.cli.main import main
from hackmatrix.core.errors import UserError
from hackmatrix.game.engine.actions import valid_actions
from hackmatrix.game.engine.replay import GameId, Replay
from hackmatrix.game.engine.state import State
from hackmatrix.game.foresight.imagination import imagine
from hackmatrix.game.rules.actions import ACTION_NAMES
from hackmatrix.ui.session.puzzles import Puzzle, load
from hackmatrix.ui.session.review import worth
from hackmatrix.ui.session.session import Session

PUZZLES = load()


def position(puzzle: Puzzle) -> State:
    *_, state = Replay(puzzle.game, puzzle.actions).states()
    return state


def test_a_hundred_come_with_the_package_the_easiest_first() -> None:
    assert len(PUZZLES) == 100
    assert len({(puzzle.game, puzzle.actions) for puzzle in PUZZLES}) == 100
    ratings = [puzzle.rating for puzzle in PUZZLES]
    assert ratings == sorted(ratings)


def is_puzzle(puzzle: Puzzle) -> bool:
    best, second = sorted(puzzle.worth.values(), reverse=True)[:2]
    says_all = [*puzzle.worth] == valid_actions(position(puzzle))
    return says_all and best >= 0.4 and best - second >= 0.149  # as written, in three digits


@pytest.mark.parametrize("first", first_quickly([0, 10]))
def test_one_action_alone_keeps_the_chance_of_winning(first: int) -> None:
    puzzles = PUZZLES[:10] if first == 0 else PUZZLES[10:]
    assert [puzzle for puzzle in puzzles if not is_puzzle(puzzle)] == []


@pytest.mark.parametrize("puzzle", first_quickly(random.Random(0).sample(PUZZLES, 4)))
def test_games_that_were_made_up_anew_say_so_too(puzzle: Puzzle) -> None:
    state, rng = position(puzzle), random.Random("anew")
    games = [imagine(state, rng) for _ in range(100)]
    chances = {action: worth(judge(), games, action) for action in puzzle.worth}
    assert max(chances, key=chances.__getitem__) == puzzle.solution


def test_a_session_opens_the_nearest_and_judges_the_first_action() -> None:
    session = Session(GameId(7), cast(resolve("shipped")), judge=judge, playing=True)
    answer = session.handle({"do": "puzzle", "rating": 0, "done": [0]})
    assert answer["task"]["number"] == 1
    assert answer["task"]["outcome"] is None
    puzzle = PUZZLES[1]
    root = answer["at"]
    wrong = min(puzzle.worth, key=puzzle.worth.__getitem__)
    answer = session.handle({"do": "act", "action": wrong})
    assert answer["task"]["outcome"] == "lost"
    session.handle({"do": "go", "node": root})
    answer = session.handle({"do": "act", "action": puzzle.solution})
    assert answer["task"]["outcome"] == "done"
    valid = next(i for i, action in enumerate(answer["actions"]) if "why" not in action)
    answer = session.handle({"do": "act", "action": valid})
    assert answer["task"]["outcome"] == "done"
    everything = [*range(100)]
    assert "task" in session.handle({"do": "puzzle", "rating": 5000, "done": everything})
    assert "task" not in session.handle({"do": "new", "seed": "7"})


@pytest.mark.parametrize("message", [{"number": 100}, {"number": "1"}, {"rating": -1}, {}])
def test_a_puzzle_that_is_not_there_is_an_error(message: dict[str, object]) -> None:
    assert "error" in Session().handle({"do": "puzzle", **message})


@pytest.mark.thorough
def test_the_ghost_plays_as_the_watched_agent_does() -> None:
    session = Session(GameId(7), cast(resolve("shipped")), judge=judge, playing=True)
    ghost = session.handle({"do": "ghost"})
    watched = Session(GameId(7), cast(resolve("shipped")))
    for _ in range(20):
        watched.handle({"do": "agent", "steps": 100})
    states = [watched.tree.state(node.index) for node in watched.tree.nodes]
    assert ghost["places"] == [(state.stage, state.player.cell) for state in states]
    assert ghost["won"] == (states[-1].over == "won")
    assert ghost["score"] == states[-1].player.score


@pytest.mark.slow
def test_the_command_finds_puzzles_and_writes_a_file_that_can_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "puzzles.json"
    assert main(["puzzles", "--games", "1", "--seed", "18", "-o", str(file)]) == 0
    found = load(file)
    assert "2 puzzles of 1 games" in capsys.readouterr().out
    assert all(map(is_puzzle, found))
    assert [(puzzle.game, len(puzzle.actions)) for puzzle in found] == [
        (GameId(18), 155),
        (GameId(18), 194),
    ]
    assert {ACTION_NAMES[puzzle.solution] for puzzle in found} == {"RESET"}


def test_what_is_no_file_of_puzzles_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "puzzles.json"
    for content in ("", "[]", '{"format": "hackmatrix-replay"}'):
        file.write_text(content)
        with pytest.raises(UserError, match="no file of puzzles"):
            load(file)
    assert main(["puzzles"]) == 2
