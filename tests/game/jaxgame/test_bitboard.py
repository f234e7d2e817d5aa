"""The functions of `bitboard.py` against Python sets."""

from itertools import compress
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from places import KINDS, PLACES, given, members, sets_of, to_set
from suites import first_quickly

from hackmatrix.game.jaxgame import bitboard
from hackmatrix.game.jaxgame.bitboard import (
    DIRECTIONS,
    EVERYWHERE,
    HALF,
    NOBODY,
    NOWHERE,
    Set32,
    Set36,
)
from hackmatrix.game.rules.board import AROUND, CELLS, CROSS, NEIGHBOUR, NEIGHBOURS, col, row

cells = st.integers(0, CELLS - 1)
cell_sets = sets_of(Set36)
kinds = pytest.mark.parametrize("kind", first_quickly(KINDS))
call: Any = jax.jit(lambda function, *args: function(*args), static_argnums=0)  # compiled once each


def test_two_words_of_18_bits_hold_36_cells() -> None:
    """Rows 0 to 2 of the board are the lower word, rows 3 to 5 the higher one."""
    corners = bitboard.constant([0, 5, 30, 35])
    assert HALF == 18
    assert corners == Set36(low=1 << 0 | 1 << 5, high=1 << (30 - 18) | 1 << (35 - 18))
    assert members(corners) == {0, 5, 30, 35}
    assert members(NOWHERE) == members(NOBODY) == set()
    assert members(EVERYWHERE) == set(range(CELLS))


# --- sets of places ------------------------------------------------------------------------------


@kinds
@given(data=st.data())
def test_sets_are_combined_as_python_sets_are(kind: type, data: st.DataObject) -> None:
    a, b = data.draw(sets_of(kind)), data.draw(sets_of(kind))
    x, y = to_set(kind, a), to_set(kind, b)
    assert members(call(kind.__and__, x, y)) == a & b
    assert members(call(kind.__or__, x, y)) == a | b
    assert members(call(kind.__xor__, x, y)) == a ^ b
    assert members(call(kind.__invert__, x)) == set(range(PLACES[kind])) - a


@kinds
@given(data=st.data())
def test_questions_about_a_set(kind: type, data: st.DataObject) -> None:
    a = data.draw(sets_of(kind))
    place = data.draw(st.integers(0, PLACES[kind] - 1))
    x = to_set(kind, a)
    assert bool(call(kind.any, x)) == bool(a)
    assert int(call(kind.size, x)) == len(a)
    assert bool(call(kind.has, x, place)) == (place in a)
    assert members(call(kind.first, x)) == ({min(a)} if a else set())


@kinds
@given(data=st.data(), holds=st.booleans())
def test_sets_by_a_condition(kind: Any, data: st.DataObject, holds: bool) -> None:
    """A rule that does not apply works on the empty set, which changes nothing."""
    a, b = data.draw(sets_of(kind)), data.draw(sets_of(kind))
    x, y = to_set(kind, a), to_set(kind, b)
    assert members(call(kind.only_if, x, holds)) == (a if holds else set())
    assert members(call(kind.all_if, holds)) == (set(range(PLACES[kind])) if holds else set())
    assert members(call(bitboard.select, holds, x, y)) == (a if holds else b)


@kinds
def test_the_first_places(kind: Any) -> None:
    """`below(count)` are the slots of a list of so many pieces."""
    for count in range(PLACES[kind] + 1):
        assert members(call(kind.below, count)) == set(range(count))


@kinds
@given(data=st.data())
def test_compression_moves_the_kept_places_to_the_front(kind: Any, data: st.DataObject) -> None:
    """Pieces that go leave gaps in every fact about the pieces; all are closed in one way."""
    kept, fact = data.draw(sets_of(kind)), data.draw(sets_of(kind))
    column = [place in fact for place in range(PLACES[kind])]
    expected = compress(column, (place in kept for place in range(PLACES[kind])))
    got = call(cut_out, to_set(kind, fact), to_set(kind, kept))
    assert members(got) == {place for place, is_member in enumerate(expected) if is_member}


def cut_out(fact: Any, kept: Any) -> Any:
    return fact.compress(kept.compression())


@given(sets_of(Set36))
def test_a_set_of_36_becomes_one_of_32(a: set[int]) -> None:
    assert members(call(Set36.to_set32, to_set(Set36, a))) == {place for place in a if place < 32}


