"""What a training run shows: a live bar on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console as RichConsole
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

Row = Mapping[str, float | None]

# What the line shows of a row of metrics: label, metric, format.
_SHOWN = (
    ("steps/s", "train/steps_per_second", ",.0f"),
    ("return", "train/mean_episode_return", ".2f"),
    ("stage", "stats/mean_stage", ".2f"),
    ("entropy", "train/entropy", ".3f"),
    ("KL", "train/approx_kl", ".4f"),
)


class Console:
    """Shows a run's progress; a context manager, which takes the bar off the screen at its end."""

    def __init__(
        self, total_updates: int, steps_per_update: int, file: TextIO | None = None
    ) -> None:
        self._total = total_updates
        self._steps = steps_per_update
        self._file = file = file or sys.stdout
        self._bar = _bar(file) if file.isatty() else None
        self._task = None if self._bar is None else self._bar.add_task("", total=total_updates)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, text: str) -> None:
        """Prints a line of text."""
        if self._bar is not None:
            self._bar.console.print(text, highlight=False, markup=False, soft_wrap=True)
        else:
            print(text, file=self._file, flush=True)

    def advance(self, update: int) -> None:
        """Moves the bar to `update` updates."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=update)

    def log(self, update: int, row: Row) -> None:
        """Shows a row of metrics."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=summary(row))
        else:
            done = f"update {update:,}/{self._total:,}  {update * self._steps:,} steps"
            self.say(f"{done}  {summary(row)}")


def summary(row: Row) -> str:
    """One line with the metrics one looks at first; `-` for what has no value yet."""
    parts = []
    for label, name, form in _SHOWN:
        if name in row:
            value = row[name]
            parts.append(f"{label} {'-' if value is None else format(value, form)}")
    return "  ".join(parts)


def _bar(file: TextIO) -> Progress:
    return Progress(
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:3.0f}%"),
        TextColumn("{task.description}"),
        TimeRemainingColumn(compact=True),
        console=RichConsole(file=file),
        refresh_per_second=4,
    )
