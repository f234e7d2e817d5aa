"""Alarms: what the metrics of a run say is wrong, and what to do about it. Imports no JAX.

Limits of single metrics stand with the metrics; here are the rules that need more than one value,
and the monitor that raises each alarm once. It knows nothing but the rows it was fed, so that a
resumed run which feeds it the lines of `metrics.jsonl` goes on as if it had never stopped.
"""

import math
from bisect import insort
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, median, variance
from typing import Any, NamedTuple

from hackmatrix.interface.metric import Limit, Metric, Severity
from hackmatrix.reporting.rows import AGENTS, SEED

RETURN = "train/mean_episode_return"
SPEED = "train/steps_per_second"

WINDOW = 30  # rows that a trend of the return is judged by
SWING = 3.0  # variance of a window over that of its noise, from which on the return swings
SLOW = 0.7  # of the median so far
SLOW_ROWS = 3
MIN_EARLIER = 5  # rows from which on their median is a measure of speed
NAMED = 3  # metrics that the message of `not_finite` names


class Rule(NamedTuple):
    """One row of the table of alarms."""

    name: str
    severity: Severity
    when: str
    advice: str  # what is wrong, and what to do


class Alarm(NamedTuple):
    """A rule that a row of metrics broke, for the first time in the run."""

    name: str
    severity: Severity
    update: int
    message: str  # a line for people: what was seen, what is wrong, what to do


Finding = tuple[Rule, str]  # a rule that holds for a row, and what was seen


def _of_limit(metric: Metric, limit: Limit) -> Rule:
    return Rule(limit.alarm, limit.severity, f"`{metric.name}` is {limit}", limit.advice)


NOT_FINITE = Rule(
    "not_finite",
    Severity.CRITICAL,
    "a metric is NaN or infinite",
    "the run is broken; --detect-anomaly names the first bad tensor; resume from the last good "
    "checkpoint with a lower --lr",
)
RETURN_FLAT = Rule(
    "return_flat",
    Severity.WARNING,
    f"`{RETURN}` gained no more than its standard error in {WINDOW} rows, and stays within noise",
    "learning has stopped, or is done; if entropy is low, start afresh with a higher --ent-coef; "
    "if approx_kl is below 0.01, try a higher --lr",
)
RETURN_OSCILLATING = Rule(
    "return_oscillating",
    Severity.WARNING,
    f"`{RETURN}` gained no more than its standard error in {WINDOW} rows, and its variance is "
    f"more than {SWING:g} times that of its noise",
    "the return swings or falls; a sign of a --lr that is too high: halve it",
)
THROUGHPUT_FALLING = Rule(
    "throughput_falling",
    Severity.WARNING,
    f"`{SPEED}` is below {SLOW:.0%} of the median of the rows before, {SLOW_ROWS} rows in a row",
    "training slows down; see what else the machine does, and with --profile where the time goes",
)

ROW_KEY = "alarms"  # of a line of `metrics.jsonl`: names of the alarms that fired with it


def alarms_of(metrics: Sequence[Metric]) -> tuple[Rule, ...]:
    """All rules that a run with these metrics is watched by."""
    limits = (_of_limit(metric, limit) for metric in metrics for limit in metric.limits)
    return (*limits, NOT_FINITE, RETURN_FLAT, RETURN_OSCILLATING, THROUGHPUT_FALLING)


def recorded(line: Mapping[str, Any]) -> dict[str, Any]:
    """A line of `metrics.jsonl` as a row for `Health.check`: its nulls were not finite numbers."""
    row: dict[str, Any] = {n: math.nan if value is None else value for n, value in line.items()}
    row.pop(ROW_KEY, None)
    if AGENTS in row:
        row[AGENTS] = [recorded(agent) for agent in row[AGENTS]]
    return row


