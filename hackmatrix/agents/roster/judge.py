"""What a position is worth, in numbers that everybody reads: the odds of the packaged agent.

The value of its network is a discounted sum of shaped rewards. The chance of winning was fitted to
it by logistic regression, stage by stage, on 10,000 games that the agent played; no other agent's
value goes through that fit, so this one judges the games of all.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from hackmatrix.agents import shipped
from hackmatrix.agents.roster.opinion import Agent
from hackmatrix.game.rules.observation import number_of
from hackmatrix.game.rules.stages import LAST_STAGE

if TYPE_CHECKING:
    from hackmatrix.agents.roster.games_together import PlayTogether


class Odds(NamedTuple):
    """How the packaged agent's games end that go on from a position."""

    win: float  # the share that is won
    stages: float  # stages cleared, on average

    @classmethod
    def of_end(cls, stage: int, *, won: bool) -> "Odds":
        """Of a game that is over."""
        return cls(1.0, LAST_STAGE) if won else cls(0.0, stage - 1)


Fit = Mapping[str, Sequence[Sequence[float]]]  # `win` and `stages`: a row of numbers a stage


@dataclass(frozen=True)
class Judge:
    """The packaged agent, with the fit of its value to the odds."""

    agent: Agent
    fit: Fit
    play_together: "PlayTogether | None" = None  # many games at once, where that is possible

    def odds(self, record: bytes) -> Odds:
        """The odds of a position of a game that goes on, from its compact record."""
        policy = self.agent.policy
        assert callable(policy)
        _, value = policy(record, ())
        assert value is not None
        return odds_of(value, number_of(record, "stage"), self.fit)


def read_fit() -> Fit:
    """The fit of the packaged agent."""
    fit: Fit = json.loads(shipped.WIN_CHANCE.read_text())
    return fit


@cache
def judge() -> Judge:
    """The judge, loaded once; it needs NumPy."""
    from hackmatrix.agents.roster.position_policies import load, network_of
    from hackmatrix.game.native import available

    together = None
    if available:
        from hackmatrix.agents.roster.games_together import plays_together

        together = plays_together(network_of(shipped.PARAMS)[0])
    return Judge(Agent("shipped", load(shipped.PARAMS)), read_fit(), together)


def odds_of(value: float, stage: int, fit: Fit) -> Odds:
    """The odds of a position of this value and stage."""
    offset, slope, bend, knot = fit["win"][stage - 1]
    logit = offset + slope * value + bend * max(knot - value, 0.0)
    win = 1 / (1 + math.exp(-max(-30.0, min(logit, 30.0))))
    lost, gained = fit["stages"][stage - 1]
    return Odds(win, max(stage - 1.0, min(lost + gained * win, float(LAST_STAGE))))
