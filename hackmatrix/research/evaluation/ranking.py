"""Ranks the agents of one run by mean return."""

from collections.abc import Sequence
from math import inf, isfinite, isnan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hackmatrix.agents.networks.policy import Policy
from hackmatrix.agents.roster.batch_players import network_player
from hackmatrix.learning.reporting.metrics import Interval
from hackmatrix.research.evaluation.games import EvaluationGames
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.report import Report
from hackmatrix.research.evaluation.statistics import Estimate, estimate
from hackmatrix.research.evaluation.text_table import align_columns


def reports_on(
    policies: Sequence[Policy], limits: Limits, *, greedy: bool, env_name: str | None = None
) -> list[Report]:
    """Evaluates policies of one network and environment on the same games; `env_name` by the user.

    Raises:
        UserError: their environment can't be made, or they do not fit it.
    """
    env, network = policies[0].make(env_name)
    player = network_player("", network, None, greedy=greedy or policies[0].greedy)
    games = EvaluationGames(env, player, limits)
    return [games.report(policy.params) for policy in policies]


class RankedAgent(NamedTuple):
    """An agent of a run: its seed, the file of its params, and its evaluation."""

    seed: int
    path: Path  # file of its params
    report: Report


class Ranking:
    """Agents sorted by mean return, the best first, NaN last; ties are sorted by seed."""

    def __init__(self, agents: Sequence[RankedAgent]) -> None:
        self.agents = sorted(agents, key=_rank)

    def problem(self) -> str | None:
        """The reason why a mean is meaningless, on one line; None if there is none."""
        return next(filter(None, (agent.report.problem() for agent in self.agents)), None)

    def as_dict(self) -> dict[str, Any]:
        """The output of `--json`: means over the agents with intervals, and each agent's report."""
        first = self.agents[0].report
        result: dict[str, Any] = {"episodes": first.episodes}
        for place, column in enumerate(first.columns):
            interval = self._over_agents(place)
            result[column.key] = interval.mean
            result[column.interval_key] = [*interval[1:]] if len(self.agents) > 1 else None
        agents = [{"seed": a.seed, "agent": str(a.path), **a.report.as_dict()} for a in self.agents]
        return result | {"agents": agents}

    def table(self) -> str:
        """A text table with a line for each agent and one for the mean over all."""
        columns = self.agents[0].report.columns
        lines = [["rank", "seed", *(column.title for column in columns)]]
        for rank, agent in enumerate(self.agents):
            lines.append([str(rank + 1), str(agent.seed), *map(str, agent.report.estimates)])
        lines.append(["all", "", *(_text(self._over_agents(i)) for i in range(len(columns)))])
        return f"{align_columns(lines)}\nbest  {self.agents[0].path}"

    def _over_agents(self, index: int) -> Interval:
        """The mean of a column over the agents, with its interval.

        No mean of games is outside of what single games gave. The interval of a rate is at least
        as wide as the games alone leave open: agents that all win nothing are no proof that none
        ever wins.
        """
        values = np.concatenate([agent.report.columns[index].values for agent in self.agents])
        is_rate = values.dtype == bool
        possible = (0.0, 1.0) if is_rate else (float(values.min()), float(values.max()))
        means = [agent.report.estimates[index].mean for agent in self.agents]
        interval = Interval.of(means, possible)
        if not is_rate:
            return interval
        _, low, high = estimate(values)
        return interval._replace(low=min(low, interval.low), high=max(high, interval.high))


def _rank(agent: RankedAgent) -> tuple[float, int]:
    score = agent.report.means()["mean_return"]
    return inf if isnan(score) else -score, agent.seed


def _text(interval: Interval) -> str:
    return str(Estimate(*interval)) if isfinite(interval.high) else f"{interval.mean:.3f}"
