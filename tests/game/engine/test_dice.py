"""The hash behind all chance: it is the published one, and its words are as good as independent."""

import math
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from scipy import stats

from hackmatrix.game.engine.dice import Dice, draw, to_range
from hackmatrix.game.rules.chance import Site

LIKELY = 1e-4  # streams are fixed, so a test that passes once passes always

Words = tuple[int, int, int, int, int]


def pcg4d(v: Sequence[int]) -> list[int]:
    """Jarzynski and Olano's pcg4d, written as in the paper: vectors, all words modulo 2^32."""

    def stir(v: list[int]) -> list[int]:
        for to, a, b in ((0, 1, 3), (1, 2, 0), (2, 0, 1), (3, 1, 2)):
            v[to] = (v[to] + v[a] * v[b]) % 2**32
        return v

    scrambled = stir([(word * 1664525 + 1013904223) % 2**32 for word in v])
    return stir([word ^ (word // 2**16) for word in scrambled])


@pytest.mark.parametrize(
    "words",
    [
        (0, 0, 0, 0, 0),
        (1, 0, 0, 0, 0),
        (7, 3, 250, Site.ENEMY_ORDER, 33),
        (2**31, 2**32 - 1, 12_345, Site.WARP_TARGET, 0),
        (2**32 - 1, 2**32 - 1, 2**32 - 1, 2**16 - 1, 2**16 - 1),
    ],
)
def test_it_is_the_published_hash(words: Words) -> None:
    stream, episode, clock, site, index = words
    assert draw(*words) == pcg4d((stream, episode, clock, site * 65_536 + index))[3]


def test_known_answers() -> None:
    """Of recorded games: these never change."""
    assert draw(0, 0, 0, 0, 0) == 0xD32548EA
    assert draw(1, 2, 3, Site.SPAWN_CELL, 4) == 0x26974625
    assert draw(2**31, 5, 1_000, Site.BLOCK_CELL, 1_599) == 0x3F990314
    assert draw(2**32 - 1, 2**32 - 1, 2**32 - 1, 2**16 - 1, 2**16 - 1) == 0xA1BBA208


def test_a_bounded_number_is_the_high_word_of_the_product() -> None:
    assert [to_range(word, 3) for word in (0, 0x55555555, 0x55555556, 0xAAAAAAAB, 2**32 - 1)] == [
        *(0, 0, 1, 2, 2)
    ]


def test_dice_show_the_draw_of_their_clock() -> None:
    dice = Dice(stream=5, episode=6, clock=7)
    expected = "abc"[to_range(draw(5, 6, 7, Site.POLY_TYPE, 8), 3)]
    assert dice.choose(Site.POLY_TYPE, "abc", 8) == expected


# --- one word ------------------------------------------------------------------------------------

# How the words of a game follow each other: what counts up while all else stays.
SEQUENCES: dict[str, Callable[[int], Words]] = {
    "streams": lambda i: (i, 0, 0, Site.START_CORNER, 0),
    "episodes": lambda i: (3, i, 0, Site.START_CORNER, 0),
    "clocks": lambda i: (3, 1, i, Site.SPAWN_CELL, 0),
    "sites": lambda i: (i // 16, 1, 9, i % 16, 0),
    "indices": lambda i: (3, 1, 9, Site.BLOCK_CELL, i),
    "evaluation streams": lambda i: (2**31 + i, 0, 1, Site.ENEMY_ORDER, 0),
}
LENGTH = 16_384


@pytest.mark.thorough
@pytest.mark.parametrize("name", SEQUENCES)
def test_words_are_uniform(name: str) -> None:
    words = [draw(*SEQUENCES[name](i)) for i in range(LENGTH)]
    for bit in range(32):
        ones = sum(word >> bit & 1 for word in words)
        assert stats.binomtest(ones, LENGTH).pvalue > LIKELY, f"bit {bit}"
    for n in (2, 3, 7, 36):
        counts = Counter(to_range(word, n) for word in words)
        assert stats.chisquare([counts[k] for k in range(n)]).pvalue > LIKELY, f"of {n}"


# --- two words -----------------------------------------------------------------------------------

# The bits that decide between some dozen options. Further down the hash is weaker: a stream and the
# one whose top bit differs share their lowest 15 bits, of which `to_range` sees next to nothing.
TOP_BITS = 12
NEIGHBOURS: dict[str, Words] = {
    "next stream": (1, 0, 0, 0, 0),
    "stream of the evaluation": (2**31, 0, 0, 0, 0),
    "next episode": (0, 1, 0, 0, 0),
    "next clock": (0, 0, 1, 0, 0),
    "next site": (0, 0, 0, 1, 0),
    "next index": (0, 0, 0, 0, 1),
    "second sub-step": (0, 0, 0, 0, 32),
    "next try": (0, 0, 0, 0, 16),
    "next stream, episode before": (1, -1, 0, 0, 0),
    "next episode, clock before": (0, 1, -1, 0, 0),
    "next clock, index before": (0, 0, 1, 0, -1),
}


def pairs(step: Words) -> list[tuple[int, int]]:
    """Words of many places in games, each with its neighbour."""
    found = []
    for i in range(LENGTH):
        words = (i * 2_654_435_761 % 2**31, 1 + i % 7, 1 + i % 50, i % 16, 1 + i % 9)
        neighbour = tuple(a + b for a, b in zip(words, step, strict=True))
        found.append((draw(*words), draw(*neighbour)))
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("name", NEIGHBOURS)
def test_neighbours_are_not_correlated(name: str) -> None:
    found = pairs(NEIGHBOURS[name])
    for n in (2, 3, 8, 36):
        table = Counter((to_range(a, n), to_range(b, n)) for a, b in found)
        fit = stats.chisquare([table[a, b] for a in range(n) for b in range(n)])
        assert fit.pvalue > LIKELY, f"of {n}"
    for bit in range(32 - TOP_BITS, 32):
        differ = sum((a ^ b) >> bit & 1 for a, b in found)
        assert stats.binomtest(differ, LENGTH).pvalue > LIKELY, f"bit {bit}"


def test_swapped_words_are_other_games() -> None:
    same = [i for i in range(1, 2_000) if draw(i, 0, 1, 0, 0) == draw(0, i, 1, 0, 0)]
    assert not same


def test_games_do_not_share_their_words() -> None:
    """Of 2^16 words some 0.5 pairs meet by chance."""
    words = Counter(
        draw(stream, episode, 1, 0, 0) for stream in range(256) for episode in range(256)
    )
    meetings = sum(math.comb(count, 2) for count in words.values())
    assert meetings <= 5
