"""The table that a terminal shows of a training run, as plain lines of styled text."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from hackmatrix.interface.metric import Severity
from hackmatrix.reporting.metrics import METRICS
from hackmatrix.rules.actions import ACTION_NAMES, FIRST_PROGRAM
from hackmatrix.rules.rewards import REWARD_PARTS

Row = Mapping[str, float | None]
Line = list[tuple[str, str]]  # pieces of text and their styles, as rich names them


class _Shown(NamedTuple):
    """A metric as the display shows it."""

    label: str
    metric: str
    form: str


# The summary: what one looks at first.
_SUMMARY = (
    _Shown("steps/s", "train/steps_per_second", ",.0f"),
    _Shown("return", "train/mean_episode_return", ".2f"),
    _Shown("stage", "stats/mean_stage", ".2f"),
    _Shown("entropy", "train/entropy", ".3f"),
    _Shown("KL", "train/approx_kl", ".4f"),
)
# The table's groups. Labels and forms are as wide as four groups in 80 columns allow.
_LEARNING = (
    _Shown("return", "train/mean_episode_return", ",.2f"),
    _Shown("length", "train/mean_episode_length", ",.1f"),
    _Shown("episodes", "train/num_episodes", ",.0f"),
    _Shown("entropy", "train/entropy", ".3f"),
    _Shown("- of random", "train/entropy_frac", ".1%"),
    _Shown("KL", "train/approx_kl", ".4f"),
    _Shown("clipped", "train/clip_frac", ".1%"),
    _Shown("expl. var.", "train/explained_variance", ".3f"),
    _Shown("total loss", "train/total_loss", ".4f"),
    _Shown("policy loss", "train/pg_loss", ".4f"),
    _Shown("value loss", "train/vf_loss", ".4f"),
    _Shown("grad norm", "train/grad_norm", ".3f"),
    _Shown("lr", "train/learning_rate", ".3g"),
)
_GAME = (
    _Shown("stage", "stats/mean_stage", ".2f"),
    _Shown("highest", "stats/highest_stage", ".0f"),
    _Shown("win rate", "stats/win_rate", ".1%"),
    _Shown("score", "stats/mean_score", ",.2f"),
    _Shown("programs", "stats/programs_owned", ".2f"),
)
_ACTIONS = (
    _Shown("move", "actions/move_frac", ".1%"),
    _Shown("siphon", "actions/siphon_frac", ".1%"),
    _Shown("program", "actions/program_frac", ".1%"),
)
_PROGRAMS = tuple(
    _Shown(name, f"actions/program/{name}", ".1%") for name in ACTION_NAMES[FIRST_PROGRAM:]
)
_PROGRAMS_SHOWN = 3
_ALL_REWARD = _Shown("total", "train/mean_reward", "+.4f")
_REWARD = tuple(
    _Shown(part.removesuffix("_penalty").replace("_", " "), f"reward/{part}", "+.4f")
    for part in REWARD_PARTS
)
_VALUE_WIDTH = 7  # longer ones are shortened: 1,234,567 to 1.235M

_SPINNER_SECONDS = 0.25  # of a step of the spinner
_SMALLEST = os.terminal_size((60, 24))  # a smaller terminal gets no groups
_MAX_WIDTH = 132  # the table grows no wider: eyes have to follow a row
_MAX_NAME = 40
MAX_TREND = 20
_MIN_TREND = 6


_LIMITS = {metric.name: metric.limits for metric in METRICS}
_STYLES = {Severity.WARNING: "yellow", Severity.CRITICAL: "red"}


def style_of(metric: str, value: float) -> str:
    """The style of a metric's value, as rich names it: "" where the value is healthy."""
    crossed = [limit for limit in _LIMITS.get(metric, ()) if limit.crossed(value)]
    return _STYLES[crossed[-1].severity] if crossed else ""


def summary(row: Row) -> str:
    """One line with the metrics one looks at first; `-` for what has no value yet."""
    parts = []
    for label, name, form in _SUMMARY:
        if name in row:
            value = row[name]
            parts.append(f"{label} {'-' if value is None else format(value, form)}")
    return "  ".join(parts)


