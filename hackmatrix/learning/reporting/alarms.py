"""Alarms: what is wrong with the metrics of a run, and what to do about it. Imports no JAX.

Limits of single metrics are defined with the metrics; here are the rules that need more than one
value, and the monitor that raises each alarm once. Its state depends only on the rows it was given,
so a resumed run that gives it the lines of `metrics.jsonl` continues as if never stopped.
"""

import math
from bisect import insort
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, median, variance
from typing import Any, NamedTuple

from hackmatrix.environments.interface.metric import Limit, Metric, Severity
from hackmatrix.learning.reporting.metrics import AGENTS, SEED

RETURN = "train/mean_episode_return"
SPEED = "train/steps_per_second"
DIVERGENCE, INFORMATION = "train/divergence", "train/search_information"

WINDOW = 30  # number of rows over which the trend of the return is judged
SWING = 3.0  # ratio of a window's variance to its noise's, above which the return swings
LEAST_LEARNED = 0.2  # of the search's information, else the network has not learned it
UNLEARNED_ROWS = 15  # a network that learns does so within a few
LEAST_INFORMATION = 0.05  # nats; a search that finds less has nothing to teach
SLOW = 0.7  # fraction of the median so far
SLOW_ROWS = 3
MIN_EARLIER = 5  # minimum number of earlier rows for a median of the speed
NAMED = 3  # number of metrics that the message of `not_finite` names


class AlarmRule(NamedTuple):
    """One row of the table of alarms."""

    name: str
    severity: Severity
    when: str
    advice: str  # what is wrong, and what to do


class Alarm(NamedTuple):
    """A rule that a row of metrics broke for the first time in the run."""

    name: str
    severity: Severity
    update: int
    message: str  # one line: what was observed, what is wrong, what to do


Finding = tuple[AlarmRule, str]  # a rule that a row breaks, and the observation


def _of_limit(metric: Metric, limit: Limit) -> AlarmRule:
    return AlarmRule(limit.alarm, limit.severity, f"`{metric.name}` is {limit}", limit.advice)


NOT_FINITE = AlarmRule(
    "not_finite",
    Severity.CRITICAL,
    "a metric is NaN or infinite",
    "the run is broken; --detect-anomaly names the first bad tensor; resume from the last good "
    "checkpoint with a lower --lr",
)
RETURN_FLAT = AlarmRule(
    "return_flat",
    Severity.WARNING,
    f"`{RETURN}` (or that of a task) gained no more than its standard error in {WINDOW} rows, "
    "stays within noise, and is below the environment's `reward_threshold`, if it has one",
    "learning has stopped, or is done; if entropy is low, start afresh with a higher --ent-coef; "
    "if approx_kl is below 0.01, try a higher --lr",
)
RETURN_OSCILLATING = AlarmRule(
    "return_oscillating",
    Severity.WARNING,
    f"`{RETURN}` (or that of a task) gained no more than its standard error in {WINDOW} rows, and "
    f"its variance is more than {SWING:g} times that of its noise",
    "the return swings or falls; a sign of a --lr that is too high: halve it",
)
SEARCH_NOT_LEARNED = AlarmRule(
    "search_not_learned",
    Severity.WARNING,
    f"`{DIVERGENCE}` is more than {1 - LEAST_LEARNED:.0%} of `{INFORMATION}` in {UNLEARNED_ROWS} "
    "rows, one after the other",
    "the network has not learned what the search finds, and plays at random without it: the "
    "returns are the search's; try more --simulations, a lower --search-weight or another --seed, "
    "and evaluate the network",
)
THROUGHPUT_FALLING = AlarmRule(
    "throughput_falling",
    Severity.WARNING,
    f"`{SPEED}` is below {SLOW:.0%} of the median of the rows before, {SLOW_ROWS} rows in a row",
    "training slows down; see what else runs on the machine; --profile shows where the time goes",
)

ROW_KEY = "alarms"  # of a line of `metrics.jsonl`: names of the alarms that fired with it


