"""Each learning algorithm on CartPole and on HackMatrix, over several seeds."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.classic import curve
from benchmarks.command import RESULTS, run_command
from hackmatrix.agents.networks.architectures import ALGORITHMS
from hackmatrix.core import machine
from hackmatrix.core.options import option
from hackmatrix.core.yaml_file import CONFIGS
from hackmatrix.learning.reporting.metrics import Interval
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.learning.settings.resolve import resolve
from hackmatrix.research.bench.options import Options

# Configurations of CartPole; HackMatrix is learned by `quick`, with these changes and smaller
# batches, for a short run.
_CARTPOLE = {
    "ppo": "cartpole_best",
    "pqn": "cartpole_pqn",
    "expert_iteration": "cartpole_expert_iteration",
}
_HACKMATRIX: dict[str, dict[str, Any]] = {
    "ppo": {},
    "pqn": {"exploration_final_eps": 0.02},
    "expert_iteration": {},
}


@dataclass(frozen=True)
class LearnersOptions(Options):
    """The options of the command."""

    output: Path = option(RESULTS, "folder for the figures")
    num_seeds: int = option(5, "agents of each algorithm in CartPole", at_least=2)
    hackmatrix_seeds: int = option(5, "agents of each algorithm in HackMatrix", at_least=2)
    episodes: int = option(100, "games that each of them plays at the end", at_least=1)
    cartpole_steps: int = option(500_000, "steps of an agent in CartPole", at_least=1)
    hackmatrix_steps: int = option(262_144, "steps of an agent in HackMatrix", at_least=1)


class Learners(NamedTuple):
    """Scores of final agents."""

    episodes: int
    scores: list[dict[str, Any]]  # of each algorithm and environment
    output: Path

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        figures = {"episodes": self.episodes, "scores": self.scores}
        return {**figures, **machine.machine(), "versions": machine.versions("gymnax")}

    def text(self) -> str:
        """The figures as a table in Markdown."""
        lines = [
            "| environment | steps | algorithm | seeds | score | worst |",
            "|---|" + "---:|" * 5,
        ]
        for row in self.scores:
            mean, low, high = Interval(*row["interval"])
            cells = (
                f"{row['environment']}, {row['score']}",
                f"{row['steps']:,}",
                f"`{row['algorithm']}`",
                f"{len(row['each'])}",
                f"{mean:.2f} [{low:.2f}, {high:.2f}]",
                f"{min(row['each']):.2f}",
            )
            lines.append(f"| {' | '.join(cells)} |")
        facts = self.as_dict()
        about = machine.line(facts, facts["versions"])
        games = f"{self.episodes} games of each final agent, 95 % intervals over the seeds"
        return "\n".join([*lines, games, about, f"written to {self.output}"])


def measure(options: LearnersOptions) -> Learners:
    """Trains and evaluates the agents; writes `learners.json` after each algorithm."""
    options.output.mkdir(parents=True, exist_ok=True)
    result = Learners(options.episodes, [], options.output)
    for learn in (_cartpole, _hackmatrix):
        for algorithm in ALGORITHMS:
            result.scores.append(learn(algorithm, options))
            text = json.dumps(result.as_dict(), indent=1) + "\n"
            (options.output / "learners.json").write_text(text)
    return result


def _cartpole(algorithm: str, options: LearnersOptions) -> dict[str, Any]:
    flags = {"total_timesteps": options.cartpole_steps, "num_seeds": options.num_seeds}
    return _score(_CARTPOLE[algorithm], flags, options.episodes, "mean_return")


def _hackmatrix(algorithm: str, options: LearnersOptions) -> dict[str, Any]:
    flags = {
        **_HACKMATRIX[algorithm],
        "num_steps": 32,
        "algorithm": algorithm,
        "total_timesteps": options.hackmatrix_steps,
        "num_seeds": options.hackmatrix_seeds,
    }
    return _score("quick", flags, options.episodes, "mean_stages_cleared")


def _score(file: str, flags: dict[str, Any], episodes: int, score: str) -> dict[str, Any]:
    """The scores of agents that are trained with the settings of a file."""
    settings, _ = resolve(flags, read_config(CONFIGS / f"{file}.yaml"))
    algorithm, environment = settings.learning.algorithm, settings.environment.name
    print(f"{algorithm} on {environment} ...", file=sys.stderr, flush=True)
    found = curve(settings, episodes, score)
    return {
        "environment": environment,
        "algorithm": algorithm,
        "score": score,
        "steps": found["total_timesteps"],
        "interval": found["interval"],
        "each": found["evaluated"],
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "learners",
        measure,
        LearnersOptions,
        argv,
        purpose="Measures how well each algorithm learns CartPole and HackMatrix, over seeds.",
        example="--num-seeds 2 --hackmatrix-steps 100000\n      a quicker look",
    )


if __name__ == "__main__":
    sys.exit(main())
