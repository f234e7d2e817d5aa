"""The console of a training run: a live table on a terminal, plain lines elsewhere.

All is logged.
"""

import errno
import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self, TextIO, cast

from rich import progress
from rich.columns import Columns
from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.segment import SegmentLines
from rich.table import Table
from rich.text import Text

from hackmatrix.core.files import open_no_link
from hackmatrix.core.screen import Screen
from hackmatrix.core.streams import below, clean, discard_output
from hackmatrix.environments.interface.metric import Metric, Severity, Shown

# --- The live table of a run on a terminal: progress, metrics in groups, notes, current waits -----


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

    def __rich_console__(self, console: RichConsole, options: ConsoleOptions) -> RenderResult:
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

    def _lines_of(
        self, groups: Columns, console: RichConsole, options: ConsoleOptions
    ) -> SegmentLines:
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


# --- The console of a training run: a live table on a terminal, plain lines elsewhere -------------


_REFRESH_SECONDS = 0.5
_GONE = (errno.EPIPE, errno.EIO, errno.EBADF)  # a pipe without reader, a terminal that hung up


class Console:
    """Displays a run from its first line on; a context manager that restores the terminal.

    Other threads and signal handlers may use it at any time. Nothing that happens to the output
    ends the run or its log: a full disk, a closed pipe, a terminal that is gone.

    Args:
        file: the file to write to; by default standard output.
    """

    def __init__(self, file: TextIO | None = None) -> None:
        self._output = _Output(file if file is not None else below(sys.stdout))
        self._table = LiveTable()
        self._live = _live(self._table, self._output) if self._output.can_draw else None
        self._refresher = threading.Thread(target=self._refresh, daemon=True)
        self._ended = threading.Event()
        self._said: deque[tuple[str, str]] = deque()  # queue of lines to print, with their styles
        self._showing = threading.Lock()
        self._metrics: Sequence[Metric] = ()
        self._log: int | None = None  # handle of the open file
        self._log_path = Path()
        self._log_failed = False
        self._unlogged: list[str] = []

    def __enter__(self) -> Self:
        if self._live is not None:
            with suppress(Exception):
                self._live.start()
            self._refresher.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._ended.set()
            self._refresher.join()
            with suppress(Exception):
                sys.stdout.flush()  # otherwise output without a final newline is lost
                sys.stderr.flush()
            self._show()
            with suppress(Exception):
                self._live.stop()
        if self._log is not None:
            os.close(self._log)
            self._log = None

    def say(self, text: str) -> None:
        """Shows a line of text."""
        self._say(text, "")

    def warn(self, text: str) -> None:
        """Shows a warning."""
        self._say(f"warning: {text}", "yellow")

    def keep_log(self, path: Path) -> None:
        """Appends all output, past and future, to a file, each line with its time.

        The file stays open, so that what follows never goes to another one of the same name. If it
        can't be written, a warning is printed once and the run continues.
        """
        self._log_path, self._log_failed = path, False
        lines, self._unlogged = "".join(self._unlogged), []
        try:
            self._log = open_no_link(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        except OSError as error:
            self._warn_log_failed(error)
        else:
            self._append_to_log(lines)

    def begin(
        self,
        name: str,
        metrics: Sequence[Metric],
        total_updates: int,
        steps_per_update: int,
        first_update: int = 0,
        first_steps: int = 0,
    ) -> None:
        """Starts the progress display.

        Args:
            name: name of the run.
            metrics: metrics of the run.
            total_updates: length of the run, earlier sessions included.
            steps_per_update: environment steps of one update.
            first_update: number of updates made by earlier sessions.
            first_steps: environment steps of those updates, which may have had another size.
        """
        self._metrics = metrics
        self._table.begin(name, total_updates, steps_per_update, first_update, first_steps)

    def advance(self, update: int) -> None:
        """Shows that `update` updates have been made."""
        self._table.advance(update)

    def log(self, update: int, row: Mapping[str, float | None]) -> None:
        """Shows the row of metrics of the updates up to `update`; None for values not measured."""
        self._table.groups = groups_of(self._metrics, row)
        self._tell(f"{self._table.heading(update)}  {summary(self._metrics, row)}")

    def note(self, label: str, text: str) -> None:
        """Shows a short status text, in place of the last one with this label."""
        self._table.notes = {**self._table.notes, label: text}
        self._tell(f"{label}: {text}")

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Shows a text while the context is active; on a terminal with the elapsed seconds."""
        self._tell(text)
        task = self._table.waiting.add_task(text)
        try:
            yield
        finally:
            self._table.waiting.remove_task(task)

    def _tell(self, text: str) -> None:
        """Logs text that the table already shows; without a table, prints it as a line."""
        if self._live is not None and self._live.is_started:
            self._keep(text)
        else:
            self.say(text)

    def _say(self, text: str, style: str) -> None:
        text = clean(text)
        self._keep(text)
        self._said.append((text, style))
        self._show()

    def _show(self) -> None:
        """Prints the queued lines; if another call is already printing, that call prints them too.

        It never blocks, so a signal handler may call it while the interrupted thread is printing.
        """
        while self._showing.acquire(blocking=False):
            try:
                said = [self._said.popleft() for _ in range(len(self._said))]
                with suppress(Exception):  # what can't be shown is still logged
                    self._print(said)
            finally:
                self._showing.release()
            if not self._said:
                return

    def _print(self, said: Sequence[tuple[str, str]]) -> None:
        if self._live is None:
            self._output.write("".join(f"{text}\n" for text, _ in said))
        elif said:
            texts = [Text(t, style, no_wrap=True, overflow="ignore") for t, style in said]
            self._live.console.print(Group(*texts), crop=False)
        elif self._live.is_started:
            self._live.refresh()

    def _refresh(self) -> None:
        while not self._ended.wait(_REFRESH_SECONDS):
            self._show()

    def _keep(self, text: str) -> None:
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        lines = "".join(f"{now}  {line}\n" for line in clean(text).splitlines() or [""])
        if self._log is not None:
            self._append_to_log(lines)
        elif not self._log_failed:
            self._unlogged.append(lines)

    def _append_to_log(self, lines: str) -> None:
        try:
            os.write(cast(int, self._log), lines.encode("utf-8", "replace"))
        except OSError as error:
            self._warn_log_failed(error)

    def _warn_log_failed(self, error: OSError) -> None:
        if not self._log_failed:
            self._log_failed = True
            reason = error.strerror or error
            self.warn(f"can't write {self._log_path}: {reason}; the run goes on")


class _Output:
    """A text file whose `write` accepts any character and never raises.

    Args:
        file: None if standard output was closed before the process began.
    """

    def __init__(self, file: TextIO | None) -> None:
        self.file = file
        self._encoding = getattr(file, "encoding", None) or "utf-8"
        is_dumb = os.environ.get("TERM", "") in ("", "dumb", "unknown")
        self.can_draw = self.isatty() and self._encoding.lower().startswith("utf") and not is_dumb

    def isatty(self) -> bool:
        try:
            return self.file is not None and self.file.isatty()
        except Exception:  # it is closed
            return False

    def write(self, text: str) -> None:
        if self.file is None:
            return
        try:
            self.file.write(text.encode(self._encoding, "replace").decode(self._encoding))
            self.file.flush()
        except OSError as error:
            if error.errno in _GONE and self.file is below(sys.stdout):
                discard_output()
        except Exception:  # such as ValueError if it was closed
            pass

    def flush(self) -> None:
        pass


def _live(table: LiveTable, output: _Output) -> Live:
    """The live table at the bottom of a terminal; other output is printed above it."""
    screen = Screen(file=cast(TextIO, output), force_terminal=True, markup=False)
    is_standard = output.file is below(sys.stdout)
    return Live(
        table,
        console=screen,
        auto_refresh=False,
        redirect_stdout=is_standard,
        redirect_stderr=is_standard and sys.stderr.isatty(),
    )
