"""Sets and numbers of the JAX game, made of Python sets and lists and turned back into them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import hypothesis
import numpy as np
from hypothesis import strategies as st

from hackmatrix.game.jaxgame.bitboard import HALF, Set32, Set36

PLACES = {Set36: 36, Set32: 32}
KINDS = list(PLACES)


def given(*drawn: Any, **named: Any) -> Callable[[Callable[..., None]], Any]:
    """Hypothesis's, with few examples: a wrong operation is wrong on most sets."""

    def few(test: Callable[..., None]) -> Any:
        return hypothesis.settings(max_examples=25)(hypothesis.given(*drawn, **named)(test))

    return few


def to_set(kind: type, places: Iterable[int]) -> Any:
    """A `Set36` or `Set32`."""
    bits = sum(1 << place for place in set(places))
    if kind is Set32:
        return Set32(np.uint32(bits))
    return Set36(np.uint32(bits & (1 << HALF) - 1), np.uint32(bits >> HALF))


def to_numbers(kind: type, values: Sequence[int], planes: int) -> Any:
    """Numbers of so many planes, one value for each place."""
    return tuple(
        to_set(kind, (place for place, value in enumerate(values) if value >> b & 1))
        for b in range(planes)
    )


def members(places: Any) -> set[int]:
    """The places of a `Set36` or `Set32`."""
    words = [int(word) for word in places]
    assert all(word < 1 << HALF for word in words) or len(words) == 1, "bits beyond the places"
    bits = sum(word << HALF * i for i, word in enumerate(words))
    return {place for place in range(bits.bit_length()) if bits >> place & 1}


def values(numbers: Any) -> list[int]:
    """The value at each place."""
    planes = [members(plane) for plane in numbers]
    places = range(PLACES[type(numbers[0])])
    return [sum((place in plane) << b for b, plane in enumerate(planes)) for place in places]


def sets_of(kind: type) -> st.SearchStrategy[set[int]]:
    """Subsets of the places of a kind of set; often empty, full, or of few places."""
    every = range(PLACES[kind])
    few = st.sets(st.sampled_from(every), max_size=4)
    most = few.map(lambda places: set(every) - places)
    return st.one_of(
        few, most, _bits_of(kind).map(lambda bits: {i for i in every if bits >> i & 1})
    )


def lists_of(kind: type, planes: int) -> st.SearchStrategy[list[int]]:
    """A number of so many bits for each place."""
    every = range(PLACES[kind])
    of_planes = st.lists(_bits_of(kind), min_size=planes, max_size=planes)
    return of_planes.map(
        lambda drawn: [sum((bits >> i & 1) << p for p, bits in enumerate(drawn)) for i in every]
    )


def _bits_of(kind: type) -> st.SearchStrategy[int]:
    """A bit for each place, drawn as one number, which takes a tenth of the time."""
    return st.integers(0, 2 ** PLACES[kind] - 1)
