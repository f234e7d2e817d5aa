"""Agents of one run side by side, the best first."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hackmatrix.agents import agent
from hackmatrix.agents.policy import Policy
from hackmatrix.evaluation.games import Games, Limits
from hackmatrix.evaluation.players import policy_player
from hackmatrix.evaluation.report import Report, summarise
from hackmatrix.evaluation.statistics import Estimate
from hackmatrix.reporting.rows import Interval

_KEYS = {  # in JSON, as those of a report on a single agent
    "return": ("mean_return", "mean_return_ci"),
    "stages cleared": ("mean_stages_cleared", "stages_cleared_ci"),
    "win rate": ("win_rate", "win_rate_ci"),
    "length": ("mean_length", "length_ci"),
}


def reports_on(policies: Sequence[Policy], limits: Limits, *, greedy: bool) -> list[Report]:
    """Reports on policies of one network and environment, which all play the same games.

    Raises:
        UserError: their environment can't be made, or they do not fit it.
    """
    env = policies[0].make_environment()
    player = policy_player("", agent.Agent(env, policies[0].network), None, greedy=greedy)
    games = Games(env, player.choose, limits)
    return [summarise(games.play(policy.params)) for policy in policies]


class Agent(NamedTuple):
    """One of them."""

    seed: int
    path: Path  # of its params
    report: Report


class Ranking:
    """Agents by mean return; among equals the one with the lower seed comes first."""

    def __init__(self, agents: Sequence[Agent]) -> None:
        self.agents = sorted(agents, key=lambda a: (-a.report.returns.mean, a.seed))

    def as_dict(self) -> dict[str, Any]:
        """What `--json` prints: means over the agents with 95 % intervals, and each agent."""
        result: dict[str, Any] = {"episodes": self.agents[0].report.episodes}
        for title, estimates in _columns([a.report for a in self.agents]).items():
            mean, interval = _KEYS[title]
            low_to_high = Interval.of([estimate.mean for estimate in estimates])
            result[mean] = low_to_high.mean
            result[interval] = [*low_to_high[1:]] if len(estimates) > 1 else None
        agents = [{"seed": a.seed, "agent": str(a.path), **a.report.as_dict()} for a in self.agents]
        return result | {"agents": agents}

    def table(self) -> str:
        """A line for each agent, and one for all of them."""
        columns = _columns([a.report for a in self.agents])
        lines = [["rank", "seed", *columns]]
        for rank, ranked in enumerate(self.agents):
            shown = [str(estimates[rank]) for estimates in columns.values()]
            lines.append([str(rank + 1), str(ranked.seed), *shown])
        lines.append(["all", "", *(_of_all(estimates) for estimates in columns.values())])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rows = [
            "  ".join(f"{text:<{width}}" for text, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join([*rows, f"best  {self.agents[0].path}"])


def _columns(reports: Sequence[Report]) -> Mapping[str, list[Estimate]]:
    """What agents are compared by; without what the environment does not tell."""
    columns: dict[str, list[Estimate | None]] = {
        "return": [report.returns for report in reports],
        "stages cleared": [report.stages_cleared for report in reports],
        "win rate": [report.win_rate for report in reports],
        "length": [report.length for report in reports],
    }
    return {
        name: [estimate for estimate in estimates if estimate is not None]
        for name, estimates in columns.items()
        if None not in estimates
    }


def _of_all(estimates: Sequence[Estimate]) -> str:
    interval = Interval.of([estimate.mean for estimate in estimates])
    return str(Estimate(*interval)) if len(estimates) > 1 else f"{interval.mean:.3f}"
