"""Tests whether the recorded random outcomes of a file follow the rules' probabilities.

That a recorded outcome is among the engine's options says nothing of options that are never drawn:
an engine that offers too much would pass every step. So outcomes are counted by kind and compared
with the counts that the options lead one to expect.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

SURELY_WRONG = 1e-12  # p-value below which a recording is rejected
COVER = "spawn_cell_cover"  # what stands between a spawn and the player
# Under these rules any kind of cover appears once there are enough recordings, so one that is
# expected this often and never drawn (a chance of 1 in 1,800) does not exist.
NEVER_DRAWN = 7.5
_FEW = 5  # kinds that are expected less often are pooled


class Draw(NamedTuple):
    """One recorded random outcome: its kind and the kinds of all options."""

    site: str
    outcome: Hashable
    options: tuple[Hashable, ...]


@dataclass
class Outcomes:
    """The random outcomes at one place of the rules."""

    draws: int = 0
    drawn: Counter[Hashable] = field(default_factory=Counter)
    expected: defaultdict[Hashable, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, draw: Draw) -> None:
        """Counts an outcome."""
        self.draws += 1
        self.drawn[draw.outcome] += 1
        for option in draw.options:
            self.expected[option] += 1 / len(draw.options)

    def p_value(self) -> float:
        """Probability of outcomes this far from the expected counts or farther (Pearson's chi2)."""
        kinds = [(self.drawn[kind], often) for kind, often in self.expected.items()]
        groups = [group for group in kinds if group[1] >= _FEW]
        rare = [group for group in kinds if group[1] < _FEW]
        rest = sum(drawn for drawn, _ in rare), sum(often for _, often in rare)
        if rest[1] >= _FEW:
            groups.append(rest)
        square = sum((drawn - often) ** 2 / often for drawn, often in groups)
        return chi_square_tail(square, len(groups) - 1)

    def never_drawn(self) -> list[Hashable]:
        """The kinds that were expected often but never drawn."""
        kinds = self.expected.items()
        return [kind for kind, often in kinds if often > NEVER_DRAWN and not self.drawn[kind]]


class Chance:
    """All recorded random outcomes of a file."""

    def __init__(self) -> None:
        self.outcomes_by_site: defaultdict[str, Outcomes] = defaultdict(Outcomes)

    def add(self, draws: Iterable[Draw]) -> None:
        """Counts the outcomes of a step."""
        for draw in draws:
            self.outcomes_by_site[draw.site].add(draw)

    def faults(self) -> list[str]:
        """Where the outcomes contradict the rules, one sentence each; empty if nowhere."""
        faults = []
        for kind in (
            self.outcomes_by_site[COVER].never_drawn() if COVER in self.outcomes_by_site else ()
        ):
            often = self.outcomes_by_site[COVER].expected[kind]
            faults.append(f"{COVER}: {kind} expected {often:.1f} times, never recorded")
        for place, outcomes in self.outcomes_by_site.items():
            p = outcomes.p_value()
            if p < SURELY_WRONG:
                faults.append(f"{place}: {outcomes.draws:,} outcomes as unlikely as {p:.0e}")
        return faults

    def to_json(self) -> dict[str, Any]:
        """Number of draws and p-value by place."""
        return {
            place: {"draws": outcomes.draws, "p": outcomes.p_value()}
            for place, outcomes in sorted(self.outcomes_by_site.items())
        }


def chi_square_tail(square: float, freedom: int) -> float:
    """Probability of a larger chi-square, by the approximation of Wilson and Hilferty."""
    if freedom < 1:
        return 1.0
    spread = 2 / (9 * freedom)
    deviation = ((square / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    return math.erfc(deviation / math.sqrt(2)) / 2
