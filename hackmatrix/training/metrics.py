"""The table of metrics: names, what they average over, units and meaning. Imports no JAX.

The console, `metrics.jsonl`, trackers and the documentation all take them from here.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from hackmatrix.rules.actions import ACTION_NAMES, FIRST_PROGRAM
from hackmatrix.rules.rewards import REWARD_PARTS


class Over(Enum):
    """What a metric summarises, since the last line of metrics."""

    UPDATES = "mean over updates"
    STEPS = "mean over actions"
    EPISODES = "mean over finished games"
    HIGHEST = "highest of finished games"
    LOOP = "measured by the loop"


class Metric(NamedTuple):
    """One row of the table."""

    name: str
    over: Over
    meaning: str


def _reward_part(part: str) -> Metric:
    return Metric(f"reward/{part}", Over.STEPS, f"reward part `{part}`")


def _program_use(action: str) -> Metric:
    return Metric(f"actions/program/{action}", Over.STEPS, f"fraction of actions that run {action}")


METRICS = (
    Metric("train/total_loss", Over.UPDATES, "what the gradient descends, in the last epoch"),
    Metric("train/pg_loss", Over.UPDATES, "clipped surrogate loss of the policy, last epoch"),
    Metric("train/vf_loss", Over.UPDATES, "half the squared error of scaled values, last epoch"),
    Metric("train/entropy", Over.UPDATES, "nats over the valid actions, last epoch"),
    Metric("train/approx_kl", Over.UPDATES, "mean of (r - 1) - log r, nats, last epoch"),
    Metric("train/clip_frac", Over.UPDATES, "fraction of ratios that were clipped, last epoch"),
    Metric("train/grad_norm", Over.UPDATES, "global norm before clipping, last epoch"),
    Metric("train/explained_variance", Over.UPDATES, "1: values predict returns; 0: as a constant"),
    Metric("train/reward_scale", Over.UPDATES, "what rewards are divided by"),
    Metric("train/mean_reward", Over.STEPS, "reward of an action"),
    Metric("train/mean_episode_return", Over.EPISODES, "sum of a game's rewards"),
    Metric("train/mean_episode_length", Over.EPISODES, "actions of a game"),
    Metric("train/num_episodes", Over.LOOP, "finished games"),
    Metric("train/steps_per_second", Over.LOOP, "actions in all games, learning included"),
    Metric("train/learning_rate", Over.LOOP, "of Adam"),
    *map(_reward_part, REWARD_PARTS),
    Metric("actions/move_frac", Over.STEPS, "fraction of actions that are directions"),
    Metric("actions/siphon_frac", Over.STEPS, "fraction of actions that siphon"),
    Metric("actions/program_frac", Over.STEPS, "fraction of actions that run a program"),
    *map(_program_use, ACTION_NAMES[FIRST_PROGRAM:]),
    Metric("stats/highest_stage", Over.HIGHEST, "highest stage reached, 1..8"),
    Metric("stats/mean_stage", Over.EPISODES, "highest stage reached, 1..8"),
    Metric("stats/win_rate", Over.EPISODES, "fraction of games won"),
    Metric("stats/mean_score", Over.EPISODES, "score at the end of a game"),
    Metric("stats/programs_owned", Over.EPISODES, "programs owned at the end of a game"),
)

MEASURED = tuple(metric for metric in METRICS if metric.over is not Over.LOOP)


def summarise(sums: Mapping[str, Sequence[float]]) -> dict[str, float | None]:
    """The row of metrics of `sums`: name -> (total, weight), see `measures.py`.

    What could not be measured (no game was finished) is None; what the environment does not tell
    is None as well.
    """
    row: dict[str, float | None] = {}
    for metric in MEASURED:
        total, weight = map(float, sums[metric.name])
        measured = total if metric.over is Over.HIGHEST else total / max(weight, 1.0)
        row[metric.name] = measured if weight else None
    row["train/num_episodes"] = float(sums["train/mean_episode_return"][1])
    return row
