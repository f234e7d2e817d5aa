"""The learner's metrics, and the conversion of accumulated sums to a row. Imports no JAX.

The metrics of a run are these and the environment's. The console, `metrics.jsonl`,
trackers, the health monitor and docs/metrics.md all take names and healthy ranges from there.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any, NamedTuple

from hackmatrix.core import student_t
from hackmatrix.environments.interface.metric import Limit, Metric, Over, Severity, Shown

COLLAPSE = "entropy_collapse"  # the alarm after which a run is not worth resuming

# The original's limit of 1.0 nats can't be used: even a random policy has only 0.84 in HackMatrix,
# where few actions are valid, and 0.69 in CartPole, which has two actions. A policy that wins
# HackMatrix ends at a tenth of random play's entropy, since mostly one action is right.
_ENTROPY_FRAC = (
    Limit(
        "entropy_low",
        Severity.WARNING,
        "of random play's entropy little is left, so the policy tries little; raise --ent-coef if "
        "the return does not rise either",
        below=0.05,
    ),
    Limit(
        COLLAPSE,
        Severity.CRITICAL,
        "of random play's entropy nearly nothing is left, so the policy has collapsed; stop, and "
        "start afresh with a higher --ent-coef; do not resume from this agent",
        below=0.02,
    ),
)
_SLOWER = "lower --lr (by half for twice the gradient steps), or take fewer --update-epochs"
_APPROX_KL = (
    Limit(
        "kl_high", Severity.WARNING, "the policy changes fast; if it rises, lower --lr", above=0.06
    ),
    Limit("kl_too_high", Severity.CRITICAL, f"the policy changes too fast; {_SLOWER}", above=0.08),
)
_CLIP_FRAC = (
    Limit(
        "clip_high",
        Severity.WARNING,
        "many ratios are clipped; if that rises, lower --lr",
        above=0.30,
    ),
    Limit(
        "clip_too_high", Severity.CRITICAL, f"too many ratios are clipped; {_SLOWER}", above=0.35
    ),
)


def _shown(label: str, form: str, in_summary: bool = False) -> Shown:
    return Shown("LEARNING", label, form, in_summary=in_summary)


LEARNER_METRICS = (
    Metric(
        "train/steps_per_second",
        Over.LOOP,
        "actions in all games, learning included",
        shown=_shown("steps/s", ",.0f", in_summary=True),
    ),
    Metric(
        "train/mean_episode_return",
        Over.EPISODES,
        "sum of a game's rewards",
        shown=_shown("return", ",.2f", in_summary=True),
        judged=True,
    ),
    Metric(
        "train/mean_episode_length",
        Over.EPISODES,
        "actions of a game",
        shown=_shown("length", ",.1f"),
    ),
    Metric("train/num_episodes", Over.LOOP, "finished games", shown=_shown("episodes", ",.0f")),
    Metric("train/mean_reward", Over.STEPS, "reward of an action", shown=_shown("reward", "+.4f")),
    Metric(
        "train/entropy",
        Over.UPDATES,
        "entropy of the policy over the valid actions, nats, last epoch",
        shown=_shown("entropy", ".3f", in_summary=True),
    ),
    Metric(
        "train/entropy_frac",
        Over.UPDATES,
        "entropy as a fraction of that of random play in the same positions, last epoch",
        _ENTROPY_FRAC,
        _shown("- of random", ".1%"),
    ),
    Metric(
        "train/approx_kl",
        Over.UPDATES,
        "mean of (r - 1) - log r over the ratios r of new to old policy, nats, last epoch",
        _APPROX_KL,
        _shown("KL", ".4f", in_summary=True),
    ),
    Metric(
        "train/clip_frac",
        Over.UPDATES,
        "fraction of ratios that were clipped, last epoch",
        _CLIP_FRAC,
        _shown("clipped", ".1%"),
    ),
    Metric(
        "train/explained_variance",
        Over.UPDATES,
        "fraction of the returns' variance that the values explain",
        shown=_shown("expl. var.", ".3f"),
    ),
    Metric(
        "train/total_loss",
        Over.UPDATES,
        "loss of policy, values and entropy together, last epoch",
        shown=_shown("total loss", ".4f"),
    ),
    Metric(
        "train/pg_loss",
        Over.UPDATES,
        "clipped surrogate loss of the policy, last epoch",
        shown=_shown("policy loss", ".4f"),
    ),
    Metric(
        "train/vf_loss",
        Over.UPDATES,
        "half the squared error of scaled values, last epoch",
        shown=_shown("value loss", ".4f"),
    ),
    Metric(
        "train/grad_norm",
        Over.UPDATES,
        "global norm of the gradient before clipping, last epoch",
        shown=_shown("grad norm", ",.3f"),
    ),
    Metric("train/learning_rate", Over.LOOP, "step size of Adam", shown=_shown("lr", ".3g")),
    Metric("train/reward_scale", Over.UPDATES, "divisor of the rewards"),
    Metric("eval/mean_return", Over.EVALUATION, "sum of a game's rewards"),
    Metric("eval/mean_length", Over.EVALUATION, "actions of a game"),
)


def device_metrics(metrics: Sequence[Metric]) -> tuple[Metric, ...]:
    """The metrics that are accumulated on the device, step by step or update by update."""
    return tuple(m for m in metrics if m.over not in (Over.LOOP, Over.EVALUATION))


def summarise(
    sums: Mapping[str, Sequence[float]], metrics: Sequence[Metric]
) -> dict[str, float | None]:
    """Converts accumulated sums to a row of metrics.

    Args:
        sums: for each metric measured on the device, its total and its weight.
        metrics: metrics of the run.

    Returns:
        A value for each of them, and the number of finished games. None where nothing was
        measured, such as the length of games if none has finished.
    """
    row: dict[str, float | None] = {}
    for metric in device_metrics(metrics):
        total, weight = map(float, sums[metric.name])
        value = total if metric.over is Over.HIGHEST else total / max(weight, 1.0)
        row[metric.name] = value if weight else None
    row["train/num_episodes"] = float(sums["train/mean_episode_return"][1])
    return row


# --- Joins the rows of metrics of many agents into one --------------------------------------------


Row = dict[str, Any]

AGENTS, SEED = "agents", "seed"  # keys in a row: the list of the agents' rows, and each one's seed
LOW, HIGH = "low/", "high/"  # prefixes of a metric's name: bounds of the interval of its mean


class Interval(NamedTuple):
    """A mean over agents, with a 95 % confidence interval for the mean over all such agents."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float], possible: tuple[float, float] | None = None) -> "Interval":
        """Interval by Student's t distribution within what is possible; infinite for one value.

        Args:
            values: of the agents.
            possible: the smallest and the largest value that an agent can have. None where that is
                not known: the interval then stays within the values, which of normal ones covers
                the true mean in 50, 75, 88 and 93 % of all cases with 2, 3, 4 and 5 agents, and
                with more of them in 95 %.
        """
        mean = fmean(values)
        if len(values) < 2:
            return cls(mean, -math.inf, math.inf)
        error = stdev(values) / math.sqrt(len(values))
        reach = student_t.reach(0.95, len(values) - 1) * error
        low, high = possible or (min(values), max(values))
        return cls(mean, max(low, mean - reach), min(high, mean + reach))


