"""Imagined games look as the true ones do, and hold nothing that the player does not know."""

import copy
import random
from dataclasses import fields
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lockstep_starts import new, quiet, rich
from look_alikes import other_secrets

from hackmatrix.environments.hackmatrix.imagination import UndoMemory
from hackmatrix.game import native
from hackmatrix.game.engine.game import Game
from hackmatrix.game.engine.observation import observe
from hackmatrix.game.engine.state import Enemy, State
from hackmatrix.game.foresight.jax_imagination import imagine
from hackmatrix.game.jaxgame import undo
from hackmatrix.game.jaxgame.conversion import state_to_engine
from hackmatrix.game.rules.actions import FIRST_PROGRAM, NUM_ACTIONS, SIPHON
from hackmatrix.game.rules.board import Content
from hackmatrix.game.rules.enemies import MAX_HP, EnemyType
from hackmatrix.game.rules.observation import BYTE
from hackmatrix.game.rules.programs import MAX_SAVED_STATES, PROGRAMS, ProgramId

if not native.available:
    pytest.skip("there is no native engine", allow_module_level=True)
from hackmatrix.game.native import xla

GAMES = 64
UNDO = FIRST_PROGRAM + ProgramId.UNDO


class Known(NamedTuple):
    """All that a search is given of some games."""

    records: jax.Array
    memory: UndoMemory
    masks: np.ndarray


def _arguments(known: Known, word: int) -> tuple[jax.Array, ...]:
    number = jnp.arange(GAMES, dtype=jnp.uint32)
    return known.records, *known.memory, jnp.full(GAMES, word, jnp.uint32), number


@jax.jit
def _imagined(*seen: jax.Array) -> Any:
    """The games that the native engine imagines, which compiles in no time."""
    return xla.state_of(xla.imagine(*seen))


def _known(states: list[State]) -> Known:
    masks = np.zeros((len(states), NUM_ACTIONS), bool)
    for mask, state in zip(masks, states, strict=True):
        mask[Game(state).valid_actions()] = True
    records = [np.frombuffer(observe(state), np.uint8) for state in states]
    memories = [UndoMemory.of(state) for state in states]
    memory = jax.tree.map(lambda *parts: jnp.concatenate(parts), *memories)
    return Known(jnp.asarray(np.array(records)), memory, masks)


def _games(known: Known, word: int) -> list[State]:
    states = jax.device_get(_imagined(*_arguments(known, word)))
    return [
        state_to_engine(jax.tree.map(lambda x, game=game: x[game], states)) for game in range(GAMES)
    ]


def _playable(rng: random.Random, number: int) -> State:
    """A state as games have them: one enemy to a cell, programs once, few enemies.

    In every fourth some turns have been played, so that there are positions to go back to.
    """
    state = (new, quiet, rich, rich)[number % 4](rng)
    first = {enemy.cell: enemy for enemy in reversed(state.enemies)}.values()
    state.enemies = list({enemy.last: enemy for enemy in first}.values())[:8]
    for enemy in state.enemies:
        if not state.sees(enemy) and state.cells[enemy.cell].is_block:
            enemy.type = EnemyType.GLITCH
    for transmission in state.transmissions:
        transmission.turns = min(transmission.turns, 4)
    del state.transmissions[8:]
    if number % 4 == 1:
        _play_some_turns(state, rng)
    return state


def _play_some_turns(state: State, rng: random.Random) -> None:
    game, stage = Game(state), state.stage
    for _ in range(rng.randint(1, 6)):
        steps = [action for action in game.valid_actions() if action < SIPHON]
        tried = copy.deepcopy(game)
        if steps and not tried.step(rng.choice(steps)).done and tried.state.stage == stage:
            for field in fields(state):
                setattr(state, field.name, getattr(tried.state, field.name))


@pytest.fixture(scope="module")
def states() -> list[State]:
    rng = random.Random(5)
    return [_playable(rng, number) for number in range(GAMES)]


def test_they_look_the_same(states: list[State]) -> None:
    known = _known(states)
    for made, record in zip(_games(known, 0), np.asarray(known.records), strict=True):
        assert observe(made) == record.tobytes()


@pytest.mark.thorough
def test_both_engines_imagine_the_same_games(states: list[State]) -> None:
    known, in_jax = _known(states), jax.jit(imagine)
    for word in (0, 12345):
        ours, theirs = (of(*_arguments(known, word)) for of in (in_jax, _imagined))
        of_both = zip(*map(jax.tree.leaves, map(undo.without_rows, (ours, theirs))), strict=True)
        for our, their in of_both:
            np.testing.assert_array_equal(our, their)
        is_saved = np.arange(MAX_SAVED_STATES) >= MAX_SAVED_STATES - known.memory.saved[:, None]
        np.testing.assert_array_equal(ours.saved.rows[is_saved], theirs.saved.rows[is_saved])
        assert is_saved.sum() > 40


def test_undo_goes_back_to_what_the_player_remembers(states: list[State]) -> None:
    known, undone = _known(states), 0
    remembered = np.array(known.memory.records[:, -1])
    remembered[:, BYTE["saved"]] -= 1
    for made, expected in zip(_games(known, 3), remembered, strict=True):
        game = Game(made)
        if UNDO in game.valid_actions():
            game.step(UNDO)
            assert game.observation() == expected.tobytes()
            undone += 1
    assert undone > 8


def _changed(state: State, rng: random.Random) -> State:
    """The state with everything hidden changed under the player's eyes."""
    other = other_secrets(state, rng)
    for position in (other, *other.saved):
        for enemy in position.enemies:
            if not position.sees(enemy):
                enemy.hp = rng.randint(1, MAX_HP[enemy.type])
                enemy.stunned, enemy.from_siphon = rng.random() < 0.5, rng.random() < 0.5
    return other


def test_hidden_facts_and_dice_change_no_bit_of_them(states: list[State]) -> None:
    """All that a search is given is what is seen now and was seen before, and the mask."""
    rng = random.Random(7)
    changed = [_changed(state, rng) for state in states]
    assert all(before != after for before, after in zip(states, changed, strict=True))
    saved = [
        (a, b)
        for state, now in zip(states, changed, strict=True)
        for a, b in zip(state.saved, now.saved, strict=True)
    ]
    assert sum(before != after for before, after in saved) > 20
    before, after = _known(states), _known(changed)
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
    known = _known([state] * GAMES)
    return state, [made for word in range(8) for made in _games(known, word)]


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


def test_cryptogs_are_on_their_way_out_of_sight(guesses: tuple[State, list[State]]) -> None:
    _, games = guesses
    for game in games:
        (enemy,) = game.enemies
        assert (enemy.type, enemy.hp, enemy.last) == (EnemyType.CRYPTOG, 2, 35)
        assert not enemy.stunned
    # Down before left (section 5); a step further it would be in the player's row.
    assert {game.enemies[0].cell for game in games} == {35, 29, 23}


def test_the_types_of_transmissions_are_guessed_unless_shown(states: list[State]) -> None:
    made = _games(_known(states), 1)
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
    made = _games(_known(states), 1)
    assert len({(game.dice.stream, game.dice.episode) for game in made}) == GAMES
    assert all(game.dice.clock == 0 for game in made)