def alarms_of(metrics: Sequence[Metric]) -> tuple[AlarmRule, ...]:
    """All rules that apply to a run with these metrics."""
    limits = (_of_limit(metric, limit) for metric in metrics for limit in metric.limits)
    trends = RETURN_FLAT, RETURN_OSCILLATING, SEARCH_NOT_LEARNED
    return (*limits, NOT_FINITE, *trends, THROUGHPUT_FALLING)


def parse_row(line: Mapping[str, Any]) -> dict[str, Any]:
    """Converts a line of `metrics.jsonl` to a row for `Health.check`: null becomes NaN."""
    row: dict[str, Any] = {n: math.nan if value is None else value for n, value in line.items()}
    row.pop(ROW_KEY, None)
    if AGENTS in row:
        row[AGENTS] = [parse_row(agent) for agent in row[AGENTS]]
    return row


class Health:
    """The monitor of one run: give it every row of metrics, in order.

    `worst` is the severity of the worst alarm that holds for the last row, whether or not it was
    raised before; None if all is well.

    Args:
        metrics: metrics of the run.
    """

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics
        self._reported: set[str] = set()
        self._returns = {name: deque[float](maxlen=WINDOW) for name in _judged_returns(metrics)}
        self._enough = {metric.name: metric.enough for metric in metrics}
        self._speeds: list[float] = []
        self._slow_rows = 0
        self._unlearned_rows = 0
        self.worst: Severity | None = None
        self.holding: set[str] = set()  # names of the alarms that hold for the last row

    def check(self, update: int, row: Mapping[str, float | None]) -> list[Alarm]:
        """The alarms that this row raises for the first time.

        Args:
            update: the update of the row.
            row: metrics by name; None or absent if not measured. Rows of an evaluation may come in
                between, and names that are not metrics are ignored.
        """
        values = {name: value for name, value in row.items() if value is not None}
        finite = {name: value for name, value in values.items() if math.isfinite(value)}
        findings = [*_not_finite([n for n in values if n not in finite]), *self._limits(finite)]
        for name, returns in self._returns.items():
            if name in finite:
                returns.append(finite[name])
                if len(returns) == WINDOW:
                    findings += trend(list(returns), name, self._enough[name])
        if {DIVERGENCE, INFORMATION} <= finite.keys():
            findings += self._search(finite[DIVERGENCE], finite[INFORMATION])
        if SPEED in finite:
            findings += self._throughput(finite[SPEED])
        alarms = [
            Alarm(rule.name, rule.severity, update, f"{seen}: {rule.advice}")
            for rule, seen in findings
            if rule.name not in self._reported
        ]
        self._reported.update(alarm.name for alarm in alarms)
        self.holding = {rule.name for rule, _ in findings}
        severities = {rule.severity for rule, _ in findings}
        self.worst = next((each for each in reversed(Severity) if each in severities), None)
        return alarms

    def _limits(self, finite: Mapping[str, float]) -> Iterator[Finding]:
        for metric in self._metrics:
            if metric.name not in finite:
                continue
            value = finite[metric.name]
            crossed = [limit for limit in metric.limits if limit.is_crossed(value)]
            if crossed:
                # Only the worst is reported; the milder ones are marked as raised, as they would be
                # old news later.
                self._reported.update(limit.alarm for limit in crossed[:-1])
                yield _of_limit(metric, crossed[-1]), f"{metric.name} {value:.4g} is {crossed[-1]}"

    def _search(self, divergence: float, information: float) -> Iterator[Finding]:
        learned = 1 - divergence / max(information, LEAST_INFORMATION)
        unlearned = learned < LEAST_LEARNED and information >= LEAST_INFORMATION
        self._unlearned_rows = self._unlearned_rows + 1 if unlearned else 0
        if self._unlearned_rows >= UNLEARNED_ROWS:
            yield (
                SEARCH_NOT_LEARNED,
                f"{DIVERGENCE} {divergence:.3g} is {divergence / information:.0%} of {INFORMATION} "
                f"{information:.3g}, and was in {UNLEARNED_ROWS} rows",
            )

    def _throughput(self, speed: float) -> Iterator[Finding]:
        usual = median(self._speeds) if len(self._speeds) >= MIN_EARLIER else 0.0
        insort(self._speeds, speed)  # kept sorted, so that the median is fast
        self._slow_rows = self._slow_rows + 1 if speed < SLOW * usual else 0
        if self._slow_rows >= SLOW_ROWS:
            yield (
                THROUGHPUT_FALLING,
                f"{SPEED} {speed:,.0f} is below {SLOW:.0%} of {usual:,.0f} for {SLOW_ROWS} rows",
            )


