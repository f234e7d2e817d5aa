"""Built-in players choose as they promise."""

import random
from collections import Counter

import pytest

from hackmatrix.agents.roster.built_in import BUILT_IN, exit_action
from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.opinion import Agent, opinion
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.replay import GameId
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.observation import BYTE, RECORD_SIZE, RESOURCE
from hackmatrix.research.evaluation.plain_games import PlainGame, play_games
from hackmatrix.ui.session.session import Session


def chosen(cell: int, distances: dict[int, int], valid: set[int]) -> int:
    record = bytearray(RECORD_SIZE)
    record[BYTE["cell"]] = cell
    record[RESOURCE : RESOURCE + 36] = [10 << 4 | 7] * 36  # distance 10, some resources
    for near, distance in distances.items():
        record[RESOURCE + near] = distance << 4 | 15
    return exit_action(bytes(record), [action in valid for action in range(NUM_ACTIONS)])


def test_exit_goes_down_the_distances() -> None:
    assert chosen(0, {6: 4}, {0, 3}) == 0  # up of cell 0
    assert chosen(0, {1: 4}, {0, 3}) == 3  # right of it
    assert chosen(14, {8: 2}, {0, 1, 2, 3}) == 1  # down of cell 14
    assert chosen(14, {8: 2}, {0, 2, 3}) == 0  # the first of those that are equally far
    assert chosen(35, {}, {9, 12}) == 9  # walled in


def test_both_faces_of_a_rule_choose_alike() -> None:
    """In games and asked of a position; `random` goes by no rule."""
    rules = {name: each for name, each in BUILT_IN.items() if name != "random"}
    assert sorted(rules) == ["exit", "scripted"]
    rng, asked = random.Random(0), 0
    for seed in range(3):
        game = Game.new(seed)
        for _ in range(40):
            valid = game.valid_actions()
            if not valid:
                break
            mask = [action in valid for action in range(NUM_ACTIONS)]
            for name, rule in rules.items():
                said = opinion(Agent(name, rule.policy), game.observation(), mask)
                assert (said.best, said.probabilities[said.best]) == (
                    rule.choose(game.state, ()),
                    1,
                )
                assert said.value is None
                asked += 1
            game.step(rng.choice(valid))
    assert asked > 60


def test_exit_leaves_what_is_forbidden_where_it_can() -> None:
    state = Game.new(3).state
    rule = BUILT_IN["exit"].choose
    valid = set(Game(state).valid_actions())
    first = rule(state, ())
    assert rule(state, {first}) in valid - {first}
    assert rule(state, valid) == first


def test_random_takes_each_valid_action_as_often_and_none_that_is_forbidden() -> None:
    choose = BUILT_IN["random"].choose
    taken, expected = Counter[int](), Counter[int]()
    for stream in range(1_000):
        state = Game.new(stream).state
        valid = Game(state).valid_actions()
        taken[choose(state, ())] += 1
        for action in valid:
            expected[action] += 1 / len(valid)
    assert taken.keys() == expected.keys()
    assert all(abs(taken[each] - mean) < 4 * mean**0.5 for each, mean in expected.items())
    state = Game.new(3).state
    some, *others = Game(state).valid_actions()
    assert choose(state, others) == some


@pytest.mark.parametrize("name", ["exit", "random"])  # a game of `scripted` takes seconds
def test_watching_is_playing_the_game_of_an_evaluation(name: str) -> None:
    session = Session(GameId.read("e0.3"), cast(resolve(name)))
    while not session.tree.nodes[session.at].over:
        session.handle({"do": "agent", "steps": 100})
    (game,) = play_games([PlainGame(name, 0, 3, 2_000)])
    assert bytes(session.tree.line(session.at)) == game.actions
    assert game.ending is not None
