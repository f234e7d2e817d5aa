"""Whether chance fell, over all games of a file, as the rules say.

That a recorded outcome is among the engine's options says nothing of the options that are never
drawn: an engine that offers too much would pass every step. So outcomes are counted by kinds and
compared with what the options lead one to expect.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

SURELY_WRONG = 1e-12  # recordings that follow the rules are never so unlikely
COVER = "spawn_cell_cover"  # what stands between a spawn and the player
# Under these rules there is no cover that is seldom met but for want of recordings, so one that is
# expected so often and never met (a chance of 1 in 1,800) is none.
NEVER_DRAWN = 7.5
_FEW = 5  # kinds that are expected less often are counted together


class Draw(NamedTuple):
    """One recorded outcome of chance: its kind and those of all options."""

    place: str
    kind: Hashable
    options: tuple[Hashable, ...]


@dataclass
class Outcomes:
    """The outcomes at one place of the rules."""

    draws: int = 0
    drawn: Counter[Hashable] = field(default_factory=Counter)
    expected: defaultdict[Hashable, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, draw: Draw) -> None:
        """Count an outcome."""
        self.draws += 1
        self.drawn[draw.kind] += 1
        for option in draw.options:
            self.expected[option] += 1 / len(draw.options)

    def p_value(self) -> float:
        """How likely outcomes at least so far from the expected ones are (Pearson's chi-square)."""
        kinds = [(self.drawn[kind], often) for kind, often in self.expected.items()]
        groups = [group for group in kinds if group[1] >= _FEW]
        rare = [group for group in kinds if group[1] < _FEW]
        rest = sum(drawn for drawn, _ in rare), sum(often for _, often in rare)
        if rest[1] >= _FEW:
            groups.append(rest)
        square = sum((drawn - often) ** 2 / often for drawn, often in groups)
        return chi_square_tail(square, len(groups) - 1)

    def never_drawn(self) -> list[Hashable]:
        """The kinds that should have come up and never did."""
        kinds = self.expected.items()
        return [kind for kind, often in kinds if often > NEVER_DRAWN and not self.drawn[kind]]


class Chance:
    """All recorded outcomes of chance of a file."""

    def __init__(self) -> None:
        self.places: defaultdict[str, Outcomes] = defaultdict(Outcomes)

    def add(self, draws: Iterable[Draw]) -> None:
        """Count the outcomes of a step."""
        for draw in draws:
            self.places[draw.place].add(draw)

    def faults(self) -> list[str]:
        """What chance cannot have done, in words; empty if all is as the rules say."""
        faults = []
        for kind in self.places[COVER].never_drawn() if COVER in self.places else ():
            often = self.places[COVER].expected[kind]
            faults.append(f"{COVER}: {kind} expected {often:.1f} times, never recorded")
        for place, outcomes in self.places.items():
            p = outcomes.p_value()
            if p < SURELY_WRONG:
                faults.append(f"{place}: {outcomes.draws:,} outcomes as unlikely as {p:.0e}")
        return faults

    def to_json(self) -> dict[str, Any]:
        """How often chance decided and how likely the outcomes are, by place."""
        return {
            place: {"draws": outcomes.draws, "p": outcomes.p_value()}
            for place, outcomes in sorted(self.places.items())
        }


def chi_square_tail(square: float, freedom: int) -> float:
    """The chance of a larger chi-square, by the approximation of Wilson and Hilferty."""
    if freedom < 1:
        return 1.0
    spread = 2 / (9 * freedom)
    deviation = ((square / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    return math.erfc(deviation / math.sqrt(2)) / 2
