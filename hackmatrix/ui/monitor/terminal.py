"""The monitor in a terminal: a table of all metrics with sparklines, the alarms, several runs."""

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table as Grid
from rich.text import Text

from hackmatrix.core.screen import Screen
from hackmatrix.environments.interface.metric import Metric, Severity
from hackmatrix.ui.monitor.curves import FloatArray
from hackmatrix.ui.monitor.metric_groups import health_of, in_groups, in_words, label_of
from hackmatrix.ui.monitor.run import MonitoredRun, Raised
from hackmatrix.ui.monitor.runs import Runs
from hackmatrix.ui.monitor.status import STEPS, Condition, RunProgress, progress_of

_BLOCKS = "▁▂▃▄▅▆▇█"
_STYLES = {None: "", Severity.WARNING: "yellow", Severity.CRITICAL: "red"}
_COLOURS = ("cyan", "yellow", "magenta", "green", "blue", "white")  # of runs
_LABEL, _VALUE, _LEAST_SPARK, _MOST_SPARK = 18, 9, 8, 28  # columns of the screen
_LEAST_COLUMN = _VALUE + _LEAST_SPARK + 2
_BAR = 24
_LARGEST = 6  # ranked metrics of a group
_ALARMS = 5


def show_once(runs: Runs) -> None:
    """Reads everything and prints the table, as high as it is, into a pipe with all runs."""
    runs.read_all()
    console = Screen(highlight=False)
    if not console.is_terminal:  # a file or a pipe is as wide as need be
        console.width = max(console.width, _LABEL + 1 + _LEAST_COLUMN * len(runs.runs))
    console.print(screen(runs, console.width, None))


def follow(runs: Runs, interval: float) -> None:
    """Shows the table until Ctrl+C, and leaves it on the terminal."""
    console = Screen(highlight=False)
    hint = Text(f"every {interval:g} s; Ctrl+C ends; --page shows plots", "dim")
    with Live(console=console, screen=True, auto_refresh=False) as live:
        try:
            live.update(Text("reading …", "dim"), refresh=True)
            while True:
                runs.read_all()
                height = console.height - 1
                live.update(Group(screen(runs, console.width, height), hint), refresh=True)
                time.sleep(interval)
                runs.find_more()
        except KeyboardInterrupt:
            pass
    console.print(screen(runs, console.width, None))


class _Block(NamedTuple):
    """A group of metrics as lines."""

    title: str
    lines: list[list[Text]]  # each a label, then a cell with value and sparkline for each run
    heads: list[Text]  # the runs' names
    spark: int  # width of a sparkline


