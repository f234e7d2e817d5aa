"""Measures speed by number of games, and the cost of a step by number of enemies on the board."""

import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.command import RESULTS, run_command
from hackmatrix.core import machine
from hackmatrix.core.devices.mesh import use_all_cores
from hackmatrix.core.imports import need
from hackmatrix.core.options import option
from hackmatrix.research.bench.env import EnvBench, Speed, crowded_position
from hackmatrix.research.bench.options import NUM_ENVS, Options
from hackmatrix.research.figures import COLOURS, label, panels, svg

_FEWEST = 64  # games
_STAGE = 5  # stage of the positions with enemies
_POSITIONS = 64  # number of positions for each number of enemies
_STEPS = 2**18  # steps of all games together in a repeat, within the next two bounds
_LEAST_STEPS, _MOST_STEPS = 8, 1_024  # bounds of the steps of each game in a repeat
_REPLAYED = 4_096  # approximate number of replayed steps of each measurement


@dataclass(frozen=True)
class ScalingOptions(Options):
    """The options of the command."""

    output: Path = option(RESULTS, "folder for the figures and the plots")
    repeats: int = option(5, "timed repeats of each, in turn", at_least=1)
    max_envs: int = option(65_536, "the most games in parallel", at_least=64, at_most=2**24)
    max_enemies: int = option(16, "the most enemies on a board", at_least=0, at_most=32)
    num_envs: int = option(NUM_ENVS, "games in parallel where enemies are counted", at_least=1)


class Scaling(NamedTuple):
    """Speed by number of games and by number of enemies."""

    games: list[Speed]  # by number of games
    enemies: list[Speed]  # by number of enemies at the start
    started_with: list[int]  # those numbers
    output: Path

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        return {
            "games": [_point(speed, num_envs=speed.num_envs) for speed in self.games],
            "enemies": [
                _point(
                    speed,
                    enemies=number,
                    mean_enemies=speed.as_dict()["mean_enemies"],
                    microseconds_per_step=1e6 / statistics.median(speed.rates),
                )
                for number, speed in zip(self.started_with, self.enemies, strict=True)
            ],
            **machine.machine(),
            "versions": machine.versions(),
        }

    def text(self) -> str:
        """The figures as text."""
        figures = self.as_dict()
        lines = [f"{'games':>8} {'steps/s':>12} {'min':>12} {'max':>12}"]
        lines += [
            f"{it['num_envs']:>8,} {it['median']:>12,.0f} {it['min']:>12,.0f} {it['max']:>12,.0f}"
            for it in figures["games"]
        ]
        lines += ["", f"{'enemies':>8} {'on average':>12} {'us a step':>12} {'steps/s':>12}"]
        lines += [
            f"{it['enemies']:>8} {it['mean_enemies']:>12.2f} {it['microseconds_per_step']:>12.3f} "
            f"{it['median']:>12,.0f}"
            for it in figures["enemies"]
        ]
        about = machine.line(figures, figures["versions"])
        return "\n".join([*lines, "", about, f"written to {self.output}"])


def _point(speed: Speed, **facts: Any) -> dict[str, Any]:
    rates = speed.rates
    return facts | {"median": statistics.median(rates), "min": min(rates), "max": max(rates)}


def measure(options: ScalingOptions) -> Scaling:
    """Measures both; writes `scaling.json` and two plots."""
    need("matplotlib")
    use_all_cores()
    sizes = [_FEWEST << i for i in range((options.max_envs // _FEWEST).bit_length())]
    numbers = [n for n in (0, 1, 2, 4, 6, 8, 12, 16, 24, 32) if n <= options.max_enemies]
    by_games = [EnvBench(size, _steps(size)) for size in sizes]
    by_enemies = [_crowded(number, options.num_envs) for number in numbers]
    result = Scaling(
        interleaved(by_games, options.repeats),
        interleaved(by_enemies, options.repeats),
        numbers,
        options.output,
    )
    _write(result)
    return result


def _steps(games: int) -> int:
    return min(max(_STEPS // games, _LEAST_STEPS), _MOST_STEPS)


def _crowded(enemies: int, games: int) -> EnvBench:
    positions = [crowded_position(number, _STAGE, enemies) for number in range(_POSITIONS)]
    return EnvBench(games, _steps(games), positions=positions)


def interleaved(benches: Sequence[EnvBench], repeats: int) -> list[Speed]:
    """Runs the benchmarks in turn, so that anything that slows the machine affects all of them."""
    for _ in range(repeats):
        for bench in benches:
            bench.repeat()
    steps = [bench.num_steps * (repeats + 1) for bench in benches]
    return [
        bench.result(games=max(1, _REPLAYED // each))
        for bench, each in zip(benches, steps, strict=True)
    ]


def _write(result: Scaling) -> None:
    figures = result.as_dict()
    result.output.mkdir(parents=True, exist_ok=True)
    (result.output / "scaling.json").write_text(json.dumps(figures, indent=1) + "\n")
    about = f"{figures['processor']}, {figures['cores']} cores"
    games, enemies = figures["games"], figures["enemies"]
    _draw(
        result.output / "scaling_games.svg",
        [it["num_envs"] for it in games],
        [it["median"] for it in games],
        [(it["min"], it["max"]) for it in games],
        title=f"HackMatrix, random play, {about}",
        x_label="games at once",
        y_label="steps per second",
        log_x=True,
    )
    _draw(
        result.output / "scaling_enemies.svg",
        [it["mean_enemies"] for it in enemies],
        [it["microseconds_per_step"] for it in enemies],
        [_micros(it["max"], it["min"]) for it in enemies],
        title=f"HackMatrix, {result.enemies[0].num_envs:,} games, {about}",
        x_label="enemies on a board",
        y_label="microseconds per step of a game",
    )


def _draw(
    path: Path,
    xs: Sequence[float],
    ys: Sequence[float],
    spread: Sequence[tuple[float, float]],
    *,
    title: str,
    x_label: str,
    y_label: str,
    log_x: bool = False,
) -> None:
    """A line of medians with the y axis from 0, and error bars from minimum to maximum."""
    figure, (axes,) = panels(title)
    errors = [[y - low for y, (low, _) in zip(ys, spread, strict=True)]]
    errors += [[high - y for y, (_, high) in zip(ys, spread, strict=True)]]
    axes.errorbar(xs, ys, yerr=errors, color=COLOURS[0], marker="o", markersize=4, capsize=2)
    if log_x:
        axes.set_xscale("log", base=2)
        axes.set_xticks(xs, [f"{x:,.0f}" for x in xs], rotation=45, ha="right")
    axes.set_ylim(bottom=0)
    label(axes, "", x_label, y_label)
    path.write_text(svg(figure))


def _micros(*rates: float) -> Any:
    return tuple(1e6 / rate for rate in rates)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "scaling",
        measure,
        ScalingOptions,
        argv,
        purpose="Measures speed by number of games, and the cost of a step by number of enemies.",
        example="--output plots\n      writes plots/scaling.json and two plots",
    )


if __name__ == "__main__":
    sys.exit(main())
