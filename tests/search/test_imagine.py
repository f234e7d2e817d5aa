"""Imagined games look as the true ones do, and hold nothing that the player does not know."""

import copy
import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lockstep_starts import new, rich

from hackmatrix.engine.game import Game
from hackmatrix.engine.observation import observe
from hackmatrix.engine.state import Enemy, State
from hackmatrix.jaxgame import batch
from hackmatrix.jaxgame.conversion import state_to_engine
from hackmatrix.jaxgame.dice import Dice
from hackmatrix.rules.board import CELLS, Content, col, row
from hackmatrix.rules.enemies import MAX_HP, EnemyType
from hackmatrix.rules.observation import BYTE
from hackmatrix.rules.programs import PROGRAMS
from hackmatrix.search.imagine import imagined

GAMES = 64


@jax.jit
def _imagine(records: jax.Array, word: jax.Array) -> tuple[Any, jax.Array]:
    number = jnp.arange(GAMES, dtype=jnp.uint32)
    states = imagined(records, Dice(jnp.full(GAMES, word), number, jnp.zeros_like(number)))
    return states, batch.observations(states)


def _records(states: list[State]) -> jax.Array:
    return jnp.asarray(np.array([np.frombuffer(observe(state), np.uint8) for state in states]))


def _games(records: jax.Array, word: int) -> list[State]:
    states = jax.device_get(_imagine(records, jnp.uint32(word))[0])
    return [
        state_to_engine(jax.tree.map(lambda x, game=game: x[game], states)) for game in range(GAMES)
    ]


def _in_line(cell: int, state: State) -> bool:
    here = state.player.cell
    return row(cell) == row(here) or col(cell) == col(here)


def _is_hidden(enemy: Enemy, state: State) -> bool:
    hides = enemy.type == EnemyType.CRYPTOG and not state.show
    return hides and not _in_line(enemy.cell, state)


def _playable(rng: random.Random, number: int) -> State:
    """A state as games have them: one enemy to a cell, programs once, few enemies."""
    state = new(rng) if number % 4 == 0 else rich(rng)
    first = {enemy.cell: enemy for enemy in reversed(state.enemies)}.values()
    state.enemies = list({enemy.last: enemy for enemy in first}.values())[:8]
    for enemy in state.enemies:
        if _is_hidden(enemy, state) and state.cells[enemy.cell].is_block:
            enemy.type = EnemyType.GLITCH
    for transmission in state.transmissions:
        transmission.turns = min(transmission.turns, 4)
    del state.transmissions[8:]
    return state


@pytest.fixture(scope="module")
def states() -> list[State]:
    rng = random.Random(5)
    return [_playable(rng, number) for number in range(GAMES)]


@pytest.mark.parametrize("word", [0, 12345])
def test_they_look_the_same(states: list[State], word: int) -> None:
    records = _records(states)
    expected = np.array(records)
    expected[:, BYTE["saved"]] = 0
    np.testing.assert_array_equal(_imagine(records, jnp.uint32(word))[1], expected)


def _changed(state: State, rng: random.Random) -> State:
    """The state with everything hidden changed under the player's eyes."""
    state = copy.deepcopy(state)
    state.dice.stream, state.dice.episode = rng.getrandbits(32), rng.getrandbits(32)
    state.dice.clock += rng.randrange(1000)
    for cell in state.cells:
        if cell.content == Content.QUESTION:
            cell.holds_data = not cell.holds_data
            cell.points = rng.randint(1, 9) if cell.holds_data else 0
            cell.program = 0 if cell.holds_data else rng.randrange(len(PROGRAMS))
            cell.spawn = rng.randint(1, 9)
    for transmission in state.transmissions:
        transmission.from_schedule = not transmission.from_schedule
        transmission.from_siphon = not transmission.from_siphon
        if not state.show:
            transmission.type = rng.choice(list(EnemyType))
    free = [
        cell
        for cell in set(range(CELLS)) - state.occupied()
        if not _in_line(cell, state) and not state.cells[cell].is_block
    ]
    rng.shuffle(free)
    for enemy in state.enemies:
        enemy.from_schedule = not enemy.from_schedule
        if _is_hidden(enemy, state) and free:
            enemy.cell, enemy.hp = free.pop(), rng.randint(1, MAX_HP[enemy.type])
            enemy.stunned, enemy.from_siphon = rng.random() < 0.5, rng.random() < 0.5
    return state