class Health:
    """The monitor of one run: feed it every row of metrics, in order.

    `worst` is the severity of the worst alarm that holds for the last row, whether it was raised
    before or not; None: all is well.

    Args:
        metrics: of the run.
    """

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics
        self._told: set[str] = set()
        self._returns: deque[float] = deque(maxlen=WINDOW)
        self._speeds: list[float] = []
        self._slow_rows = 0
        self.worst: Severity | None = None

    def check(self, update: int, row: Mapping[str, float | None]) -> list[Alarm]:
        """The alarms that this row raises and no row raised before.

        Args:
            update: the row's.
            row: metrics by name; None, or absent: not measured. Rows of an evaluation may come in
                between, and names that are no metrics are ignored.
        """
        values = {name: value for name, value in row.items() if value is not None}
        finite = {name: value for name, value in values.items() if math.isfinite(value)}
        findings = [*_not_finite([n for n in values if n not in finite]), *self._limits(finite)]
        if RETURN in finite:
            findings += self._trend(finite[RETURN])
        if SPEED in finite:
            findings += self._throughput(finite[SPEED])
        alarms = [
            Alarm(rule.name, rule.severity, update, f"{seen}: {rule.advice}")
            for rule, seen in findings
            if rule.name not in self._told
        ]
        self._told.update(alarm.name for alarm in alarms)
        severities = {rule.severity for rule, _ in findings}
        self.worst = next((each for each in reversed(Severity) if each in severities), None)
        return alarms

    def _limits(self, finite: Mapping[str, float]) -> Iterator[Finding]:
        for metric in self._metrics:
            if metric.name not in finite:
                continue
            value = finite[metric.name]
            crossed = [limit for limit in metric.limits if limit.crossed(value)]
            if crossed:
                # The worst one speaks for the others, which would be stale news later.
                self._told.update(limit.alarm for limit in crossed[:-1])
                yield _of_limit(metric, crossed[-1]), f"{metric.name} {value:.4g} is {crossed[-1]}"

    def _trend(self, value: float) -> Iterator[Finding]:
        self._returns.append(value)
        if len(self._returns) == WINDOW:
            yield from trend(list(self._returns))

    def _throughput(self, speed: float) -> Iterator[Finding]:
        usual = median(self._speeds) if len(self._speeds) >= MIN_EARLIER else 0.0
        insort(self._speeds, speed)  # in order, the median is found fast
        self._slow_rows = self._slow_rows + 1 if speed < SLOW * usual else 0
        if self._slow_rows >= SLOW_ROWS:
            yield (
                THROUGHPUT_FALLING,
                f"{SPEED} {speed:,.0f} is below {SLOW:.0%} of {usual:,.0f} for {SLOW_ROWS} rows",
            )


class HealthOfAgents:
    """The monitors of a run's agents, and one of what they share.

    A run of many agents is as well as its best one: `worst` is what holds for all of them.

    Args:
        metrics: of the run.
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

    def check(self, update: int, row: Mapping[str, Any]) -> list[Alarm]:
        """As `Health.check`; what several agents raise with the same row is one alarm."""
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


def trend(returns: Sequence[float]) -> Iterator[Finding]:
    """What is wrong with a window of returns: nothing, `RETURN_FLAT` or `RETURN_OSCILLATING`.

    The noise of a row is estimated from the differences of successive rows, `mean((b - a)^2) / 2`,
    which a slow movement adds next to nothing to (von Neumann, 1941). The return rises if the mean
    of the newer half is above that of the older half by more than the standard error of that gain.
    If it does not, the variance of the window tells the two kinds apart: noise alone makes it as
    large as the noise's own; swings of ten rows and more, or a fall, make it a multiple.
    """
    half = len(returns) // 2
    gain = fmean(returns[half:]) - fmean(returns[:half])
    noise = fmean((b - a) ** 2 for a, b in pairwise(returns)) / 2
    error = math.sqrt(noise * 2 / half)
    if gain > error:
        return
    gained = f"gained {gain:.3g} (standard error {error:.2g}) in {len(returns)} rows"
    if variance(returns) > SWING * noise:
        low, high = min(returns), max(returns)
        yield RETURN_OSCILLATING, f"{RETURN} moved between {low:.4g} and {high:.4g} and {gained}"
    else:
        yield RETURN_FLAT, f"{RETURN} {gained}"


def _not_finite(names: Sequence[str]) -> Iterator[Finding]:
    if names:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        verb = "is" if len(names) == 1 else "are"
        yield NOT_FINITE, f"{', '.join(names[:NAMED])}{more} {verb} not finite"
