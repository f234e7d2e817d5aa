"""The gain of each setting of the recipe, over several seeds.

`quick` has the settings of `best` with a smaller batch, and sees wins after
a tenth of the steps.
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.command import RESULTS, run_command
from hackmatrix.agents.networks.policy import load_policy
from hackmatrix.core.errors import UserError
from hackmatrix.core.imports import need
from hackmatrix.core.options import option
from hackmatrix.game.rules.stages import LAST_STAGE
from hackmatrix.learning.reporting.console import Console
from hackmatrix.learning.reporting.metrics import HIGH, LOW, Interval
from hackmatrix.learning.run.loop import End, train
from hackmatrix.learning.settings.config import TrainConfig, TrainOptions
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.learning.settings.resolve import resolve
from hackmatrix.research.bench.options import Options
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.ranking import reports_on
from hackmatrix.research.figures import COLOURS, label, line, panels, svg
from hackmatrix.runs.metrics_file import read_metrics
from hackmatrix.runs.params import agent_folders

CONFIG = Path("quick")
STAGE = "stats/mean_stage"
GAMES = 10  # seed of the games that the trained agents play; runs choose by other ones

# Each differs from the config in these settings alone. The first of a group is the config.
STUDY: dict[str, dict[str, dict[str, Any]]] = {
    "gamma": {
        "0.998": {},
        "0.99": {"gamma": 0.99},
        "0.995": {"gamma": 0.995},
        "0.9995": {"gamma": 0.9995},
    },
    "lambda": {
        "0.95": {},
        "0.8": {"gae_lambda": 0.8},
        "0.9": {"gae_lambda": 0.9},
    },
    "entropy bonus": {
        "0.02 to 0.002": {},
        "0.002": {"ent_coef": 0.002, "final_ent_coef": None},
        "0.02": {"final_ent_coef": None},
        "0.05 to 0.0001": {"ent_coef": 0.05, "final_ent_coef": 0.0001},
    },
    "learning rate": {
        "1e-3": {},
        "3e-4": {"lr": 3e-4},
        "3e-3": {"lr": 3e-3},
        "1e-3, constant": {"lr_schedule": "constant"},
    },
    "reward": {
        "progress": {},
        "game": {"reward": "game"},
        "game, normalised": {"reward": "game", "normalize_rewards": True},
    },
    "observation": {
        "tactical": {},
        "full": {"observation": "full"},
    },
    "network": {
        "256, 256": {},
        "64, 64": {"hidden_dim": 64},
        "512, 512": {"hidden_dim": 512},
        "layer norm": {"layer_norm": True},
    },
    "value": {
        "as it is": {},
        "of scaled rewards": {"normalize_rewards": True},
    },
}


@dataclass(frozen=True)
class RecipeOptions(Options):
    """The options of the command."""

    steps: int = option(4_000_000, "steps that each agent is trained for", at_least=1)
    num_seeds: int = option(3, "agents of each variation", at_least=2, at_most=1024)
    episodes: int = option(500, "games that each of them plays at the end", at_least=1)
    groups: str = option(",".join(STUDY), "groups of variations, with commas")
    out: Path = option(RESULTS, "folder of recipe.json and recipe.svg; what is there is kept")


@dataclass(frozen=True)
class Study:
    """The results of each variation, by what sets it apart from the config."""

    found: dict[str, Any]
    groups: Sequence[str]
    out: Path

    def as_dict(self) -> dict[str, Any]:
        """All of it."""
        return self.found

    def text(self) -> str:
        """A table for each group."""
        heads = "stages cleared [95 %]     wins                       entropy  steps/s"
        lines = []
        for group in self.groups:
            lines += ["", f"{group:<24} {heads}"]
            for name, changed in STUDY[group].items():
                if (one := self.found.get(_key(changed))) is None:
                    continue
                stages = Interval.of(one["stages"], (0, LAST_STAGE))
                wins = Interval.of(one["wins"], (0, 1))
                lines.append(
                    f"  {name:<22} {stages.mean:5.2f} [{stages.low:5.2f}, {stages.high:5.2f}]"
                    f"   {wins.mean:6.1%} ({min(one['wins']):6.1%} to {max(one['wins']):6.1%})"
                    f"   {one['entropy']:6.3f} {one['steps_per_second']:8,.0f}"
                )
        return "\n".join(lines[1:])


def measure(options: RecipeOptions) -> Study:
    """Trains and evaluates what is not in `recipe.json` yet; draws `recipe.svg`.

    Raises:
        UserError: there is no such group, or a run was stopped.
    """
    need("matplotlib")
    groups = options.groups.split(",")
    if unknown := set(groups) - set(STUDY):
        raise UserError(f"--groups: no {', '.join(sorted(unknown))}; there are {', '.join(STUDY)}")
    options.out.mkdir(parents=True, exist_ok=True)
    kept = options.out / "recipe.json"
    found = json.loads(kept.read_text()) if kept.exists() else {}
    for group in groups:
        for name, changed in STUDY[group].items():
            if _key(changed) not in found:
                print(f"{group} {name} ...", file=sys.stderr, flush=True)
                found[_key(changed)] = _trained(changed, options)
                kept.write_text(json.dumps(found) + "\n")
    shown = {group: {n: found.get(_key(c)) for n, c in STUDY[group].items()} for group in STUDY}
    title = f"Highest stage in training, mean of {options.num_seeds} seeds with 95 % interval"
    figure, all_axes = panels(title, len(shown), height=2.7, columns=4, sharey=True)
    for axes, (group, curves) in zip(all_axes, shown.items(), strict=True):
        for (name, curve), colour in zip(curves.items(), COLOURS, strict=False):
            if curve:
                bounds = curve["low"], curve["high"]
                line(axes, curve["timesteps"], curve["mean"], bounds, colour=colour, name=name)
        axes.legend(loc="lower right", fontsize=7, frameon=False)
        axes.set_ylim(1, 8)
        label(axes, group, "steps")
    (options.out / "recipe.svg").write_text(svg(figure))
    return Study(found, groups, options.out)


def _key(changed: dict[str, Any]) -> str:
    return json.dumps(changed, sort_keys=True)


def _trained(changed: dict[str, Any], options: RecipeOptions) -> dict[str, Any]:
    given = {"num_seeds": options.num_seeds, "total_timesteps": options.steps, **changed}
    settings, _ = resolve(given, read_config(CONFIG))
    with tempfile.TemporaryDirectory() as folder:
        config: TrainConfig = settings.but(
            checkpoint_dir=Path(folder),
            log_interval=2,
            eval_interval=None,
            tensorboard=False,
            wandb=False,
        )
        with Console(sys.stderr) as console:
            outcome = train(config, TrainOptions(run_name="run"), console)
        if outcome.end is not End.FINISHED:
            raise UserError("the run was stopped; what was finished before is kept")
        rows = [row for row in read_metrics(outcome.run) if LOW + STAGE in row]
        policies = [load_policy(folder) for folder in agent_folders(outcome.run)]
        limits = Limits(options.episodes, seed=GAMES, max_steps=1_000)
        means = [each.means() for each in reports_on(policies, limits, greedy=False)]
    return {
        "timesteps": [row["timesteps"] for row in rows],
        "mean": [round(row[STAGE], 3) for row in rows],
        "low": [round(row[LOW + STAGE], 3) for row in rows],
        "high": [round(row[HIGH + STAGE], 3) for row in rows],
        "stages": [each["mean_stages_cleared"] for each in means],
        "wins": [each["win_rate"] for each in means],
        "entropy": rows[-1]["train/entropy"],
        "steps_per_second": round(sum(r["train/steps_per_second"] for r in rows) / len(rows)),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "recipe",
        measure,
        RecipeOptions,
        argv,
        purpose="Trains variations of the settings `quick` over several seeds and compares them.",
        example="--groups gamma,reward --steps 1000000",
    )


if __name__ == "__main__":
    sys.exit(main())
