"""Games that are made up: they look as the given one does, and nothing hidden goes into them."""

import random
from collections import Counter

import pytest
from lockstep_starts import rich
from look_alikes import beside_a_hidden_cryptog, other_secrets, rich_game

from hackmatrix.game.engine.actions import valid_actions
from hackmatrix.game.engine.game import step
from hackmatrix.game.engine.observation import observe, observe_saved
from hackmatrix.game.engine.state import Enemy, State, Transmission
from hackmatrix.game.engine.undo import copy_state
from hackmatrix.game.foresight.imagination import imagine
from hackmatrix.game.rules.board import Content
from hackmatrix.game.rules.enemies import EnemyType


def game_with_secrets() -> State:
    """The player in a corner, a question block, a transmission, a cryptog out of sight."""
    state = rich(random.Random(3))
    state.player.cell, state.show, state.step, state.saved = 0, False, False, []
    for cell in state.cells:
        cell.content, cell.siphoned, cell.holds_data = Content.EMPTY, False, False
        cell.credits = cell.energy = cell.points = cell.program = cell.spawn = 0
    block = state.cells[9]
    block.content, block.holds_data, block.points, block.spawn = Content.QUESTION, True, 4, 4
    state.enemies = [Enemy(EnemyType.CRYPTOG, 15, 2, last=14)]
    state.transmissions = [Transmission(20, 2, EnemyType.DAEMON)]
    return state


@pytest.mark.parametrize("seed", range(12))
def test_a_made_up_game_looks_as_the_given_one(seed: int) -> None:
    state = rich(random.Random(seed))
    state.enemies = [e for e in state.enemies if state.sees(e)]  # a hidden one may find no room
    made = imagine(state, random.Random(seed))
    assert observe(made) == observe(state)
    assert valid_actions(made) == valid_actions(state)
    assert len(observe_saved(made)) == len(observe_saved(state))


@pytest.mark.parametrize("seed", range(12))
def test_what_is_hidden_does_not_matter(seed: int) -> None:
    rng = random.Random(seed)
    state = rich_game(rng) if seed else game_with_secrets()
    other = other_secrets(state, rng)
    if valid_actions(state) != valid_actions(other):
        pytest.skip("CRASH tells of a hidden cryptog beside the player")
    assert observe(state) == observe(other)
    assert observe_saved(state) == observe_saved(other)
    for number in range(5):
        assert imagine(state, random.Random(number)) == imagine(other, random.Random(number))


def test_what_is_hidden_is_drawn_by_the_rules() -> None:
    state, rng = game_with_secrets(), random.Random(0)
    made = [imagine(state, rng) for _ in range(800)]
    data = sum(game.cells[9].holds_data for game in made)
    assert 330 < data < 470
    assert {game.cells[9].points for game in made if game.cells[9].holds_data} == {*range(1, 10)}
    programs = {game.cells[9].program for game in made if not game.cells[9].holds_data}
    assert len(programs) == 23
    types = Counter(game.transmissions[0].type for game in made)
    assert len(types) == 4
    assert min(types.values()) > 150
    places = {enemy.cell for game in made for enemy in game.enemies}
    assert places == {14, 8}  # last seen on 14, it goes down; a step further it would be in sight
    assert len({game.dice.stream for game in made}) > 700


def test_the_given_game_stays_as_it_is_and_the_made_up_one_goes_on() -> None:
    state = game_with_secrets()
    before = copy_state(state)
    made, rng = imagine(state, random.Random(1)), random.Random(2)
    for _ in range(30):
        if made.over:
            break
        step(made, rng.choice(valid_actions(made)))
    assert state == before


def test_crash_tells_that_a_hidden_cryptog_stands_beside_the_player() -> None:
    state, rng = beside_a_hidden_cryptog().state, random.Random(0)
    made = [imagine(state, rng) for _ in range(200)]
    for game in made:
        assert valid_actions(game) == valid_actions(state)
        assert observe(game) == observe(state)
    cells = Counter(game.enemies[0].cell for game in made)
    assert cells.keys() == {7, 9, 19, 21}  # the corners of the 8 cells around the player
