"""Spaces: what they contain, that samples are of them and everywhere in them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from hackmatrix.environments.interface.spaces import Box, Discrete, Space

KEYS = jax.random.split(jax.random.key(0), 4_000)
LARGEST = float(np.finfo(np.float32).max)

SPACES: list[Space] = [
    Discrete(5),
    Discrete(300, np.int16),
    Box(-3, 4, (), np.int32),
    Box((0, -1), (0, 5), (2,), np.int32),
    Box(0, 2**32 - 1, (3,), np.uint32),
    Box(-(2**31), 2**31 - 1, (3,), np.int32),
    Box((-1.0, 0.0, 5.0), (1.0, 0.5, 7.0), (2, 3)),
    Box(-np.inf, np.inf, (2,)),
    Box(0, LARGEST, (2,)),
    Box(False, True, (4,), bool),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_samples_belong_to_the_space_and_are_spread_over_it(space: Space) -> None:
    def draw(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        drawn = space.sample(key)
        return drawn, space.contains(drawn)

    drawn, is_contained = jax.jit(jax.vmap(draw))(KEYS)
    assert (drawn.shape, drawn.dtype) == ((len(KEYS), *space.shape), space.dtype)
    assert is_contained.all()
    low, high = (0, space.n - 1) if isinstance(space, Discrete) else (space.low, space.high)
    low, high = np.nan_to_num(np.float64(low), neginf=-LARGEST), np.nan_to_num(np.float64(high))
    low, high = (np.clip(bound, -LARGEST, LARGEST) for bound in (low, high))
    middle = np.mean(np.float64(drawn) / 2, axis=0) * 2
    assert (np.abs(middle - (low / 2 + high / 2)) <= (high / 2 - low / 2) / 15).all()


@pytest.mark.thorough
def test_samples_are_uniform() -> None:
    counts = np.bincount(jax.vmap(Discrete(5).sample)(KEYS))
    assert chisquare(counts).pvalue > 0.01
    bytes_ = jax.vmap(Box(0, 255, (50,), np.uint8).sample)(KEYS)
    assert chisquare(np.bincount(bytes_.ravel())).pvalue > 0.01
    assert kstest(jax.vmap(Box(-1.0, 3.0, ()).sample)(KEYS), "uniform", (-1, 4)).pvalue > 0.01


def test_only_what_the_mask_allows_is_drawn() -> None:
    mask = jnp.array([False, True, False, True, True])
    counts = np.bincount(jax.vmap(Discrete(5).sample, (0, None))(KEYS, mask), minlength=5)
    assert counts[[0, 2]].tolist() == [0, 0]
    assert chisquare(counts[[1, 3, 4]]).pvalue > 0.01


@pytest.mark.parametrize(
    ("space", "inside", "outside"),
    [
        (Discrete(3), [0, 2, np.uint8(1), jnp.int32(2)], [-1, 3, 1.0, [1], True]),
        (
            Box(0, 3, (2,), np.uint8),
            [np.uint8([0, 3])],
            [np.uint8([0, 4]), np.int32([0, 3]), np.uint8([0]), np.uint8(0)],
        ),
        (
            Box((-1.0, 0.0), (1.0, np.inf), (2,)),
            [np.float32([-1, 9e30]), np.float32([1, 0])],
            [np.float32([1.1, 0]), np.float32([0, -0.1]), np.float32([0, np.nan]), np.ones(2, int)],
        ),
        (Box(False, True, (), bool), [True, np.bool_(False)], [1, 0.0]),
    ],
    ids=str,
)
def test_what_belongs_to_a_space(space: Space, inside: list[Any], outside: list[Any]) -> None:
    assert [bool(space.contains(x)) for x in inside] == [True] * len(inside)
    assert [bool(space.contains(x)) for x in outside] == [False] * len(outside)


def test_spaces_are_values() -> None:
    assert Box(0, 1, (2,)) == Box(0, 1, (2,), np.float32)
    assert Box(0, 1, (2,)) != Box(0, 2, (2,))
    assert len({Discrete(2), Discrete(2), Discrete(3)}) == 2
    assert str(Discrete(2)) == "Discrete(n=2, dtype=dtype('int32'))"
