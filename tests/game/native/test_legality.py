"""States, saved positions and records from outside: legal ones play, others are refused."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.game.engine.game import Game
from hackmatrix.game.native import _native, batch, xla
from hackmatrix.game.native.conversion import games_from_engine
from hackmatrix.game.native.layout import empty_step
from hackmatrix.game.rules.observation import BYTE, CELL, ENEMY, RECORD_SIZE, VALUE

imagine: Any = jax.jit(xla.imagine)
tactical_numbers: Any = jax.jit(xla.tactical_numbers)
GAMES = 3
STREAMS, EPISODES = np.arange(GAMES, dtype=np.uint32), np.zeros(GAMES, np.uint32)

# Of programs that are compiled together with others, or alone.
REFUSED = (jax.errors.JaxRuntimeError, ValueError)
WILD_WORDS = [
    ("player.cell", 36),
    ("player.cell", 256),
    ("player.attack", 0),
    ("player.credits", 2**31),
    ("cells.blocks.low", 1 << 18),
    ("enemies.count", 33),
    ("enemies.count", 250),
    ("enemies.count", 256),
    ("transmissions.count", 37),
    ("transmissions.count", 250),
    ("transmissions_at.low", 2**18 - 1),
    ("owned", 1 << 23),
    ("owned", 2**32 - 1),
    ("acquired.4.word", 2**32 - 1),
    ("exit", 36),
    ("stage", 0),
    ("stage", 9),
    ("enemies_at.low", 1),
    ("saved.count", 5),
    ("saved.newest", 4),
    ("over", 4),
]


def played(turns: int) -> Any:
    """Games after some turns, as the JAX engine has them, and their observations."""
    games = jax.jit(xla.reset)(STREAMS, EPISODES)
    nothing = np.zeros(GAMES, np.int32)
    for _ in range(turns):
        walk = np.asarray(games.mask) & -np.asarray(games.mask).astype(np.int32)
        actions = np.log2(walk).astype(np.int32)
        games = jax.jit(xla.step)(games, nothing, nothing, actions).games
    return jax.tree.map(np.array, xla.state_of(games)), np.array(xla.observe(games))


def changed(state: Any, name: str, word: int) -> Any:
    """The state with another word in the middle game; programs are owned if they are changed."""
    leaves, tree = jax.tree_util.tree_flatten_with_path(state)
    named = {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}
    named[name][1] = np.uint32(word).astype(named[name].dtype)
    if name.startswith("acquired"):
        named["owned"][1] = 1
    return jax.tree.unflatten(tree, named.values())


def test_what_was_played_is_legal() -> None:
    state, _ = played(3)
    again = xla.state_of(xla.games_of(state))
    jax.tree.map(np.testing.assert_array_equal, again, state)


@pytest.mark.parametrize(("name", "word"), WILD_WORDS)
def test_a_wild_word_is_refused(name: str, word: int) -> None:
    state, _ = played(1)
    with pytest.raises(REFUSED, match="not a legal state of HackMatrix"):
        jax.block_until_ready(xla.games_of(changed(state, name, word)))


def test_a_wild_row_is_refused_if_undo_can_come_to_it() -> None:
    state, _ = played(1)
    assert state.saved.count.tolist() == [1] * GAMES
    rows = state.saved.rows.copy()
    rows[1, (state.saved.newest[1] + 1) % 4] = 250
    jax.block_until_ready(xla.games_of(replace(state, saved=replace(state.saved, rows=rows))))
    rows[1, state.saved.newest[1]] = 250
    with pytest.raises(REFUSED, match="the positions for UNDO"):
        jax.block_until_ready(xla.games_of(replace(state, saved=replace(state.saved, rows=rows))))


@pytest.mark.parametrize(
    ("place", "byte"),
    [
        (ENEMY, 7),
        (VALUE, 23),
        (BYTE["cell"], 36),
        (BYTE["hp"], 4),
        (BYTE["stage"], 9),
        (BYTE["saved"], 5),
        (BYTE["credits"] + 1, 128),
        (BYTE["owned"] + 2, 128),
        (RECORD_SIZE - 1, 1),
    ],
)
def test_a_wild_record_is_refused(place: int, byte: int) -> None:
    _, records = played(2)
    whole = records.copy()
    records[1, place] = byte
    for layout in ("classic", "full", "tactical"):
        batch.features(whole, layout)
        with pytest.raises(ValueError, match="not an observation of HackMatrix"):
            batch.features(records, layout)
    jax.block_until_ready(tactical_numbers(whole))
    with pytest.raises(REFUSED, match="not an observation"):
        jax.block_until_ready(tactical_numbers(records))
    remembered, none = np.repeat(whole[:, None], 4, axis=1), np.zeros(GAMES, np.int32)
    jax.block_until_ready(imagine(whole, remembered, none + 4, STREAMS, EPISODES))
    with pytest.raises(REFUSED, match="not an observation"):
        jax.block_until_ready(imagine(records, remembered, none, STREAMS, EPISODES))
    remembered[1, 3] = records[1]
    with pytest.raises(REFUSED, match="not an observation"):
        jax.block_until_ready(imagine(whole, remembered, none + 1, STREAMS, EPISODES))


@pytest.mark.parametrize("saved", [-1, 5, -(2**31)])
def test_a_wild_number_of_remembered_records_is_refused(saved: int) -> None:
    _, records = played(0)
    remembered, count = np.repeat(records[:, None], 4, axis=1), np.full(GAMES, saved, np.int32)
    with pytest.raises(REFUSED, match="not an observation"):
        jax.block_until_ready(imagine(records, remembered, count, STREAMS, EPISODES))


def test_a_record_with_more_question_blocks_than_programs_is_not_imagined() -> None:
    _, records = played(0)
    remembered, none = np.repeat(records[:, None], 4, axis=1), np.zeros(GAMES, np.int32)
    records[1, CELL : CELL + 36] = 3
    with pytest.raises(REFUSED, match="not an observation"):
        jax.block_until_ready(imagine(records, remembered, none, STREAMS, EPISODES))


@pytest.mark.parametrize(("field", "value"), [("exit", 36), ("stage", 9), ("next_task", -1)])
def test_a_state_of_the_python_engine_is_checked(field: str, value: int) -> None:
    state = Game.new(1).state
    games_from_engine([state])
    setattr(state, field, value)
    with pytest.raises(ValueError, match="not a legal state of HackMatrix"):
        games_from_engine([state])


def test_states_that_were_overwritten_are_not_observed() -> None:
    games = batch.reset(STREAMS, EPISODES)
    games.states["position"]["player"]["cell"][1] = 99
    with pytest.raises(ValueError, match="not a legal state of HackMatrix"):
        batch.observe(games)


def test_a_step_needs_all_its_results_and_of_their_kinds() -> None:
    games = batch.reset(STREAMS, EPISODES)
    states, saved = (x.view(np.uint8).reshape(GAMES, -1) for x in games[:2])
    counts, held = games[2:], np.zeros(0, np.bool_)
    before = games.states.copy()

    def step(*results: Any) -> None:
        actions = np.zeros(GAMES, np.int32)
        _native.step(states, saved, *counts, held, actions, 100, True, False, 1, *results)

    good = empty_step(GAMES)
    for results in ((), good[:-1], (*good, good[-1]), good[::-1], (None,) * 14):
        with pytest.raises(TypeError):
            step(*results)
    np.testing.assert_array_equal(games.states, before)
    step(*good)


def test_no_games() -> None:
    nobody = np.zeros(0, np.uint32)
    games = batch.reset(nobody, nobody)
    batch.check(games)
    assert batch.observe(games)[0].shape == (0, RECORD_SIZE)
    assert batch.step(games, np.zeros(0, np.int32)).reward_parts.shape == (0, 15)
    assert batch.features(np.zeros((0, RECORD_SIZE), np.uint8), "tactical").shape == (0, 432)
    mapped = xla.reset(jnp.asarray(nobody), jnp.asarray(nobody))
    assert xla.observe(mapped).shape == (0, RECORD_SIZE)
    again = xla.games_of(xla.state_of(mapped))
    assert again.states.shape == mapped.states.shape
    nothing = jnp.zeros(0, jnp.int32)
    assert xla.step(again, nothing, nothing, nothing).step.reward.shape == (0,)


def test_arrays_of_another_width_are_refused() -> None:
    games = xla.reset(jnp.asarray(STREAMS), jnp.asarray(EPISODES))
    short = games._replace(states=games.states[:, :-8])
    with pytest.raises(REFUSED, match="arrays of other shapes"):
        jax.block_until_ready(xla.observe(short))
