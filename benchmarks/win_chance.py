"""Fits the packaged agent's chance of winning to its value, and measures it on other games."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import native_play
from benchmarks.command import RESULTS, run_command
from benchmarks.plots import line_plot, require_matplotlib
from hackmatrix.agents import shipped
from hackmatrix.core import machine
from hackmatrix.core.files import write_atomically
from hackmatrix.core.options import option
from hackmatrix.game.native import batch
from hackmatrix.game.rules.observation import number_of
from hackmatrix.game.rules.stages import LAST_STAGE
from hackmatrix.research.bench.options import Options

Array = np.ndarray[Any, Any]
_BINS = 20
_RARE = 0.1  # the share of the values below the bend
FIRST_FITTED, FIRST_MEASURED = 1_000_000_000, 1_500_000_000  # streams of no training run


@dataclass(frozen=True)
class WinChanceOptions(Options):
    """The command's options."""

    games: int = option(10_000, "games that the fit is made of", at_least=100)
    measured: int = option(2_000, "other games that it is measured on", at_least=100)
    out: Path = option(RESULTS, "folder of win_chance.json and win_chance.svg, the measurement")
    fit: Path = option(shipped.WIN_CHANCE, "file of the fit")


class Positions(NamedTuple):
    """Positions of games that the packaged agent played."""

    value: Array  # float64[P], by its network
    stage: Array  # int[P]
    won: Array  # bool[P], their games' ends
    cleared: Array  # int[P], stages cleared at their games' ends


class Measured(NamedTuple):
    """How good the chances are."""

    figures: dict[str, Any]
    plot: Path

    def as_dict(self) -> dict[str, Any]:
        """The figures."""
        return self.figures

    def text(self) -> str:
        """The figures in words, and the curve."""
        rows = [
            f"{said:8.1%} {found:8.1%} {count:9,}" for said, found, count in self.figures["curve"]
        ]
        return "\n".join([
            f"{self.figures['games']} other games, {self.figures['positions']:,} positions",
            f"mean distance from the diagonal {self.figures['calibration_error']:.3f}; Brier score "
            f"{self.figures['brier']:.4f}, {self.figures['brier_of_stage']:.4f} by the stage alone",
            f"stages cleared: off by {self.figures['stages_error']:.2f} on average",
            "    said      won positions", *rows, f"drawn in {self.plot}",
        ])  # fmt: skip


def measure(options: WinChanceOptions) -> Measured:
    """Plays, fits, plays other games, and measures."""
    require_matplotlib()
    fit = fit_of(play(FIRST_FITTED, options.games))
    write_atomically(options.fit, f"{json.dumps(fit)}\n".encode())
    positions = play(FIRST_MEASURED, options.measured)
    figures = {**figures_of(positions, fit), "games": options.measured, "fitted": options.games}
    figures |= {**machine.machine(), **machine.versions()}
    write_atomically(options.out / "win_chance.json", f"{json.dumps(figures, indent=1)}\n".encode())
    return Measured(figures, _draw(figures, options.out / "win_chance.svg"))


def play(first: int, games: int) -> Positions:
    """The positions of games of the packaged agent, of streams from `first` on."""
    found = list[tuple[Array, Array, Array]]()

    def look(running: Array, records: Array, values: Array) -> None:
        found.append((running, values, number_of(records, "stage")[running]))

    batched = batch.reset(np.arange(first, first + games), np.zeros(games))
    won, last = native_play.play(shipped.PARAMS, batched, first, look)
    number, value, stage = (np.concatenate(column) for column in zip(*found, strict=True))
    cleared = np.where(won, LAST_STAGE, last - 1)
    return Positions(value.astype(np.float64), stage, won[number], cleared[number])


def fit_of(positions: Positions) -> dict[str, list[list[float]]]:
    """For each stage, a logistic regression of the win, and a linear one of the stages cleared."""
    win, stages = [], []
    for stage in range(1, LAST_STAGE + 1):
        here = positions.stage == stage
        knot = float(np.quantile(positions.value[here], _RARE).round(4))
        inputs = _inputs(positions.value[here], knot)
        weights = _logistic(inputs, positions.won[here])
        win.append([*weights.round(4).tolist(), knot])
        inputs = np.stack([np.ones(here.sum()), _sigmoid(inputs @ weights)], axis=1)
        stages.append(np.linalg.lstsq(inputs, positions.cleared[here])[0].round(4).tolist())
    return {"win": win, "stages": stages}


def _inputs(value: Array, knot: Array | float) -> Array:
    """Of a line that bends where the values begin to be rare."""
    return np.stack([np.ones_like(value), value, np.maximum(knot - value, 0)], axis=1)


def _logistic(inputs: Array, labels: Array) -> Array:
    """Maximum likelihood, by Newton's method."""
    weights = np.zeros(inputs.shape[1])
    for _ in range(30):
        chance = _sigmoid(inputs @ weights)
        curvature = (inputs * (chance * (1 - chance))[:, None]).T @ inputs
        weights += np.linalg.solve(curvature, inputs.T @ (labels - chance))
    return weights


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def figures_of(positions: Positions, fit: dict[str, list[list[float]]]) -> dict[str, Any]:
    """How far what the fit says is from how the games ended."""
    weights = np.array(fit["win"])[positions.stage - 1]
    said = _sigmoid((_inputs(positions.value, weights[:, 3]) * weights[:, :3]).sum(1))
    lost, gained = np.array(fit["stages"])[positions.stage - 1].T
    stages = np.clip(lost + gained * said, positions.stage - 1, LAST_STAGE)
    bins = np.minimum((said * _BINS).astype(int), _BINS - 1)
    inside = [bins == number for number in range(_BINS) if (bins == number).any()]
    curve = [(said[here].mean(), positions.won[here].mean(), int(here.sum())) for here in inside]
    distance = sum(abs(one - other) * count for one, other, count in curve) / len(said)
    by_stage = np.array(
        [positions.won[positions.stage == s].mean() for s in range(1, LAST_STAGE + 1)]
    )
    return {
        "positions": len(said),
        "calibration_error": round(float(distance), 4),
        "brier": round(float(((said - positions.won) ** 2).mean()), 4),
        "brier_of_stage": round(
            float(((by_stage[positions.stage - 1] - positions.won) ** 2).mean()), 4
        ),
        "stages_error": round(float(abs(stages - positions.cleared).mean()), 3),
        "curve": [(round(float(a), 4), round(float(b), 4), count) for a, b, count in curve],
    }


def _draw(figures: dict[str, Any], path: Path) -> Path:
    said, found, _ = zip(*figures["curve"], strict=True)
    line_plot(
        path,
        said,
        found,
        [(share, share) for share in found],
        title="The packaged agent's chance of winning",
        x_label="chance that is shown",
        y_label="share of the games won",
    )
    return path


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "win_chance",
        measure,
        WinChanceOptions,
        argv,
        purpose="Fits the packaged agent's chance of winning to its value, as the page shows it.",
        example="--games 10000\n      fits it to more games",
    )


if __name__ == "__main__":
    sys.exit(main())
