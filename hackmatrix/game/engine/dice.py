"""Randomness: a pure function of the game's (stream, episode), the action count and the site."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from hackmatrix.game.rules.chance import MAX_WORD, Site

_T = TypeVar("_T")


def draw(stream: int, episode: int, clock: int, site: int, index: int) -> int:
    """One uniform uint32 for a random draw of a game.

    The last word of pcg4d (Jarzynski and Olano, "Hash Functions for GPU Rendering", JCGT 2020) of
    (stream, episode, clock, site * 65536 + index).

    Args:
        stream: uint32, the game's stream.
        episode: uint32, the number of the game in its stream.
        clock: uint32, number of actions taken, including this one.
        site: the kind of draw, a `Site`.
        index: 0..65535, counts the draws of this site.
    """
    words = (stream, episode, clock, site << 16 | index)
    mixed = _mix(*[(word * 1664525 + 1013904223) & MAX_WORD for word in words])
    return _mix(*[word ^ word >> 16 for word in mixed])[3]


def _mix(x: int, y: int, z: int, w: int) -> tuple[int, int, int, int]:
    x = (x + y * w) & MAX_WORD
    y = (y + z * x) & MAX_WORD
    z = (z + x * y) & MAX_WORD
    w = (w + y * z) & MAX_WORD
    return x, y, z, w


def to_range(word: int, n: int) -> int:
    """A number 0..n-1 from a uniform uint32: the high word of the 32 x 32 bit product."""
    return word * n >> 32


@dataclass(slots=True)
class Dice:
    """The dice of one game. Conformance replaces them by dice that return recorded outcomes."""

    stream: int
    episode: int
    clock: int = 0

    def choose(self, site: Site, options: Sequence[_T], index: int = 0) -> _T:
        """Draws one of the options, all equally likely.

        Args:
            site: the kind of draw.
            options: the possible outcomes, in the order that `Site` documents; never empty.
            index: counts the draws of this site, as `Site` documents.
        """
        word = draw(self.stream, self.episode, self.clock, site, index)
        return options[to_range(word, len(options))]
