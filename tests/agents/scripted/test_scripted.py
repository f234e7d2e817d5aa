"""The scripted player: it sees what a player sees, plays by the rules, and plays well."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import Data, legal_states

from hackmatrix.agents.scripted.scripted import best_action, choose
from hackmatrix.game.engine.actions import valid_actions
from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.game import Game
from hackmatrix.game.engine.observation import observe
from hackmatrix.game.engine.state import Ending, State
from hackmatrix.game.foresight.visible_state import VisibleState
from hackmatrix.game.rules.actions import FIRST_PROGRAM, SIPHON
from hackmatrix.game.rules.board import CELLS, Content
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.programs import PROGRAMS


def played(stream: int, games: int, longest: int = 120) -> Iterator[State]:
    """Positions of games; the player owns and affords every program, so that all are seen."""
    rng = random.Random(stream)
    for episode in range(games):
        game = Game.new(stream, episode)
        game.state.owned = list(range(len(PROGRAMS)))
        for _ in range(longest):
            if game.state.over:
                break
            game.state.player.hp = 3
            game.state.player.credits = game.state.player.energy = 20
            yield game.state
            game.step(rng.choice(game.valid_actions()))


def hide_differently(state: State, rng: random.Random) -> None:
    """Changes what the player can't see: dice, question blocks, types to come, cryptogs."""
    state.dice = Dice(rng.randrange(1 << 32), rng.randrange(1 << 32), state.dice.clock)
    for cell in state.cells:
        if cell.content == Content.QUESTION and not cell.siphoned:
            cell.holds_data = not cell.holds_data
            cell.points, cell.program = rng.randrange(1, 10), rng.randrange(len(PROGRAMS))
            cell.spawn = rng.randrange(1, 10)
    if not state.show:
        for transmission in state.transmissions:
            transmission.type = rng.choice(list(EnemyType))
    for enemy in state.enemies:
        if not state.sees(enemy) and len(state.enemies_on(enemy.cell)) == 1:
            taken = state.blocks() | state.occupied()
            free = [c for c in range(CELLS) if c not in taken and not state.in_line(c)]
            enemy.cell = rng.choice([enemy.cell, *free])
            enemy.hp, enemy.stunned = rng.choice([1, 2]), rng.random() < 0.5


@pytest.mark.slow
def test_what_is_hidden_changes_no_choice() -> None:
    rng = random.Random(1)
    changed = 0
    for state in played(11, games=12, longest=50):
        record, action = observe(state), best_action(VisibleState.of_state(state))
        before = Game(state).to_dict()
        hide_differently(state, rng)
        changed += Game(state).to_dict() | {"stream": 0} != before | {"stream": 0}
        assert observe(state) == record
        assert best_action(VisibleState.of_state(state)) == action
        assert choose(record) == action
    assert changed > 100


@settings(max_examples=25)
@given(legal_states(), st.sets(st.integers(0, FIRST_PROGRAM + len(PROGRAMS) - 1), max_size=6))
def test_choices_are_valid_and_not_what_is_forbidden(data: Data, forbidden: set[int]) -> None:
    state = Game.from_dict(data).state
    valid = valid_actions(state)
    assume(min(valid, default=SIPHON + 1) <= SIPHON)
    assert best_action(VisibleState.of_state(state)) in valid
    action = best_action(VisibleState.of_state(state), forbidden=forbidden)
    assert action in valid
    assert action not in forbidden or not {*valid} & {*range(SIPHON + 1)} - forbidden


def stages(stream: int, episode: int) -> int:
    game = Game.new(stream, episode)
    while not game.state.over:
        game.step(best_action(VisibleState.of_state(game.state)))
    return game.state.stage - 1 + (game.state.over == Ending.WON)


@pytest.mark.thorough
def test_it_plays_far_better_than_walking_to_the_exit() -> None:
    assert sum(stages(14, episode) for episode in range(2)) >= 2 * 3  # walking: 1.9


@pytest.mark.slow
def test_it_wins_every_other_game() -> None:
    cleared = [stages(15, episode) for episode in range(100)]
    assert sum(number == 8 for number in cleared) >= 50
    assert sum(cleared) >= 580
