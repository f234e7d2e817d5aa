"""Win rate against simulations, beside searches of a scripted player."""

import json
import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.command import RESULTS, run_command
from hackmatrix.agents.roster.names import A_NETWORK, SHIPPED, resolve
from hackmatrix.core import machine
from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
from hackmatrix.core.errors import UserError
from hackmatrix.core.imports import need
from hackmatrix.core.options import option
from hackmatrix.research.bench.options import Options
from hackmatrix.research.evaluation.agents import agent_player
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.statistics import estimate
from hackmatrix.research.figures import COLOURS, label, panels, svg

# Wins of a search with a scripted player's prior and a fitted value, by simulations: of 10,000,
# 300, 150, 100 and 40 games.
SCRIPTED = {0: 0.645, 30: 0.89, 100: 0.96, 200: 0.96, 400: 1.0}


@dataclass(frozen=True)
class SearchOptions(Options):
    """The command's options."""

    agent: str = option(SHIPPED, A_NETWORK)
    simulations: str = option("", "numbers of simulations, with commas; 0 is the network alone")
    episodes: int = option(300, "games for each", at_least=1)
    seed: int = option(3, "seed of the games", at_least=0)
    max_steps: int = option(2_000, "actions after which a game is truncated", at_least=1)
    out: Path = option(RESULTS, "folder of search.json, which keeps the others, and search.svg")


class Rates(NamedTuple):
    """Wins by simulations."""

    rates: dict[str, Any]
    plot: Path

    def as_dict(self) -> dict[str, Any]:
        """The figures."""
        return self.rates

    def text(self) -> str:
        """A line for each."""
        lines = [
            f"{number:>4} simulations: {rate['wins']:.1%} [{rate['low']:.1%}, {rate['high']:.1%}] "
            f"of {rate['episodes']} games, {rate['seconds']:,.0f} s"
            for number, rate in self.rates.items()
        ]
        return "\n".join([*lines, f"drawn in {self.plot}"])


def measure(options: SearchOptions) -> Rates:
    """Plays the games, and draws all that is known."""
    need("matplotlib")
    enable_compilation_cache()
    options.out.mkdir(parents=True, exist_ok=True)
    kept = options.out / "search.json"
    rates = json.loads(kept.read_text()) if kept.exists() else {}
    for number in _numbers(options.simulations):
        rates[str(number)] = _played(options, number)
        rates = dict(sorted(rates.items(), key=lambda item: int(item[0])))
        kept.write_text(json.dumps(rates, indent=1) + "\n")
    plot = options.out / "search.svg"
    ours = [
        (int(number), rate["wins"], rate["low"], rate["high"]) for number, rate in rates.items()
    ]
    theirs = [(number, wins, wins, wins) for number, wins in SCRIPTED.items()]
    _draw(plot, {"network": ours, "scripted player": theirs})
    return Rates(rates, plot)


def _draw(path: Path, lines: Mapping[str, Sequence[tuple[float, float, float, float]]]) -> None:
    """A line for each name, of points (x, y, low, high), over a logarithmic axis that has 0."""
    figure, (axes,) = panels("Games won with a search before each action")
    for (name, points), color in zip(lines.items(), COLOURS, strict=False):
        xs, ys, lows, highs = np.transpose(points)
        errors = [ys - lows, highs - ys]
        axes.errorbar(
            xs, ys, yerr=errors, color=color, marker="o", markersize=4, capsize=2, label=name
        )
    ticks = sorted({x for points in lines.values() for x, *_ in points})
    axes.set_xscale("symlog", base=2, linthresh=4)
    # A label would cover the next one if that is nearer than a third.
    shown = [f"{x:,.0f}" if 3 * y > 4 * x else "" for x, y in pairwise([*ticks, math.inf])]
    axes.set_xticks(ticks, shown)
    label(axes, "", "simulations", "wins")
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.legend(loc="lower right", frameon=False)
    path.write_text(svg(figure))


def _numbers(listed: str) -> list[int]:
    numbers = [number.strip() for number in listed.split(",") if number.strip()]
    if not all(number.isdecimal() for number in numbers):
        raise UserError(f"--simulations must be numbers with commas, got {listed!r}")
    return list(map(int, numbers))


def _played(options: SearchOptions, number: int) -> dict[str, Any]:
    limits = Limits(options.episodes, options.seed, options.max_steps)
    agent = resolve(options.agent, number or None)
    play = agent_player(agent, "HackMatrix", limits, greedy=False)
    began = time.monotonic()
    report = play(())
    seconds = time.monotonic() - began
    (won,) = (column.values for column in report.columns if column.key == "win_rate")
    wins, low, high = estimate(won)
    return {
        "wins": wins,
        "low": low,
        "high": high,
        "episodes": options.episodes,
        "seed": options.seed,
        "seconds": round(seconds, 1),
        "mean_length": report.means()["mean_length"],
        "cut_off": report.truncated,
        **machine.machine(),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "search",
        measure,
        SearchOptions,
        argv,
        purpose="Measures wins against simulations, and draws them.",
        example="--simulations 0,8,32,128 --episodes 300",
    )


if __name__ == "__main__":
    sys.exit(main())
