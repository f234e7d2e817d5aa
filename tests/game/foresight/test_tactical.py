"""The layout `tactical`: equal in both engines, blind to what is hidden, right on small boards."""

import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax_games import GAMES
from lockstep_starts import full, new, next_to_the_exit, quiet, rich
from look_alikes import other_secrets, rich_game
from platforms import as_on_accelerators
from strategies import legal_states

from hackmatrix.environments.hackmatrix import HackMatrixEnv
from hackmatrix.environments.hackmatrix.observations import observations_of
from hackmatrix.game import native
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.observation import observe
from hackmatrix.game.engine.saving import state_from_dict
from hackmatrix.game.foresight.features import features
from hackmatrix.game.foresight.jax_layout import tactical_numbers as jax_numbers
from hackmatrix.game.foresight.python_layout import tactical_numbers
from hackmatrix.game.rules.programs import ProgramId
from hackmatrix.game.rules.tactical import FAR, GROUPS, SCALES, START, TACTICAL_SIZE

if native.available:
    from hackmatrix.game.native import batch, xla

needs_native = pytest.mark.skipif(not native.available, reason="there is no native engine")
of_games = jax.jit(jax_numbers)


def named(numbers: Any) -> dict[str, list[int]]:
    """The groups by name."""
    return {g.name: [int(x) for x in numbers[START[g.name] :][: g.size]] for g in GROUPS}


