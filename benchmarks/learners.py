"""Each learning algorithm on CartPole and on HackMatrix, over several seeds."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.classic import curve
from benchmarks.command import RESULTS, run_command
from hackmatrix.agents.networks.algorithms import ALGORITHMS
from hackmatrix.core import machine
from hackmatrix.core.configs import CONFIGS
from hackmatrix.core.options import option
from hackmatrix.learning.reporting.joined_rows import Interval
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.learning.settings.resolve import resolve
from hackmatrix.research.bench.options import Options

# Configurations of CartPole; HackMatrix is learned by `quick`, with these changes.
_CARTPOLE = {"ppo": "cartpole_best", "pqn": "cartpole_pqn"}
_HACKMATRIX: dict[str, dict[str, Any]] = {"ppo": {}, "pqn": {"exploration_final_eps": 0.02}}


@dataclass(frozen=True)
class LearnersOptions(Options):
    """The options of the command."""

    output: Path = option(RESULTS, "folder for the figures")
    num_seeds: int = option(5, "agents of each algorithm and environment", at_least=2)
    episodes: int = option(100, "games that each of them plays at the end", at_least=1)
    cartpole_steps: int = option(500_000, "steps of an agent in CartPole", at_least=1)
    hackmatrix_steps: int = option(1_000_000, "steps of an agent in HackMatrix", at_least=1)


class Learners(NamedTuple):
    """Scores of final agents."""

    num_seeds: int
    episodes: int
    scores: list[dict[str, Any]]  # of each algorithm and environment
    output: Path

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        figures = {name: value for name, value in self._asdict().items() if name != "output"}
        return {**figures, **machine.machine(), "versions": machine.versions("gymnax")}

    def text(self) -> str:
        """The figures as a table in Markdown."""
        lines = ["| algorithm | environment | steps | score |", "|---|---|---:|---:|"]
        for row in self.scores:
            mean, low, high = Interval(*row["interval"])
            score = (
                f"{row['score']} {mean:.2f} [{low:.2f}, {high:.2f}], worst {min(row['each']):.2f}"
            )
            lines.append(
                f"| `{row['algorithm']}` | {row['environment']} | {row['steps']:,} | {score} |"
            )
        facts = self.as_dict()
        about = machine.line(facts, facts["versions"])
        games = f"{self.num_seeds} seeds, {self.episodes} games of each final agent, 95 % intervals"
        return "\n".join([*lines, games, about, f"written to {self.output}"])


def measure(options: LearnersOptions) -> Learners:
    """Trains and evaluates the agents; writes `learners.json`."""
    scores = []
    for algorithm in ALGORITHMS:
        cartpole = {"total_timesteps": options.cartpole_steps}
        hackmatrix = {
            **_HACKMATRIX[algorithm],
            "algorithm": algorithm,
            "total_timesteps": options.hackmatrix_steps,
        }
        for file, changes, score in (
            (_CARTPOLE[algorithm], cartpole, "mean_return"),
            ("quick", hackmatrix, "mean_stages_cleared"),
        ):
            flags = {**changes, "num_seeds": options.num_seeds}
            settings, _ = resolve(flags, read_config(CONFIGS / f"{file}.yaml"))
            name = settings.environment.name
            print(f"{algorithm} on {name} ...", file=sys.stderr, flush=True)
            found = curve(settings, options.episodes, score)
            scores.append(
                {
                    "algorithm": algorithm,
                    "environment": name,
                    "steps": found["total_timesteps"],
                    "score": score,
                    "interval": found["interval"],
                    "each": found["evaluated"],
                }
            )
    result = Learners(options.num_seeds, options.episodes, scores, options.output)
    result.output.mkdir(parents=True, exist_ok=True)
    (result.output / "learners.json").write_text(json.dumps(result.as_dict(), indent=1) + "\n")
    return result


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