def test_hidden_facts_and_dice_change_no_bit_of_them(states: list[State]) -> None:
    """All that a search is given is the observation and the mask, and they stay as they are."""
    rng = random.Random(7)
    changed = [_changed(state, rng) for state in states]
    assert all(before != after for before, after in zip(states, changed, strict=True))
    for a, b in zip(states, changed, strict=True):
        assert Game(a).valid_actions() == Game(b).valid_actions()
    before, after = (_imagine(_records(games), jnp.uint32(9)) for games in (states, changed))
    for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.fixture(scope="module")
def guesses() -> tuple[State, list[State]]:
    """A state with everything that can be hidden, and many games imagined for it."""
    game = Game.from_text("""
        .. .. .. .. .. X.
        .. .. .. .. ?. ..
        .. .. D. .. .. ..
        .. .@ .. .. .. ..
        .. P. .. .. ?. ..
        s. .. .. .. .. s.
    """)
    state = game.state
    state.dice.stream = 3
    rng = random.Random(2)
    state.enemies = [Enemy(EnemyType.CRYPTOG, 34, hp=1, stunned=True, last=35)]
    state.transmissions = rich(rng).transmissions[:0]
    records = _records([state] * GAMES)
    return state, [made for word in range(8) for made in _games(records, word)]


def test_question_blocks_are_drawn_as_a_stage_draws_them(
    guesses: tuple[State, list[State]],
) -> None:
    state, games = guesses
    asked = [i for i, cell in enumerate(state.cells) if cell.content == Content.QUESTION]
    shown = {c.program for c in state.cells if c.content == Content.PROGRAM}
    blocks = [[game.cells[i] for i in asked] for game in games]
    data = [cell for pair in blocks for cell in pair if cell.holds_data]
    programs = [cell for pair in blocks for cell in pair if not cell.holds_data]
    assert 0.45 < len(data) / (2 * len(games)) < 0.55
    assert {cell.points for cell in data} == set(range(1, 10))
    assert all(cell.spawn == cell.points for cell in data)
    assert {cell.program for cell in programs} == set(range(len(PROGRAMS))) - shown
    assert all(cell.spawn == PROGRAMS[cell.program].spawn for cell in programs)
    both = [pair for pair in blocks if not any(cell.holds_data for cell in pair)]
    assert both
    assert all(a.program != b.program for a, b in both)


def test_cryptogs_hide_near_where_they_were_last_seen(guesses: tuple[State, list[State]]) -> None:
    state, games = guesses
    for game in games:
        (enemy,) = game.enemies
        assert (enemy.type, enemy.hp, enemy.last) == (EnemyType.CRYPTOG, 2, 35)
        assert not enemy.stunned
        assert not _in_line(enemy.cell, state)
        assert not state.cells[enemy.cell].is_block
        assert 10 - row(enemy.cell) - col(enemy.cell) <= 2
    assert len({game.enemies[0].cell for game in games}) > 3


def test_the_types_of_transmissions_are_guessed_unless_shown(states: list[State]) -> None:
    made = _games(_records(states), 1)
    pairs = [
        (state.show, a.type, b.type)
        for state, game in zip(states, made, strict=True)
        for a, b in zip(
            sorted(state.transmissions, key=lambda t: t.cell), game.transmissions, strict=True
        )
    ]
    assert all(true == guess for show, true, guess in pairs if show)
    hidden = [guess for show, _, guess in pairs if not show]
    assert len(hidden) > 50
    for kind in EnemyType:
        assert 0.1 < hidden.count(kind) / len(hidden) < 0.4


def test_two_worlds_have_other_dice(states: list[State]) -> None:
    made = _games(_records(states), 1)
    assert len({(game.dice.stream, game.dice.episode) for game in made}) == GAMES
    assert all(game.dice.clock == 0 for game in made)