def as_array(records: list[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(records), np.uint8).reshape(len(records), -1)


def assert_native_is_right(records: list[bytes]) -> None:
    for record, numbers in zip(records, batch.tactical_numbers(as_array(records)), strict=True):
        assert named(numbers) == named(tactical_numbers(record))


def assert_equal_in_both(records: list[bytes]) -> None:
    padded = as_array([records[i % len(records)] for i in range(GAMES)])
    got = of_games(jnp.asarray(padded))
    assert (got.shape, got.dtype) == ((GAMES, TACTICAL_SIZE), jnp.int8)
    for record, numbers in zip(records, np.asarray(got), strict=False):
        assert named(numbers) == named(tactical_numbers(record))


def while_playing(rng: random.Random, number: int) -> list[bytes]:
    starts, records = (new, rich, rich, rich, quiet, full, next_to_the_exit), []
    for i in range(number):
        game = Game(starts[i % len(starts)](rng))
        for _ in range(rng.randrange(4)):
            if valid := game.valid_actions():
                game.step(rng.choice(valid))
        records.append(game.observation())
    return records


@needs_native
def test_the_native_engine_works_out_the_same() -> None:
    records = [with_a_block_of(99), *while_playing(random.Random(2), number=70)]
    assert_native_is_right(records)
    got = jax.jit(xla.tactical_numbers)(as_array(records))
    np.testing.assert_array_equal(got, batch.tactical_numbers(as_array(records)))


@needs_native
@settings(max_examples=25, deadline=None)
@given(st.lists(legal_states(ended=True), min_size=2, max_size=2))
def test_the_native_engine_works_out_the_same_of_any_legal_state(states: list[dict]) -> None:
    assert_native_is_right([observe(state_from_dict(data)) for data in states])


@needs_native
@pytest.mark.parametrize("layout", ["classic", "full"])
def test_the_other_layouts_of_the_native_engine(layout: str) -> None:
    """To the last bit: both divide with one rounding."""
    records = while_playing(random.Random(5), number=48)
    expected = np.array([features(record, layout) for record in records], np.float32)
    np.testing.assert_array_equal(batch.features(as_array(records), layout), expected)


@pytest.mark.thorough
def test_both_engines_work_out_the_same_while_playing() -> None:
    records = [with_a_block_of(spawn) for spawn in (7, 15, 16, 99)]
    assert_equal_in_both(records + while_playing(random.Random(0), GAMES - 4))


@pytest.mark.slow
def test_accelerators_work_out_the_same() -> None:
    rng = random.Random(3)
    records = [list(observe(start(rng))) for start in (rich, full, quiet, new) for _ in range(8)]
    numbers = jnp.array(records, jnp.uint8)
    expected = jax.jit(lambda records: jax_numbers(records))(numbers)
    with as_on_accelerators():
        got = jax.jit(lambda records: jax_numbers(records))(numbers)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.thorough
@settings(max_examples=20, deadline=None)
@given(st.lists(legal_states(ended=True), min_size=4, max_size=4))
def test_both_engines_work_out_the_same_of_any_legal_state(states: list[dict]) -> None:
    assert_equal_in_both([observe(state_from_dict(data)) for data in states])


def test_nothing_hidden_changes_it() -> None:
    rng = random.Random(1)
    for _ in range(100):
        state = rich_game(rng)
        other = other_secrets(state, rng)
        for enemy in other.enemies:
            if not other.sees(enemy):
                enemy.hp, enemy.stunned = rng.randint(1, 2), rng.random() < 0.5
        assert tactical_numbers(observe(other)) == tactical_numbers(observe(state))


def seen(text: str) -> dict[str, list[int]]:
    return named(tactical_numbers(observe(Game.from_text(text).state)))


BOARD = """
    .. .. .. .. .. X.
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    .. .@ {a} {b} .. ..
    .. P. .. .. .. ..
    s. .. .. .. .. s.
    player credits 3 energy 1 attack 1
    owned ROW
"""
UP, DOWN, LEFT, RIGHT = range(4)


def test_an_enemy_next_to_the_player_hits_and_a_hit_stuns_it() -> None:
    board = seen(BOARD.format(a=".d", b=".."))
    assert board["stay_hits"] == [1]
    assert (board["go_stuns"], board["go_walks"]) == ([0, 0, 0, 1], [1, 0, 1, 0])
    assert board["go_valid"] == [1, 0, 1, 1]  # a block is below
    assert board["go_daemon"] == [0, 0, 0, 1]
    assert board["go_hits"] == [0, 0, 0, 0]  # one step away it only follows
    assert board["go_target_hp"] == [0, 0, 0, 3]
    assert board["cell_daemon"][RIGHT] == 1


def test_a_virus_reaches_two_free_cells_far() -> None:
    assert seen(BOARD.format(a="..", b=".v"))["stay_hits"] == [1]
    assert seen(BOARD.format(a="..", b=".d"))["stay_hits"] == [0]
    walled = seen(BOARD.format(a="D.", b=".v"))
    assert walled["stay_hits"] == [0]
    assert seen(BOARD.format(a="..", b=".v"))["fewest_hits"] == [0]  # any step leads out of reach


def test_a_program_shows_whom_it_strikes_and_what_is_left() -> None:
    row = ProgramId.ROW
    board = seen(BOARD.format(a=".d", b=".v"))
    strike = [g.name for g in GROUPS].index("struck")
    assert GROUPS[strike].size == 9
    place = 4  # of ROW among the strikes
    assert (board["struck"][place], board["killed"][place]) == (2, 0)
    assert (board["stay_hits"], board["hits_after"][place]) == ([1], 0)
    assert board["owned"][row] == board["ready"][row] == 1
    poor = seen(BOARD.format(a=".d", b=".v").replace("credits 3", "credits 2"))
    assert (poor["ready"][row], poor["struck"][place]) == (0, 0)


def test_ways_lead_round_blocks() -> None:
    board = seen(BOARD.format(a="..", b=".."))
    assert board["exit_distance"] == [7]
    assert board["go_to_exit"] == [1, 0, -1, 1]
    assert board["siphon_distance"] == [3]
    assert board["go_to_siphon"] == [-1, 0, 1, -1]
    assert sum(near > 0 for near in board["program_near"]) == 1
    assert max(board["program_near"]) == FAR  # from here it can be siphoned


def with_a_block_of(spawn: int) -> bytes:
    text = BOARD.format(a="..", b="..") + f"cell 1,1 program ROW spawn {spawn}"
    return Game.from_text(text).observation()


@pytest.mark.parametrize(("spawn", "counted"), [(7, 7), (15, 15), (16, 15), (99, 15)])
def test_transmissions_of_one_block_are_counted_up_to_15(spawn: int, counted: int) -> None:
    assert named(tactical_numbers(with_a_block_of(spawn)))["here_spawns"] == [counted]


def test_the_features_are_the_integers_over_their_scales() -> None:
    """To the last bit, in each engine."""
    records = [observe(rich(random.Random(seed))) for seed in range(24)]
    numbers = np.array([tactical_numbers(record) for record in records], np.float32)
    expected = numbers * np.array(SCALES, np.float32)
    in_python = np.array([features(record, "tactical") for record in records], np.float32)
    np.testing.assert_array_equal(in_python, expected)
    rows = np.array([np.frombuffer(record, np.uint8) for record in records])
    np.testing.assert_array_equal(observations_of(rows, "tactical"), expected)
    env = HackMatrixEnv(layout="tactical")
    np.testing.assert_array_equal(jax.vmap(env.features)(jnp.asarray(rows)), expected)
