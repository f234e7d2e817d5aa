"""Agents of one run side by side, the best first."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hackmatrix.evaluation.report import Report
from hackmatrix.evaluation.statistics import Estimate
from hackmatrix.training.rows import Interval

_KEYS = {  # in JSON, as those of a report on a single agent
    "return": ("mean_return", "mean_return_ci"),
    "stages cleared": ("mean_stages_cleared", "stages_cleared_ci"),
    "win rate": ("win_rate", "win_rate_ci"),
    "length": ("mean_length", "length_ci"),
}


class Agent(NamedTuple):
    """One of them."""

    seed: int
    path: Path  # of its params
    report: Report


class Ranking:
    """Agents by mean return; among equals the one with the lower seed comes first."""

    def __init__(self, agents: Sequence[Agent]) -> None:
        self.agents = sorted(agents, key=lambda agent: (-agent.report.returns.mean, agent.seed))

    def as_dict(self) -> dict[str, Any]:
        """What `--json` prints: means over the agents with 95 % intervals, and each agent."""
        result: dict[str, Any] = {"episodes": self.agents[0].report.episodes}
        for title, estimates in _columns([agent.report for agent in self.agents]).items():
            mean, interval = _KEYS[title]
            low_to_high = Interval.of([estimate.mean for estimate in estimates])
            result[mean] = low_to_high.mean
            result[interval] = [*low_to_high[1:]] if len(estimates) > 1 else None
        agents = [{"seed": a.seed, "agent": str(a.path), **a.report.as_dict()} for a in self.agents]
        return result | {"agents": agents}

    def table(self) -> str:
        """A line for each agent, and one for all of them."""
        columns = _columns([agent.report for agent in self.agents])
        lines = [["rank", "seed", *columns]]
        for rank, agent in enumerate(self.agents):
            shown = [str(estimates[rank]) for estimates in columns.values()]
            lines.append([str(rank + 1), str(agent.seed), *shown])
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
