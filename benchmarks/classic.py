"""Learning curves of classic control over many seeds, next to published results of PPO."""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.command import RESULTS, run_command, to_json
from hackmatrix.agents.networks.policy import load_policy
from hackmatrix.core import machine
from hackmatrix.core.errors import UserError
from hackmatrix.core.imports import need
from hackmatrix.core.options import option
from hackmatrix.core.yaml_file import CONFIGS
from hackmatrix.learning.reporting.alarms import RETURN
from hackmatrix.learning.reporting.console import Console
from hackmatrix.learning.reporting.metrics import AGENTS, HIGH, LOW, Interval
from hackmatrix.learning.run.loop import End, train
from hackmatrix.learning.settings.config import TrainConfig, TrainOptions
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.learning.settings.resolve import resolve
from hackmatrix.research.bench.options import Options
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.ranking import reports_on
from hackmatrix.research.figures import COLOURS, Picture, label, line, panels, svg
from hackmatrix.runs.metrics_file import read_metrics
from hackmatrix.runs.params import agent_folders

_CONFIGS = ("cartpole_best", "acrobot", "mountain_car")
_POINTS = 100  # number of points of a curve


@dataclass(frozen=True)
class ClassicOptions(Options):
    """The options of the command."""

    output: Path = option(RESULTS, "folder for the figures and the plot")
    num_seeds: int = option(10, "agents of each environment", at_least=2, at_most=1024)
    episodes: int = option(100, "games that each of them plays at the end", at_least=1)
    configs: Path = option(CONFIGS, f"folder of {', '.join(f'{name}.yaml' for name in _CONFIGS)}")


class Published(NamedTuple):
    """A published result: mean return and standard deviation after `steps` steps."""

    who: str
    mean: float
    deviation: float
    steps: int


# CleanRL: docs, page of PPO, `learning/algorithms/ppo.py`: returns in training, over seeds.
# RL Baselines3 Zoo: `benchmark.md`: returns of one agent, played deterministically, over games.
PUBLISHED = {
    "CartPole-v1": (
        Published("CleanRL", 492.40, 13.05, 500_000),
        Published("SB3 Zoo", 500.0, 0.0, 100_000),
    ),
    "Acrobot-v1": (
        Published("CleanRL", -89.93, 6.34, 500_000),
        Published("SB3 Zoo", -73.506, 18.201, 1_000_000),
    ),
    "MountainCar-v0": (
        Published("CleanRL", -200.0, 0.0, 500_000),
        Published("SB3 Zoo", -110.423, 19.473, 1_000_000),
    ),
}


class Curves(NamedTuple):
    """Learning curves by environment."""

    num_seeds: int
    episodes: int
    curves: dict[str, dict[str, Any]]  # see `curve`
    output: Path

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        published = {name: [each._asdict() for each in PUBLISHED[name]] for name in self.curves}
        return {
            "num_seeds": self.num_seeds,
            "episodes": self.episodes,
            "curves": self.curves,
            "published": published,
            **machine.machine(),
            "versions": machine.versions("gymnax"),
        }

    def text(self) -> str:
        """The figures as text."""
        lines = [
            f"{self.num_seeds} seeds; return of the last agents over {self.episodes} games each, "
            "sampled; mean over the seeds [95 %]:"
        ]
        for name, curve in self.curves.items():
            interval, scores = Interval(*curve["interval"]), curve["evaluated"]
            others = ", ".join(
                f"{each.who} {each.mean:g} ± {each.deviation:g} after {each.steps:,}"
                for each in PUBLISHED[name]
            )
            lines.append(
                f"{name:<15} {interval.mean:8.1f} [{interval.low:.1f}, {interval.high:.1f}], "
                f"worst seed {min(scores):.1f}, after {curve['total_timesteps']:,} steps; {others}"
            )
        facts = self.as_dict()
        about = machine.line(facts, facts["versions"])
        return "\n".join([*lines, about, f"written to {self.output}"])