def screen(runs: Runs, width: int, height: int | None) -> RenderableType:
    """The whole table.

    Args:
        runs: what it shows, as far as it was read.
        width: of the terminal, in characters.
        height: of the terminal; groups of metrics beyond it are left out. None for all.
    """
    shown = runs.runs[: max(1, (width - _LABEL - 1) // _LEAST_COLUMN)]
    head: list[RenderableType] = [_heads(runs.runs, shown, width)]
    if runs.notice:
        head.append(Text(runs.notice, "yellow"))
    if runs.problem:
        head.append(Text(runs.problem, "red"))
    if alarms := _alarms(runs.runs):
        head += [Text(), *alarms]
    used = len(runs.runs) + len(head)
    is_wide = len(shown) == 1 and width >= 2 * (_LABEL + _VALUE + _LEAST_SPARK + 3) + 3
    half = (width - 3) // 2 if is_wide else width
    spark = (half - _LABEL - 1) // len(shown) - _VALUE - 2
    blocks = _blocks(shown, min(max(spark, _LEAST_SPARK), _MOST_SPARK))
    room = None if height is None else max(height - used, 3)
    columns, left_out = _arrange(blocks, 2 if is_wide else 1, room)
    grid = Grid.grid(padding=(0, 3, 0, 0))
    grid.add_row(*(Group(*map(_grid, column)) for column in columns))
    parts = [*head, Text(), grid]
    if left_out:
        parts.append(Text(f"not shown: {', '.join(left_out)}", "dim"))
    return Group(*parts)


def _arrange(
    blocks: Sequence[_Block], columns: int, room: int | None
) -> tuple[list[list[_Block]], list[str]]:
    """The blocks in columns, each in the lowest one, and titles of those without room."""
    arranged: list[list[_Block]] = [[] for _ in range(columns)]
    heights, left_out = [0] * columns, []
    for block in blocks:
        column = heights.index(min(heights))
        height = len(block.lines) + 2
        if room is not None and heights[column] + height > room and any(heights):
            left_out.append(block.title)
            continue
        arranged[column].append(block)
        heights[column] += height
    return [column for column in arranged if column], left_out


def _grid(block: _Block) -> RenderableType:
    grid = Grid.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True, width=_LABEL)
    for _ in block.heads:
        grid.add_column(no_wrap=True, max_width=_VALUE + 1 + block.spark)
    heads = block.heads if len(block.heads) > 1 else []
    grid.add_row(Text(block.title, "bold cyan"), *heads)
    for line in block.lines:
        grid.add_row(*line)
    return Group(grid, Text())


def _blocks(runs: Sequence[MonitoredRun], width: int) -> list[_Block]:
    names = {name for run in runs for name in run.table} - {STEPS}
    blocks = []
    room = _VALUE + 1 + width
    heads = [Text(_end(run.name, room), _style(i)) for i, run in enumerate(runs)]
    for title, metrics in in_groups(names).items():
        lines = [_line(metric, runs, width) for metric in _choose_metrics(metrics, runs)]
        blocks.append(_Block(title, lines, heads, width))
    return blocks


def _end(name: str, width: int) -> str:
    """A name cut at its beginning: those of runs mostly differ at their ends."""
    return name if len(name) <= width else "…" + name[1 - width :]


def _choose_metrics(metrics: Sequence[Metric], runs: Sequence[MonitoredRun]) -> list[Metric]:
    """The metrics of a group, of ranked ones only those that are largest now."""

    def size(metric: Metric) -> float:
        lasts = (run.table.last(metric.name) for run in runs)
        return max((abs(last[1]) for last in lasts if last is not None), default=0.0)

    ranked = [metric for metric in metrics if metric.shown and metric.shown.ranked]
    largest = sorted(ranked, key=size, reverse=True)[:_LARGEST]
    return [metric for metric in metrics if metric not in ranked] + largest


def _line(metric: Metric, runs: Sequence[MonitoredRun], width: int) -> list[Text]:
    line = [Text(label_of(metric), "dim", no_wrap=True, overflow="ellipsis")]
    for run in runs:
        column, last = run.table.column(metric.name), run.table.last(metric.name)
        value = Text("-".rjust(_VALUE), "dim")
        if last is not None:
            words = in_words(metric, last[1]).rjust(_VALUE)
            value = Text(words, _STYLES[health_of(metric, last[1])])
        spark = sparkline(column[np.isfinite(column)], width, metric)
        line.append(Text.assemble(value, " ", spark))
    return line


def sparkline(values: FloatArray, width: int, metric: Metric) -> Text:
    """Values as blocks over their own range, each the median of a part, coloured by its health.

    Args:
        values: float64[rows], finite.
        width: largest number of blocks.
        metric: whose healthy range colours the blocks.
    """
    text = Text(no_wrap=True)
    if not len(values):
        return text
    parts = np.array_split(values, min(width, len(values)))
    medians = [float(np.median(part)) for part in parts]
    low, high = min(medians), max(medians)
    for median in medians:
        share = (median - low) / (high - low) if high > low else 0.0
        block = _BLOCKS[min(int(share * len(_BLOCKS)), len(_BLOCKS) - 1)]
        text.append(block, _STYLES[health_of(metric, median)] or "bright_blue")
    return text


def _heads(
    runs: Sequence[MonitoredRun], shown: Sequence[MonitoredRun], width: int
) -> RenderableType:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    widest = max(len(run.name) for run in runs)
    for least in (1, min(widest, 12), 8, None, None):
        grid.add_column(no_wrap=True, overflow="ellipsis", min_width=least)
    for i, run in enumerate(runs):
        at = progress_of(run)
        name = Text(run.name, _style(i), overflow="ellipsis")
        if run.num_seeds > 1:
            name.append(f"  mean of {run.num_seeds} seeds", "dim")
        if run not in shown:
            name.append("  too narrow for it", "dim")
        mark = Text("●", _STYLES[at.health] or "green")
        cells = [mark, name, _condition(at), _progress(at)]
        grid.add_row(*cells, *([_bar(at)] if width >= 110 else []))
    return grid


def _style(i: int) -> str:
    return f"bold {_COLOURS[i % len(_COLOURS)]}"


def _bar(at: RunProgress) -> Text:
    done = round(_BAR * min(1.0, at.steps / at.total)) if at.total else 0
    return Text.assemble(("━" * done, "green"), ("━" * (_BAR - done), "bright_black"))


def _progress(at: RunProgress) -> Text:
    if not at.total:
        return Text(f"update {at.update:,}  {at.steps:,} steps")
    percent = min(100, 100 * at.steps // at.total)
    return Text(f"{percent:3}%  update {at.update:,}  {at.steps:,} of {at.total:,} steps")


def _condition(at: RunProgress) -> Text:
    if at.condition is Condition.RUNNING and at.seconds_left is not None:
        return Text(f"running, {duration(at.seconds_left)} left", "green")
    if at.condition is Condition.SILENT and at.silent_seconds is not None:
        return Text(f"no row for {duration(at.silent_seconds)}", "yellow")
    styles = {Condition.WAITING: "dim", Condition.GONE: "red"}
    return Text(at.condition.value, styles.get(at.condition, "green"))


def duration(seconds: float) -> str:
    """Seconds in the largest two units."""
    minutes, hours, days = seconds / 60, seconds / 3600, seconds / 86400
    if minutes < 1:
        return f"{seconds:.0f} s"
    if hours < 1:
        return f"{minutes:.0f} min"
    return f"{hours:.0f} h {minutes % 60:.0f} min" if days < 2 else f"{days:.0f} days"


def _alarms(runs: Sequence[MonitoredRun]) -> list[Text]:
    """A line for each of the newest alarms."""
    raised: list[tuple[Raised, MonitoredRun]] = [
        (alarm, run) for run in runs for alarm in run.alarms
    ]
    raised.sort(key=lambda pair: pair[0].update)
    lines = []
    for alarm, run in raised[: -_ALARMS - 1 : -1]:
        whose = f"{run.name}  " if len(runs) > 1 else ""
        start = f"! {whose}update {alarm.update:,}  {alarm.name}  "
        text = Text(start, _STYLES[alarm.severity], no_wrap=True, overflow="ellipsis")
        lines.append(text.append(alarm.message, "dim"))
    if len(raised) > _ALARMS:
        lines.append(Text(f"  and {len(raised) - _ALARMS} earlier alarms", "dim"))
    return lines
