"""The rows of a position: the same in NumPy, JAX and the native engine; what a row stands for."""

import functools
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lockstep_starts import rich

from hackmatrix.agents.networks.row_tables import DIRECTION, PLAYER, SYMBOLS
from hackmatrix.agents.networks.rows import (
    DEFINITION,
    DIRECTION_ROWS,
    PLAYER_ROWS,
    frames,
    real_directions,
    rows_of,
)
from hackmatrix.game import native
from hackmatrix.game.engine.observation import observe
from hackmatrix.game.rules.board import CELLS, DIRECTIONS, SIZE
from hackmatrix.game.rules.mirror import AXES, mirrored_actions
from hackmatrix.game.rules.observation import BYTE, FIELD, PLANE, RECORD_SIZE

Rows = tuple[np.ndarray, np.ndarray]


@functools.cache
def records() -> np.ndarray:
    """64 positions, and 16 records of arbitrary bytes."""
    rng = random.Random(3)
    positions = [list(observe(rich(rng))) for _ in range(64)]
    garbage = [list(rng.randbytes(RECORD_SIZE)) for _ in range(16)]
    return np.array(positions + garbage, np.uint8)


@functools.cache
def numpy_rows() -> Rows:
    return rows_of(records(), np)


def counts(rows: np.ndarray, size: int) -> np.ndarray:
    """int[B, size]: how often each row is there."""
    return np.array([np.bincount(row[row > 0], minlength=size) for row in rows])


def mirrored(record: np.ndarray, axis: int) -> np.ndarray:
    """The record of the board with `axis` turned around."""
    copy = record.copy()
    planes = record[: len(PLANE) * CELLS].reshape(-1, SIZE, SIZE)
    copy[: len(PLANE) * CELLS] = np.flip(planes, axis + 1).reshape(-1)
    position = [*divmod(int(record[BYTE["cell"]]), SIZE)]
    position[axis] = SIZE - 1 - position[axis]
    copy[BYTE["cell"]] = position[0] * SIZE + position[1]
    return copy


def holding(player: int, **pieces: tuple[int, dict[str, int]]) -> np.ndarray:
    """A record of a board with the exit in its last corner and some fields of cells."""
    record = np.zeros(RECORD_SIZE, np.uint8)
    record[BYTE["cell"]] = player
    record[PLANE["cell"] + CELLS - 1] = FIELD["exit"].put(1)
    for cell, values in pieces.values():
        for name, value in values.items():
            record[PLANE[FIELD[name].byte] + cell] |= FIELD[name].put(value)
    return record


def sets(record: np.ndarray) -> tuple[set[int], list[set[int]]]:
    own, others = rows_of(record[None], np)
    return {*own[0].tolist()} - {0}, [{*rows.tolist()} - {0} for rows in others[0]]


def test_jax_has_the_same_rows() -> None:
    own, others = jax.jit(lambda x: rows_of(x, jnp))(records())
    np.testing.assert_array_equal(own, numpy_rows()[0])
    np.testing.assert_array_equal(others, numpy_rows()[1])


@pytest.mark.skipif(not native.available, reason="the native engine was left out")
def test_the_native_engine_has_the_same_rows() -> None:
    from hackmatrix.game.native import xla

    @jax.jit
    def row_counts(record: jax.Array) -> tuple[jax.Array, jax.Array]:
        digits = jnp.array([1.0, 100.0, 10_000.0, 1_000_000.0]).reshape(1, 4, 1)
        sizes = PLAYER_ROWS, DIRECTION_ROWS
        gradients = jnp.ones((1, 1)), digits
        return xla.row_gradients(record[None], DEFINITION.arrays(), sizes, *gradients)

    own, others = numpy_rows()
    of_player = counts(own, PLAYER_ROWS)
    of_directions = counts(others.reshape(-1, others.shape[-1]), DIRECTION_ROWS)
    digits = np.array([1, 100, 10_000, 1_000_000])[:, None]
    for index, record in enumerate(records()):
        found = row_counts(record)
        np.testing.assert_array_equal(found[0][:, 0], of_player[index])
        expected = (of_directions[4 * index : 4 * index + 4] * digits).sum(axis=0)
        np.testing.assert_array_equal(found[1][:, 0], expected)


def test_rows_are_in_their_tables() -> None:
    own, others = numpy_rows()
    assert own.min() == others.min() == 0
    assert own.max() < PLAYER_ROWS
    assert others.max() < DIRECTION_ROWS
    for rows in (own, others.reshape(-1, others.shape[-1])):
        assert all(np.bincount(row[row > 0], minlength=1).max() == 1 for row in rows if row.any())


@pytest.mark.parametrize("axis", AXES)
def test_a_mirrored_board_has_the_same_rows(axis: int) -> None:
    """Those of the directions belong to the mirrored directions of the board."""
    boards = records()[:64]
    turned = np.array([mirrored(board, axis) for board in boards])
    (own, others), (own_turned, others_turned) = rows_of(boards, np), rows_of(turned, np)
    np.testing.assert_array_equal(own, own_turned)
    np.testing.assert_array_equal(others, others_turned)
    logits = np.arange(4 * len(boards)).reshape(-1, 4)
    real, real_turned = (real_directions(logits, frames(x, np), np) for x in (boards, turned))
    np.testing.assert_array_equal(real[:, mirrored_actions(axis)[:4]], real_turned)


def test_a_piece_at_the_same_offset_has_the_same_row() -> None:
    enemy = {"enemy_type": 3, "enemy_hp": 2}
    here, there, elsewhere = (
        sets(holding(player, enemy=(player + offset, enemy)))[0] - sets(holding(player))[0]
        for player, offset in ((7, 2 * SIZE + 1), (14, 2 * SIZE + 1), (14, SIZE + 2))
    )
    table = [each.symbol for each in PLAYER.around].index("enemy")
    symbol, first, symbols, _ = DEFINITION.player.around[table].tolist()
    assert list(SYMBOLS)[symbol] == "enemy"
    around = range(first, first + (2 * SIZE - 1) ** 2 * symbols)
    assert {*around} & here == {*around} & there != {*around} & elsewhere
    assert len({*around} & here) == 1


def test_a_step_into_a_wall_has_no_rows() -> None:
    _, directions = sets(holding(0, block=(1, {"block": 1})))
    assert [bool(rows) for rows in directions] == [step == (1, 0) for step in DIRECTIONS]


def test_views_of_directions_share_their_rows() -> None:
    """An enemy two cells ahead is the same to all directions that are equally far from the edge."""
    first = DEFINITION.direction.around[0].tolist()[1]
    last = DEFINITION.direction.around[-1].tolist()[1]
    player, enemy, ahead = 14, {"enemy_type": 1, "enemy_hp": 1}, []
    for step in ((1, 0), (0, 1)):
        board = holding(player, enemy=(player + 3 * (step[0] * SIZE + step[1]), enemy))
        ahead.append(sets(board)[1][DIRECTIONS.index(step)] & {*range(first, last)})
    assert ahead[0] == ahead[1]
    assert len(ahead[0]) == 3  # the enemy, its hp, and the exit


def test_the_definition_has_tables_for_all_that_it_names() -> None:
    names = {each.symbol for each in (*PLAYER.around, *DIRECTION.around)}
    names |= {each.symbol for each in PLAYER.on_board}
    names |= {name for view in (PLAYER, DIRECTION) for j in view.joint for _, name in j.cells}
    assert names == {*SYMBOLS}