def measure(options: ClassicOptions) -> Curves:
    """Trains and evaluates the agents; writes `classic.json` and `classic.svg`."""
    need("matplotlib")
    curves = {}
    for file in _CONFIGS:
        in_file = read_config(options.configs / f"{file}.yaml")
        settings, _ = resolve({"num_seeds": options.num_seeds}, in_file)
        print(f"{settings.environment.env} ...", file=sys.stderr, flush=True)
        curves[settings.environment.env] = curve(settings, options.episodes)
    result = Curves(options.num_seeds, options.episodes, curves, options.output)
    result.output.mkdir(parents=True, exist_ok=True)
    (result.output / "classic.json").write_text(to_json(result.as_dict()) + "\n")
    (result.output / "classic.svg").write_text(_draw(result))
    return result


def _draw(result: Curves) -> Picture:
    """A panel for each environment: agents as thin lines, their mean, and published results."""
    title = f"Return in training, mean of {result.num_seeds} seeds with its 95 % interval"
    figure, all_axes = panels(title, len(result.curves))
    for axes, (name, curve) in zip(all_axes, result.curves.items(), strict=True):
        steps = curve["timesteps"]
        for agent in zip(*curve["agents"], strict=True):
            line(axes, steps, agent, colour=COLOURS[0], is_thin=True)
        bounds = curve["low"], curve["high"]
        line(axes, steps, curve["mean"], bounds, colour=COLOURS[0], name="hackmatrix")
        for each, dashes in zip(PUBLISHED[name], ("--", ":"), strict=True):
            text = f"{each.who} {each.mean:g}"
            axes.axhline(each.mean, color="#333", linestyle=dashes, linewidth=1, label=text)
        shown = [*curve["mean"], *(each.mean for each in PUBLISHED[name])]
        low, high = min(shown), max(shown)
        axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
        axes.legend(loc="lower right", fontsize=7, frameon=False)
        label(axes, name, "steps of an agent")
    return svg(figure)


def curve(settings: TrainConfig, episodes: int, score: str = "mean_return") -> dict[str, Any]:
    """Trains agents in a temporary folder: their learning curve, and scores of the final ones."""
    with tempfile.TemporaryDirectory() as folder:
        config = settings.but(
            checkpoint_dir=Path(folder),
            log_interval=max(1, settings.learning.course.num_updates // _POINTS),
            tensorboard=False,
            wandb=False,
        )
        with Console(sys.stderr) as console:
            outcome = train(config, TrainOptions(run_name="run"), console)
        if outcome.end is not End.FINISHED:
            raise UserError(f"{config.environment.env}: the run was stopped, nothing is written")
        rows = [row for row in read_metrics(outcome.run) if LOW + RETURN in row]
        scores = _evaluated(outcome.run, episodes, score)
    return {
        "total_timesteps": outcome.timesteps,
        "timesteps": [row["timesteps"] for row in rows],
        "mean": [row[RETURN] for row in rows],
        "low": [row[LOW + RETURN] for row in rows],
        "high": [row[HIGH + RETURN] for row in rows],
        "agents": [_of_agents(row) for row in rows],
        "evaluated": scores,
        "interval": list(Interval.of(scores)),
    }


def _of_agents(row: Mapping[str, Any]) -> list[float | None]:
    return [agent.get(RETURN) for agent in row[AGENTS]]


def _evaluated(run: Path, episodes: int, score: str) -> list[float]:
    """Scores of the final agents, each by a name of `hackmatrix evaluate --json`."""
    policies = [load_policy(folder) for folder in agent_folders(run)]
    return [each.means()[score] for each in reports_on(policies, Limits(episodes), greedy=False)]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "classic",
        measure,
        ClassicOptions,
        argv,
        purpose="Measures how well classic control is learned, over many seeds (`make classic`).",
        example="--num-seeds 4\n      a quicker look",
    )


if __name__ == "__main__":
    sys.exit(main())