class HealthOfAgents:
    """One monitor for each of a run's agents, and one for the metrics that they share.

    A run with many agents is as healthy as its best one: `worst` is what holds for all of them.

    Args:
        metrics: metrics of the run.
    """

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics
        self._shared = Health(metrics)
        self._agents: dict[int, Health] = {}

    @property
    def worst(self) -> Severity | None:
        """The severity of the worst alarm that holds for the last row of every agent."""
        if not self._agents:
            return self._shared.worst
        every = {agent.worst for agent in self._agents.values()}
        return next((each for each in (None, *Severity) if each in every), None)

    def holds(self, alarm: str) -> bool:
        """Whether an alarm holds for the last row of every agent."""
        monitors = self._agents.values() or [self._shared]
        return all(alarm in monitor.holding for monitor in monitors)

    def check(self, update: int, row: Mapping[str, Any]) -> list[Alarm]:
        """Like `Health.check`; alarms that several agents raise with the same row are merged."""
        if AGENTS not in row:
            return self._shared.check(update, row)
        alarms = self._shared.check(update, {SPEED: row.get(SPEED)})
        raised: dict[str, list[tuple[int, Alarm]]] = {}
        for agent in row[AGENTS]:
            seed = agent[SEED]
            values = {name: value for name, value in agent.items() if name != SEED}
            agent_health = self._agents.setdefault(seed, Health(self._metrics))
            for alarm in agent_health.check(update, values):
                raised.setdefault(alarm.name, []).append((seed, alarm))
        for same in raised.values():
            seeds = ", ".join(str(seed) for seed, _ in same)
            alarm = same[0][1]
            whose = f"seed {seeds}" if len(same) == 1 else f"seeds {seeds}"
            alarms.append(alarm._replace(message=f"{whose}: {alarm.message}"))
        return alarms


def _judged_returns(metrics: Sequence[Metric]) -> list[str]:
    """The returns whose trends are judged.

    Where tasks have their own, the mean over all games says nothing: it moves with their shares.
    """
    names = [metric.name for metric in metrics if metric.judged]
    return [name for name in names if name != RETURN] or names


def trend(
    returns: Sequence[float], name: str = RETURN, enough: float = math.inf
) -> Iterator[Finding]:
    """Judges a window of returns: yields nothing, `RETURN_FLAT` or `RETURN_OSCILLATING`.

    A mean of `enough` need not rise: it is judged no further.

    The noise of a row is estimated from the differences of successive rows, `mean((b - a)^2) / 2`,
    to which a slow movement adds almost nothing (von Neumann, 1941). The return rises if the mean
    of the newer half exceeds that of the older half by more than the standard error of that gain.
    If not, the variance of the window tells the two cases apart: noise alone gives the variance of
    the noise; swings over ten rows and more, or a fall, give a multiple of it.
    """
    if fmean(returns) >= enough:
        return
    half = len(returns) // 2
    gain = fmean(returns[half:]) - fmean(returns[:half])
    noise = fmean((b - a) ** 2 for a, b in pairwise(returns)) / 2
    error = math.sqrt(noise * 2 / half)
    if gain > error:
        return
    gained = f"gained {gain:.3g} (standard error {error:.2g}) in {len(returns)} rows"
    if variance(returns) > SWING * noise:
        low, high = min(returns), max(returns)
        yield RETURN_OSCILLATING, f"{name} moved between {low:.4g} and {high:.4g} and {gained}"
    else:
        yield RETURN_FLAT, f"{name} {gained}"


def _not_finite(names: Sequence[str]) -> Iterator[Finding]:
    if names:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        verb = "is" if len(names) == 1 else "are"
        yield NOT_FINITE, f"{', '.join(names[:NAMED])}{more} {verb} not finite"