class Progress(NamedTuple):
    """How far training is."""

    name: str
    total: int
    steps_per_update: int
    first: int
    update: int
    began: float
    advanced: float  # when `update` was done

    def remaining(self, now: float) -> float | None:
        """Seconds to the end by the rate so far, None before there is one."""
        done = self.update - self.first
        if done <= 0:
            return None
        seconds = (self.advanced - self.began) / done
        return max(0.0, (self.total - self.update) * seconds - (now - self.advanced))


class View(NamedTuple):
    """What the table shows."""

    progress: Progress | None
    row: Row | None
    trends: Mapping[str, tuple[float, ...]]  # the newest values of each metric
    notes: Mapping[str, str]
    waiting: tuple[str, float] | None  # what for, and since when


class _Cell(NamedTuple):
    """A label and its value in a group."""

    label: str
    value: str
    style: str
    trend: tuple[float, ...]


class _Group(NamedTuple):
    """A column of the table."""

    title: str
    cells: list[_Cell]
    trends: bool

    @property
    def value_width(self) -> int:
        """Columns of the values."""
        return max(len(cell.value) for cell in self.cells)

    @property
    def width(self) -> int:
        """Columns it takes, without trends."""
        labels = max(len(cell.label) for cell in self.cells)
        return max(len(self.title), labels + 1 + self.value_width)


def table_of(view: View, now: float, size: os.terminal_size) -> list[Line]:
    """The lines of the table. The cursor needs the terminal's last line."""
    width, height = min(size.columns, _MAX_WIDTH), size.lines - 1
    foot = _notes(view.notes)
    if view.waiting is not None:
        text, since = view.waiting
        spinner = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"[int(now / _SPINNER_SECONDS) % 10]
        foot.append([(f"{spinner} ", "cyan"), (f"{text} {int(now - since)} s", "")])
    if view.progress is None:
        return foot[-1:] if view.waiting is not None else []
    head = _heading(view.progress, view.row, now, width)
    if size.columns < _SMALLEST.columns or size.lines < _SMALLEST.lines:
        short = [[(summary(view.row), "")]] if view.row else []
        return (head + short)[:height]
    foot = [[], *foot] if foot else []
    body: list[Line] = []
    if view.row and (groups := _groups(view.row, view.trends)):
        body = [[], *_side_by_side(groups, width)][: max(0, height - len(head) - len(foot))]
    return (head + body + foot)[:height]


def _heading(progress: Progress, row: Row | None, now: float, width: int) -> list[Line]:
    share = min(1.0, progress.update / max(1, progress.total))
    name = progress.name[:_MAX_NAME]
    percent = f"{int(1_000 * share) / 10:5.1f}%"
    bar_width = max(0, width - len(name) - len(percent) - 3)
    full = int(bar_width * share)
    bar = [("━" * full, "cyan"), ("─" * (bar_width - full), "dim")]
    first: Line = [(name, "bold"), (f"  {percent} ", ""), *bar]
    facts = _facts(progress, row, now, lambda value: format(value, ",.0f"))
    short = _facts(progress, row, now, _compact)
    seconds = [_joined(some) for some in (facts, short, short[:-1])]
    return [first, next((line for line in seconds if _width(line) <= width), seconds[-1])]


def _facts(
    progress: Progress, row: Row | None, now: float, number: Callable[[float], str]
) -> list[Line]:
    steps = progress.update * progress.steps_per_update
    elapsed = now - progress.began
    rate = (row or {}).get("train/steps_per_second")
    if rate is None and progress.update > progress.first:
        done = (progress.update - progress.first) * progress.steps_per_update
        rate = done / max(1e-9, progress.advanced - progress.began)
    remaining = progress.remaining(now)
    facts = [
        (f"{progress.update:,}/{progress.total:,}", "updates"),
        (number(steps), "steps"),
        ("-" if rate is None else number(rate), "steps/s"),
        ("-" if remaining is None else _duration(remaining), "left"),
        (_duration(elapsed), "elapsed"),
    ]
    return [[(value, ""), (f" {unit}", "dim")] for value, unit in facts]


def _joined(facts: Sequence[Line]) -> Line:
    return [piece for fact in facts for piece in [*fact, ("   ", "")]][:-1]


def _width(line: Line) -> int:
    return sum(len(text) for text, _ in line)


def _duration(seconds: float) -> str:
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}d {hour:02d}h"
    return f"{hour}:{minute:02d}:{second:02d}" if hour else f"{minute}:{second:02d}"


