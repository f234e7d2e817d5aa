"""The functions of `planes.py` against Python lists: one number for each place."""

from typing import Any

import jax
from hypothesis import strategies as st
from places import given, lists_of, members, sets_of, to_numbers, to_set, values

from hackmatrix.game.jaxgame import planes
from hackmatrix.game.jaxgame.bitboard import Set32, Set36
from hackmatrix.game.jaxgame.planes import Coordinates
from hackmatrix.game.rules.board import CELLS, col, row

PLANES = 3  # enough for every carry and borrow
LARGEST = 2**PLANES - 1

number = st.integers(0, LARGEST)
numbers, places = lists_of(Set36, PLANES), sets_of(Set36)
call: Any = jax.jit(lambda function, *args: function(*args), static_argnums=0)  # compiled once each


def cells_with(numbers: list[int], planes: int = PLANES) -> Any:
    """A number on each cell of the board."""
    return to_numbers(Set36, numbers, planes)


def test_two_planes_hold_the_hp_of_all_enemies() -> None:
    """Three enemies with 3, 2 and 1 hp: bit 0 is set in 3 and 1, bit 1 in 3 and 2."""
    hp = (to_set(Set32, {0, 2}), to_set(Set32, {0, 1}))
    assert values(hp)[:4] == [3, 2, 1, 0]
    assert hp == to_numbers(Set32, [3, 2, 1], planes=2)


# --- numbers at places ---------------------------------------------------------------------------


@given(numbers, places, st.integers(0, CELLS - 1), number)
def test_reading_and_writing(a: list[int], at: set[int], place: int, n: int) -> None:
    x, where = cells_with(a), to_set(Set36, at)
    assert int(call(planes.get, x, place)) == a[place]
    assert values(call(planes.put, x, where, n)) == [n if i in at else v for i, v in enumerate(a)]
    assert values(call(planes.clear, x, where)) == [0 if i in at else v for i, v in enumerate(a)]


@given(numbers, numbers, places)
def test_one_of_two_numbers_at_each_place(a: list[int], b: list[int], at: set[int]) -> None:
    got = call(planes.select, to_set(Set36, at), cells_with(a), cells_with(b))
    assert values(got) == [a[i] if i in at else b[i] for i in range(CELLS)]


@given(numbers, numbers, number)
def test_which_places_have_a_number(a: list[int], b: list[int], n: int) -> None:
    x, y, every = cells_with(a), cells_with(b), range(CELLS)
    assert members(call(planes.equal, x, n)) == {i for i in every if a[i] == n}
    assert members(call(planes.at_least, x, n)) == {i for i in every if a[i] >= n}
    assert members(call(planes.nonzero, x)) == {i for i in every if a[i]}
    assert members(call(planes.less, x, y)) == {i for i in every if a[i] < b[i]}
    assert members(call(odd_ones, x)) == {i for i in every if a[i] in (1, 3, 5)}
    of_each = call(one_hot_below_6, x)
    assert [members(found) for found in of_each] == [
        {i for i in every if a[i] == value} for value in range(6)
    ]


@given(numbers, st.integers(1, PLANES - 1))
def test_numbers_up_to_a_power_of_2_less_1(a: list[int], bits: int) -> None:
    got = planes.at_most(cells_with(a), 2**bits - 1)
    assert len(got) == bits
    assert values(got) == [min(number, 2**bits - 1) for number in a]


def odd_ones(numbers: Any) -> Any:
    return planes.one_of(numbers, (1, 3, 5))


def one_hot_below_6(numbers: Any) -> Any:
    return planes.one_hot(numbers, 6)


# --- arithmetic at all places at once ------------------------------------------------------------


@given(numbers, places)
def test_one_more_and_one_less(a: list[int], at: set[int]) -> None:
    """All timers are counted down by as many operations as one."""
    more = [(v + (i in at)) % (LARGEST + 1) for i, v in enumerate(a)]
    where = to_set(Set36, at)
    assert values(call(planes.increment, cells_with(a), where)) == more
    assert values(call(planes.decrement, cells_with(more), where)) == a


@given(lists_of(Set36, 15), places)
def test_counting_down_from_large_numbers(a: list[int], at: set[int]) -> None:
    """Turns have so many planes that they are counted down in a loop."""
    at = at & {i for i, v in enumerate(a) if v}
    less = [v - (i in at) for i, v in enumerate(a)]
    assert values(call(planes.decrement, cells_with(a, 15), to_set(Set36, at))) == less