def join_rows(rows: Sequence[Mapping[str, float | None]], seeds: Sequence[int]) -> Row:
    """Joins the agents' rows into one row of metrics.

    It has the mean of each metric under the metric's name, its 95 % interval under `low/` and
    `high/` plus the name, and the rows themselves under `agents`. Agents without a value for a
    metric do not count in its mean. The row of a single agent is returned unchanged.
    """
    if len(rows) == 1:
        return dict(rows[0])
    row: Row = {}
    for name in rows[0]:
        measured = [value for each in rows if (value := each[name]) is not None]
        row[name] = None
        if all(map(math.isfinite, measured)) and measured:
            row[name], low, high = Interval.of(measured)
            if len(measured) > 1:
                row |= {LOW + name: low, HIGH + name: high}
        elif measured:
            row[name] = math.nan
    return row | {AGENTS: [{SEED: s, **each} for s, each in zip(seeds, rows, strict=True)]}


def describe_agents(row: Mapping[str, Any], name: str) -> str | None:
    """A line with a metric's mean, interval, best and worst agent.

    None if fewer than two have it.
    """
    values = [
        (value, agent[SEED])
        for agent in row.get(AGENTS, ())
        if (value := agent.get(name)) is not None and math.isfinite(value)
    ]
    if len(values) < 2 or LOW + name not in row:
        return None
    worst, last = min(values, key=lambda pair: pair[0])
    best, first = max(values, key=lambda pair: pair[0])
    return (
        f"{row[name]:.4g} [{row[LOW + name]:.4g}, {row[HIGH + name]:.4g}], best {best:.4g} "
        f"(seed {first}), worst {worst:.4g} (seed {last})"
    )