def _notes(notes: Mapping[str, str]) -> list[Line]:
    width = max(map(len, notes), default=0)
    return [
        [(f"{label:<{width}}  ", "dim"), (" ".join(text.split()), "")]
        for label, text in notes.items()
    ]


def _groups(row: Row, trends: Mapping[str, tuple[float, ...]]) -> list[_Group]:
    """The groups of which the row has values."""

    def by_size(shown: Sequence[_Shown]) -> list[_Shown]:
        used = [one for one in shown if row.get(one.metric)]
        return sorted(used, key=lambda one: -abs(row.get(one.metric) or 0.0))

    programs = by_size(_PROGRAMS)[:_PROGRAMS_SHOWN]
    parts = by_size(_REWARD)[: len(_LEARNING) - 1]
    groups = (  # title, what has to be there, what is shown, whether with trends
        ("LEARNING", _LEARNING, _LEARNING, True),
        ("GAME", _GAME, _GAME, True),
        ("ACTIONS", _ACTIONS, (*_ACTIONS, *programs), False),
        ("REWARD PER ACTION", _REWARD, (_ALL_REWARD, *parts), False),
    )
    return [
        _Group(title, [_cell(one, row, trends) for one in shown], with_trends)
        for title, needed, shown, with_trends in groups
        if any(row.get(one.metric) is not None for one in needed)
    ]


def _cell(shown: _Shown, row: Row, trends: Mapping[str, tuple[float, ...]]) -> _Cell:
    value = row.get(shown.metric)
    if value is None:
        return _Cell(shown.label, "-", "dim", ())
    text = format(value, shown.form)
    if len(text) > _VALUE_WIDTH:
        text = _compact(value, "+" if shown.form.startswith("+") else "")
    style = style_of(shown.metric, value) if math.isfinite(value) else "bold red"
    return _Cell(shown.label, text, style, trends.get(shown.metric, ()))


def _compact(value: float, sign: str = "") -> str:
    """At most four digits: 12.35k."""
    for unit in ("", "k", "M", "B", "T"):
        if abs(value) < 999.95 or unit == "T":
            break
        value /= 1_000
    return f"{value:{sign}.4g}{unit}"


def _side_by_side(groups: Sequence[_Group], width: int) -> list[Line]:
    """Groups in columns; those that find no room go under the others."""
    bands: list[list[_Group]] = [[]]
    for group in groups:
        if sum(one.width + 2 for one in bands[-1]) + group.width > width:
            bands.append([])
        bands[-1].append(group)
    lines: list[Line] = []
    for band in bands:
        lines += [[]] if lines else []
        lines += _band(band, width)
    return lines


def _band(groups: Sequence[_Group], width: int) -> list[Line]:
    """Room that is left goes to trends, then between the columns."""
    gaps = len(groups) - 1
    room = width - sum(group.width for group in groups)
    trending = sum(group.trends for group in groups)
    trend = (room - 4 * gaps) // max(1, trending) - 1
    trend = min(MAX_TREND, trend) if trending and trend >= _MIN_TREND else 0
    if trend:
        room -= trending * (trend + 1)
    gap = " " * min(6, room // max(1, gaps))
    columns = [_column(group, trend if group.trends else 0) for group in groups]
    lines: list[Line] = []
    for row in zip_longest(*columns):
        line: Line = []
        for piece, column in zip(row, columns, strict=True):
            blank = " " * _width(column[0])
            line += [*(piece or [(blank, "")]), (gap, "")]
        lines.append(line[:-1])
    return lines


def _column(group: _Group, trend: int) -> list[Line]:
    values = group.value_width
    labels = group.width - values - 1
    width = group.width + (trend + 1 if trend else 0)
    lines: list[Line] = [[(f"{group.title:<{width}}", "bold cyan")]]
    for cell in group.cells:
        line = [(f"{cell.label:<{labels}} ", "dim")]
        if trend:
            line.append((f"{_sparkline(cell.trend[-trend:]):>{trend}} ", "dim cyan"))
        lines.append([*line, (f"{cell.value:>{values}}", cell.style)])
    return lines


def _sparkline(values: Sequence[float]) -> str:
    low, high = min(values, default=0.0), max(values, default=0.0)
    steps = [6 * (value - low) / (high - low) if high > low else 0.0 for value in values]
    return "".join("▁▂▃▄▅▆▇"[round(step)] for step in steps)
