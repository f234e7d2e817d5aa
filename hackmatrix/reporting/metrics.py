"""The table of metrics: names, what they average over, meaning, healthy ranges. Imports no JAX.

The console, `metrics.jsonl`, trackers, the health monitor and docs/metrics.md take them from here.
"""

from collections.abc import Mapping, Sequence

from hackmatrix.interface.metric import Limit, Metric, Over, Severity
from hackmatrix.rules.actions import ACTION_NAMES, FIRST_PROGRAM
from hackmatrix.rules.rewards import REWARD_PARTS

# The original's limit of 1.0 nats is out of reach: a random policy has 0.8 in HackMatrix, where few
# actions are valid, and 0.7 in CartPole, where there are two.
_ENTROPY_FRAC = (
    Limit(
        "entropy_low",
        Severity.WARNING,
        "the policy tries little; raise --ent-coef if the return does not rise either",
        below=0.1,
    ),
    Limit(
        "entropy_collapse",
        Severity.CRITICAL,
        "the policy has collapsed; stop, and start afresh with a higher --ent-coef, such as 0.15 "
        "or 0.2; do not resume from this agent",
        below=0.05,
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
    Limit("clip_high", Severity.WARNING, "updates clip much; if it rises, lower --lr", above=0.30),
    Limit("clip_too_high", Severity.CRITICAL, f"updates clip too much; {_SLOWER}", above=0.35),
)


def _reward_part(part: str) -> Metric:
    return Metric(f"reward/{part}", Over.STEPS, f"reward part `{part}`")


def _program_use(action: str) -> Metric:
    return Metric(f"actions/program/{action}", Over.STEPS, f"fraction of actions that run {action}")


METRICS = (
    Metric("train/total_loss", Over.UPDATES, "what the gradient descends, in the last epoch"),
    Metric("train/pg_loss", Over.UPDATES, "clipped surrogate loss of the policy, last epoch"),
    Metric("train/vf_loss", Over.UPDATES, "half the squared error of scaled values, last epoch"),
    Metric("train/entropy", Over.UPDATES, "nats over the valid actions, last epoch"),
    Metric(
        "train/entropy_frac",
        Over.UPDATES,
        "entropy over that of random play in the same positions, last epoch",
        _ENTROPY_FRAC,
    ),
    Metric(
        "train/approx_kl", Over.UPDATES, "mean of (r - 1) - log r, nats, last epoch", _APPROX_KL
    ),
    Metric(
        "train/clip_frac",
        Over.UPDATES,
        "fraction of ratios that were clipped, last epoch",
        _CLIP_FRAC,
    ),
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
    Metric(
        "stats/siphon_first_chance_frac",
        Over.CHANCES,
        "of the spells in which siphoning was valid, the fraction that began with siphoning",
    ),
    Metric("eval/mean_return", Over.EVALUATION, "sum of a game's rewards"),
    Metric("eval/mean_stages_cleared", Over.EVALUATION, "stages completed in a game, 0..8"),
    Metric("eval/win_rate", Over.EVALUATION, "fraction of games won"),
    Metric("eval/mean_length", Over.EVALUATION, "actions of a game"),
)

LEARNER_METRICS = tuple(
    m
    for m in METRICS
    if m.name.startswith("train/") or m.name in ("eval/mean_return", "eval/mean_length")
)


def metrics_of(env):
    return (*LEARNER_METRICS, *getattr(env, "metrics", ()))


# Those summed on the device, see `measures.py`.
MEASURED = tuple(metric for metric in METRICS if metric.over not in (Over.LOOP, Over.EVALUATION))


def summarise(sums: Mapping[str, Sequence[float]], metrics) -> dict[str, float | None]:
    """The row of metrics of `sums`: name -> (total, weight), see `measures.py`.

    What could not be measured (no game was finished) is None; what the environment does not tell
    is None as well.
    """
    row: dict[str, float | None] = {}
    for metric in metrics:
        if metric.over in (Over.LOOP, Over.EVALUATION):
            continue
        total, weight = map(float, sums[metric.name])
        measured = total if metric.over is Over.HIGHEST else total / max(weight, 1.0)
        row[metric.name] = measured if weight else None
    row["train/num_episodes"] = float(sums["train/mean_episode_return"][1])
    return row