@given(numbers, places, places)
def test_lists_close_their_gaps_in_all_facts_alike(
    a: list[int], flags: set[int], kept: set[int]
) -> None:
    facts = {"numbers": cells_with(a), "flags": to_set(Set36, flags)}
    closed = call(planes.compress, facts, to_set(Set36, kept))
    gone = [0] * (CELLS - len(kept))
    assert values(closed["numbers"]) == [a[i] for i in sorted(kept)] + gone
    expected = {place for place, i in enumerate(sorted(kept)) if i in flags}
    assert members(closed["flags"]) == expected
    assert planes.is_set(closed["flags"])
    assert not planes.is_set(closed["numbers"])


@given(numbers, places, number)
def test_subtraction_tells_where_it_was_too_much(a: list[int], at: set[int], n: int) -> None:
    """Damage: the enemies with less hp than the damage, and the hp of the others."""
    difference, too_much = call(planes.subtract, cells_with(a), to_set(Set36, at), n)
    left = [v - n if i in at else v for i, v in enumerate(a)]
    assert values(difference) == [v % (LARGEST + 1) for v in left]
    assert members(too_much) == {i for i, v in enumerate(left) if v < 0}


@given(numbers, numbers)
def test_a_sum_has_one_plane_more(a: list[int], b: list[int]) -> None:
    got = call(planes.add, cells_with(a), cells_with(b))
    assert len(got) == PLANES + 1
    assert values(got) == [x + y for x, y in zip(a, b, strict=True)]


@given(numbers, places)
def test_what_some_places_have_together(a: list[int], at: set[int]) -> None:
    x, where, some = cells_with(a), to_set(Set36, at), [a[place] for place in at]
    assert int(call(planes.total, x, where)) == sum(some)
    assert int(call(planes.largest, x, where)) == max(some, default=0)
    smallest = {place for place in at if a[place] == min(some)}
    assert members(call(planes.members_of_smallest, x, where)) == smallest


# --- where pieces are ----------------------------------------------------------------------------

# The cell of the piece in each slot; few cells, so that several pieces share one.
crowds = st.lists(
    st.one_of(st.sampled_from([0, 14, 20]), st.integers(0, CELLS - 1)), min_size=32, max_size=32
)
slots = sets_of(Set32)


def coordinates(pieces: list[int]) -> Any:
    rows, cols = ([line(cell) for cell in pieces] for line in (row, col))
    return Coordinates(to_numbers(Set32, rows, planes=3), to_numbers(Set32, cols, planes=3))


def cells(where: Any) -> list[int]:
    return [6 * r + c for r, c in zip(values(where.row), values(where.col), strict=True)]


@given(crowds, st.integers(0, 31), st.integers(0, CELLS - 1))
def test_who_is_where(pieces: list[int], slot: int, cell: int) -> None:
    x = coordinates(pieces)
    assert int(call(Coordinates.at, x, slot)) == pieces[slot]
    assert members(call(Coordinates.on, x, cell)) == {i for i in range(32) if pieces[i] == cell}
    in_row, in_col = call(Coordinates.in_row, x, row(cell)), call(Coordinates.in_col, x, col(cell))
    assert members(in_row) == {i for i in range(32) if row(pieces[i]) == row(cell)}
    assert members(in_col) == {i for i in range(32) if col(pieces[i]) == col(cell)}


@given(crowds, slots, st.integers(0, CELLS - 1))
def test_pieces_that_move(pieces: list[int], moving: set[int], cell: int) -> None:
    got = call(Coordinates.moved, coordinates(pieces), to_set(Set32, moving), cell)
    assert cells(got) == [cell if i in moving else old for i, old in enumerate(pieces)]


@given(crowds, slots, slots, sets_of(Set36))
def test_from_slots_to_cells_and_back(
    pieces: list[int], some: set[int], others: set[int], area: set[int]
) -> None:
    x, a, b = coordinates(pieces), to_set(Set32, some), to_set(Set32, others)
    on_cells = call(Coordinates.cells, x, a, b)
    assert [members(found) for found in on_cells] == [
        {pieces[i] for i in some},
        {pieces[i] for i in others},
    ]
    within = call(Coordinates.within, x, a, to_set(Set36, area))
    assert members(within) == {i for i in some if pieces[i] in area}


@given(crowds, slots)
def test_the_first_piece_of_those_that_share_a_cell(pieces: list[int], some: set[int]) -> None:
    """A hit strikes the first in the list."""
    got = call(Coordinates.first_on_each_cell, coordinates(pieces), to_set(Set32, some))
    first = {pieces[i]: i for i in sorted(some, reverse=True)}
    assert members(got) == set(first.values())
