"""The type of a metric: its name, what it averages over, its healthy range. Imports no JAX."""

import math
from enum import Enum
from typing import NamedTuple


class Over(Enum):
    """The steps that a metric averages over, since the last row of metrics or evaluation."""

    UPDATES = "mean over updates"
    STEPS = "mean over actions"
    EPISODES = "mean over finished games"
    HIGHEST = "highest of finished games"
    CHANCES = "mean over chances"  # the environment says how many chances a step has
    LOOP = "measured by the loop"
    EVALUATION = "games of the last evaluation"


class Severity(Enum):
    """The severity of an alarm; `--on-unhealthy stop` stops at a critical one."""

    WARNING = "warning"
    CRITICAL = "critical"


class Limit(NamedTuple):
    """A bound of a metric's healthy range, and the alarm raised beyond it."""

    alarm: str
    severity: Severity
    advice: str  # what is wrong, and what to do
    below: float | None = None
    above: float | None = None

    def is_crossed(self, value: float) -> bool:
        """Whether `value` is beyond the limit; the limit itself is healthy."""
        return (self.below is not None and value < self.below) or (
            self.above is not None and value > self.above
        )

    def __str__(self) -> str:
        return f"below {self.below:g}" if self.below is not None else f"above {self.above:g}"


class Shown(NamedTuple):
    """A metric's form in the console table."""

    group: str  # title of the column, such as "GAME"
    label: str
    form: str  # a format specification, such as ".1%"
    ranked: bool = False  # shown only if it is among the largest of its group
    in_summary: bool = False  # also in the one line that a log shows


class Metric(NamedTuple):
    """A metric: one row of a table of metrics."""

    name: str  # such as "stats/win_rate"
    over: Over
    meaning: str
    limits: tuple[Limit, ...] = ()  # from the mildest to the worst
    shown: Shown | None = None
    judged: bool = False  # whether alarms tell that it no longer rises
    enough: float = math.inf  # a return from which on it need not rise