@given(sets_of(Set32), st.integers(0, 31))
def test_slots_moved_up(a: set[int], distance: int) -> None:
    """New pieces are appended by moving them behind those that are there."""
    moved = call(Set32.shifted, to_set(Set32, a), distance)
    assert members(moved) == {slot + distance for slot in a if slot + distance < 32}
    assert members(call(Set32.of_slot, distance)) == {distance}


@given(st.integers(0, 2**32 - 1).filter(bool))
def test_the_nth_bit(word: int) -> None:
    places = [place for place in range(32) if word >> place & 1]
    for n in {0, len(places) // 2, len(places) - 1}:
        assert int(call(bitboard.nth_bit, np.uint32(word), n)) == places[n]


# --- the board -----------------------------------------------------------------------------------


@given(cell_sets.filter(bool))
def test_cells_in_ascending_order(a: set[int]) -> None:
    """Chance takes the n-th of some cells."""
    x = to_set(Set36, a)
    assert int(call(bitboard.lowest, x)) == min(a)
    assert int(call(bitboard.highest, x)) == max(a)
    for n in {0, len(a) // 2, len(a) - 1}:
        assert int(call(bitboard.nth, x, n)) == sorted(a)[n]


@given(cell_sets)
def test_a_set_from_a_mask(a: set[int]) -> None:
    mask = jnp.array([cell in a for cell in range(CELLS)])
    assert members(call(bitboard.of_mask, mask)) == a


def test_one_cell_and_its_lines() -> None:
    for cell in range(CELLS):
        assert members(call(bitboard.of_cell, cell)) == {cell}
        assert int(call(bitboard.row_of, cell)) == row(cell)
        assert int(call(bitboard.col_of, cell)) == col(cell)
    for beyond in (-1, CELLS, 1000):
        assert members(call(bitboard.of_cell, beyond)) == set()
    for line in range(6):
        assert members(call(bitboard.row_cells, line)) == {c for c in range(36) if row(c) == line}
        assert members(call(bitboard.col_cells, line)) == {c for c in range(36) if col(c) == line}


@given(cell_sets)
def test_one_step_in_each_direction(a: set[int]) -> None:
    """Cells that would leave the board are lost; nothing comes round the edge."""
    for direction, step in enumerate((bitboard.up, bitboard.down, bitboard.left, bitboard.right)):
        assert DIRECTIONS[direction] is step
        reached = {NEIGHBOUR[cell][direction] for cell in a} - {None}
        assert members(call(step, to_set(Set36, a))) == reached


@given(cell_sets, cells)
def test_cells_next_to_others(a: set[int], cell: int) -> None:
    x = to_set(Set36, a)
    assert members(call(bitboard.neighbours, x)) == {n for c in a for n in NEIGHBOURS[c]}
    assert members(call(bitboard.cross, x)) == {n for c in a for n in CROSS[c]}
    assert members(call(bitboard.around, to_set(Set36, [cell]))) == set(AROUND[cell])


@given(cell_sets, cell_sets)
def test_one_step_of_a_flood(a: set[int], free: set[int]) -> None:
    """Repeated, it finds all cells that can be walked to, and how far they are."""
    got = call(bitboard.flood_step, to_set(Set36, a), to_set(Set36, free))
    assert members(got) == a | {n for c in a for n in NEIGHBOURS[c] if n in free}


@given(cells, cell_sets, st.integers(0, 3))
def test_a_ray_and_what_it_meets_first(cell: int, stops: set[int], direction: int) -> None:
    """An attack strikes the first piece or block on its way."""
    ray, seen = set(), set()
    here = NEIGHBOUR[cell][direction]
    while here is not None:
        if not ray & stops:
            seen.add(here)
        ray.add(here)
        here = NEIGHBOUR[here][direction]
    got = call(rays[direction], cell)
    assert members(got) == ray
    assert members(call(looks[direction], got, to_set(Set36, stops))) == seen


# A direction is a function, so for each there is a function of its own to compile.
rays = [lambda cell, d=d: bitboard.ray(cell, d) for d in DIRECTIONS]
looks = [lambda ray, stops, d=d: bitboard.up_to_first(ray, stops, d) for d in DIRECTIONS]
