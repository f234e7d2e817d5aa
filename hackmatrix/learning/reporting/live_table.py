"""The live table of a run on a terminal: progress, metrics in groups, notes, current waits."""

import math
from collections.abc import Mapping, Sequence

from rich import progress
from rich.columns import Columns
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import SegmentLines
from rich.table import Table
from rich.text import Text

from hackmatrix.environments.interface.metric import Metric, Severity, Shown

_STYLES = {Severity.WARNING: "yellow", Severity.CRITICAL: "red"}
_LARGEST = 6  # maximum number of ranked metrics in a group


class LiveTable:
    """A rich renderable of the run's current state; other threads may change its attributes."""

    def __init__(self) -> None:
        self._progress = progress.Progress(
            progress.BarColumn(40, complete_style="cyan", finished_style="green"),
            progress.TaskProgressColumn(),
            progress.TimeElapsedColumn(),
            progress.TextColumn("elapsed "),
            progress.TimeRemainingColumn(),
            progress.TextColumn("left"),
            speed_estimate_period=3600,  # updates may take minutes
        )
        self.groups: Columns | None = None
        self.notes: dict[str, str] = {}
        self.waiting = progress.Progress(
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}", markup=False),
            progress.TimeElapsedColumn(),
        )
        self._drawn: tuple[Columns, int, SegmentLines] | None = None

    def begin(
        self, name: str, total: int, steps_per_update: int, first: int, first_steps: int
    ) -> None:
        """Starts the progress display; see `Console.begin`."""
        self._total, self._steps_per_update = total, steps_per_update
        self._first, self._first_steps = first, first_steps
        self._task = self._progress.add_task(name, total=total, completed=first)

    def advance(self, update: int) -> None:
        """Shows that `update` updates have been made."""
        self._progress.update(self._task, completed=update)

    def heading(self, update: int) -> str:
        """The run's progress after `update` updates, as text."""
        steps = self._first_steps + (update - self._first) * self._steps_per_update
        return f"update {update:,}/{self._total:,}  {steps:,} steps"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for task in self._progress.tasks:
            heading = f"  {self.heading(int(task.completed))}"
            yield _line((task.description, "bold"), (heading, ""))
            yield self._progress
        if self.groups is not None:
            yield ""
            yield self._lines_of(self.groups, console, options)
        if self.notes:
            yield ""
            width = max(map(len, self.notes))
            for label, text in self.notes.items():
                yield _line((f"{label:<{width}}  ", "dim"), (text, ""))
        if self.waiting.tasks:
            yield self.waiting

    def _lines_of(self, groups: Columns, console: Console, options: ConsoleOptions) -> SegmentLines:
        """The rendered groups, cached until they or the width change, as rendering takes 7 ms."""
        width = options.max_width
        if self._drawn is None or self._drawn[:2] != (groups, width):
            lines = console.render_lines(groups, options, pad=False)
            self._drawn = groups, width, SegmentLines(lines, new_lines=True)
        return self._drawn[2]


def _line(*pieces: tuple[str, str]) -> Text:
    return Text.assemble(*pieces, no_wrap=True, overflow="ellipsis")


def groups_of(metrics: Sequence[Metric], row: Mapping[str, float | None]) -> Columns:
    """The row's metrics in their groups, laid out in columns."""
    groups: dict[str, list[tuple[Metric, Shown]]] = {}
    for metric in metrics:
        if metric.shown is not None:
            groups.setdefault(metric.shown.group, []).append((metric, metric.shown))
    tables = []
    for title, members in groups.items():
        ranked = [(m, shown) for m, shown in members if shown.ranked and row.get(m.name)]
        ranked.sort(key=lambda pair: -abs(row[pair[0].name] or 0.0))
        chosen = [pair for pair in members if not pair[1].ranked] + ranked[:_LARGEST]
        if any(row.get(metric.name) is not None for metric, _ in chosen):
            table = Table.grid(padding=(0, 1))
            table.title, table.title_style, table.title_justify = title, "bold cyan", "left"
            table.add_column(style="dim", no_wrap=True)
            table.add_column(justify="right", no_wrap=True)
            for metric, shown in chosen:
                table.add_row(Text(shown.label), _text_of(metric, shown, row.get(metric.name)))
            tables.append(table)
    return Columns(tables, padding=(0, 2))


def summary(metrics: Sequence[Metric], row: Mapping[str, float | None]) -> str:
    """One line with the most important metrics; `-` for values not measured."""
    parts = []
    for metric in metrics:
        if metric.shown is not None and metric.shown.in_summary and metric.name in row:
            text = _text_of(metric, metric.shown, row[metric.name]).plain
            parts.append(f"{metric.shown.label} {text}")
    return "  ".join(parts)


def _text_of(metric: Metric, shown: Shown, value: float | None) -> Text:
    if value is None:
        return Text("-", "dim")
    if not math.isfinite(value):
        return Text(str(value), "bold red")
    crossed = [limit.severity for limit in metric.limits if limit.is_crossed(value)]
    return Text(format(value, shown.form), _STYLES[crossed[-1]] if crossed else "")
