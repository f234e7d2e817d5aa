"""What a training run shows: a live table on a terminal, plain lines elsewhere; all is logged."""

import math
import os
import shutil
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO, cast

from hackmatrix.reporting.table import MAX_TREND, Line, Progress, Row, View, summary, table_of

if TYPE_CHECKING:
    from rich.text import Text


_REFRESH_SECONDS = 0.25
_REMEMBERED = 1_000  # lines


class Console:
    """Shows a run, from its first line on; a context manager, which leaves the terminal tidy.

    On a terminal a thread draws, so that the clock goes on while the device works. Threads and
    handlers of signals may speak at any time.
    """

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file or sys.stdout
        self.closed = False  # whether the reader of a pipe is gone
        self._screen = _Screen(self._file) if _draws(self._file) else None
        self._said: deque[tuple[str, str]] = deque()  # lines to be written, and their styles
        self._writing = threading.Lock()
        self._ended = threading.Event()
        self._log: Path | None = None
        self._log_failed = False
        self._unlogged: deque[str] = deque(maxlen=_REMEMBERED)
        self._progress: Progress | None = None
        self._row: Row | None = None
        self._trends: dict[str, tuple[float, ...]] = {}
        self._notes: dict[str, str] = {}
        self._waiting: tuple[str, float] | None = None
        self._cleanup = ExitStack()

    def __enter__(self) -> Self:
        if self._screen is not None:
            drawer = threading.Thread(target=self._refresh, daemon=True)
            drawer.start()
            self._cleanup.callback(self._leave)
            self._cleanup.callback(self._write)
            self._cleanup.callback(drawer.join)
            self._cleanup.callback(self._ended.set)
            self._redirect()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._cleanup.close()

    def say(self, text: str) -> None:
        """Shows a line of text."""
        self._say(text, "")

    def warn(self, text: str) -> None:
        """Shows a warning."""
        self._say(f"warning: {text}", "yellow")

    def keep_log(self, path: Path) -> None:
        """Appends what was shown and from now on is shown to a file, with the time of each line.

        A file that can't be written to is told once and ends nothing.
        """
        self._log = path
        self._log_failed = False
        stamped = "".join(self._unlogged)
        self._unlogged.clear()
        self._append_to_log(stamped)

    def begin(
        self, name: str, total_updates: int, steps_per_update: int, first_update: int = 0
    ) -> None:
        """Training begins: a terminal shows the table from now on.

        Args:
            name: the run's.
            total_updates: the run's length, earlier sessions included.
            steps_per_update: environment steps of an update.
            first_update: updates done by earlier sessions.
        """
        now = time.monotonic()
        self._progress = Progress(
            name, total_updates, steps_per_update, first_update, first_update, now, now
        )
        self._write()

    def advance(self, update: int) -> None:
        """`update` updates are done."""
        self._progress = self._begun()._replace(update=update, advanced=time.monotonic())

    def log(self, update: int, row: Row) -> None:
        """Shows a row of metrics, those of the updates up to `update`."""
        progress = self._begun()
        for name, value in row.items():
            if value is not None and math.isfinite(value):
                self._trends[name] = (*self._trends.get(name, ()), value)[-MAX_TREND:]
        self._row = dict(row)
        done = f"update {update:,}/{progress.total:,}"
        steps = f"{update * progress.steps_per_update:,} steps"
        self._tell(f"{done}  {steps}  {summary(row)}")

    def note(self, label: str, text: str) -> None:
        """Shows how something stands; takes the place of the last note of this label."""
        if self._notes.get(label) != text:
            self._notes[label] = text
            self._tell(f"{label}: {text}")

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Shows what is waited for while entered, on a terminal with the seconds it takes."""
        self._tell(text)
        self._waiting = text, time.monotonic()
        try:
            yield
        finally:
            self._waiting = None

    def _begun(self) -> Progress:
        if self._progress is None:
            raise RuntimeError("begin() comes before advance() and log()")
        return self._progress

    def _tell(self, text: str) -> None:
        """Logs what a terminal shows in its table, and what is a line elsewhere."""
        if self._screen is None:
            self.say(text)
        else:
            self._keep(text)

    def _say(self, text: str, style: str) -> None:
        self._keep(text)
        self._said.append((text, style))
        self._write()

    def _write(self) -> None:
        """Writes what was said and draws the table, unless that is under way.

        Whoever is at it, another thread or what a signal interrupted, goes on to what is new.
        """
        while self._writing.acquire(blocking=False):
            try:
                said = [self._said.popleft() for _ in range(len(self._said))]
                if self._screen is None:
                    _write(self._file, "".join(f"{text}\n" for text, _ in said))
                else:
                    self._screen.draw(said, self._view())
            except BrokenPipeError:
                self.closed = True  # the run ends as after Ctrl+C
            finally:
                self._writing.release()
            if not self._said:
                return

    def _view(self) -> View:
        """A copy, so that nothing changes while it is drawn."""
        return View(
            self._progress, self._row, self._trends.copy(), self._notes.copy(), self._waiting
        )

    def _refresh(self) -> None:
        while not self._ended.wait(_REFRESH_SECONDS):
            self._write()

    def _leave(self) -> None:
        if self._screen is not None:
            self._screen.end()
        self._screen = None  # what is said from now on stands under the table

    def _redirect(self) -> None:
        """What others print goes above the table instead of through it."""

        def pass_on(line: str) -> None:
            self._said.append((line, ""))  # the thread writes it: a flood costs a draw, not many

        if sys.stdout is self._file:
            stdout = self._cleanup.enter_context(_Lines(sys.stdout, pass_on))
            self._cleanup.enter_context(redirect_stdout(cast(TextIO, stdout)))
        if sys.stderr.isatty():
            stderr = self._cleanup.enter_context(_Lines(sys.stderr, pass_on))
            self._cleanup.enter_context(redirect_stderr(cast(TextIO, stderr)))

    def _keep(self, text: str) -> None:
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        stamped = "".join(f"{now}  {line}\n" for line in text.splitlines() or [""])
        if self._log is None:
            self._unlogged.append(stamped)
        else:
            self._append_to_log(stamped)

    def _append_to_log(self, stamped: str) -> None:
        try:
            with cast(Path, self._log).open("a", encoding="utf-8", errors="replace") as file:
                file.write(stamped)
        except OSError as error:
            if not self._log_failed:
                self._log_failed = True
                self.warn(f"can't write {self._log}: {error.strerror or error}; the run goes on")


def _draws(file: TextIO) -> bool:
    """Whether a file is a terminal that can show a table."""
    utf = (getattr(file, "encoding", None) or "utf-8").lower().startswith("utf")
    return file.isatty() and utf and os.environ.get("TERM", "") not in ("", "dumb", "unknown")


def _write(file: TextIO, text: str) -> None:
    """Writes at once. A full disk or a terminal that is gone ends no run, a closed pipe does."""
    encoding = getattr(file, "encoding", None) or "utf-8"
    try:
        file.write(text.encode(encoding, "replace").decode(encoding))
        file.flush()
    except BrokenPipeError:
        raise
    except OSError:
        pass


class _Lines:
    """In the place of a stream: passes on what is printed, line by line."""

    def __init__(self, stream: TextIO, pass_on: Callable[[str], None]) -> None:
        self._stream = stream
        self._pass_on = pass_on
        self._rest = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._rest:
            self._pass_on(self._rest)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._pass_on(line)
        return len(text)

    def flush(self) -> None:
        pass


class _Screen:
    """A terminal: lines that scroll, and under them the table, drawn anew in its place.

    A window that became too small for its table has broken and scrolled it, each terminal in its
    own way, and `rich.live` leaves the remnants. Here the screen is cleared then, and shows the
    newest lines again.
    """

    def __init__(self, file: TextIO) -> None:
        from rich.console import Console as RichConsole

        self._file = file
        self._rich = RichConsole(file=file, force_terminal=True)
        self._newest: deque[tuple[str, str]] = deque(maxlen=_REMEMBERED)
        self._cells: list[int] = []  # of each line of the table that is on the screen
        self._shown: tuple[list[Line], os.terminal_size] | None = None

    def draw(self, said: Sequence[tuple[str, str]], view: View) -> None:
        """Adds lines, and draws the table under them."""
        from rich.text import Text

        size = _size(self._file)
        lines = table_of(view, time.monotonic(), size)
        if not said and (lines, size) == self._shown:
            return
        self._shown = lines, size
        table = [Text.assemble(*line) for line in lines]
        for line in table:
            line.truncate(size.columns, overflow="ellipsis")
        self._newest += said
        clear = f"\r\x1b[{len(self._cells)}A\x1b[J" if self._cells else ""
        if len(self._cells) >= size.lines or max(self._cells, default=0) > size.columns:
            clear = "\x1b[H\x1b[J"
            free = size.lines - 1 - len(table)
            said = list(self._newest)[-free:] if free > 0 else []
        above = self._rendered([Text(text, style) for text, style in said])
        cursor = "\x1b[?25l" if table else "\x1b[?25h" if self._cells else ""
        # Terminals that know the brackets show all of it at once, the others ignore them.
        _write(self._file, f"\x1b[?2026h{clear}{above}{cursor}{self._rendered(table)}\x1b[?2026l")
        self._cells = [line.cell_len for line in table]

    def end(self) -> None:
        """Leaves the table where it is and shows the cursor again."""
        if self._cells:
            _write(self._file, "\x1b[?25h")

    def _rendered(self, lines: Sequence["Text"]) -> str:
        with self._rich.capture() as rendered:
            for line in lines:
                self._rich.print(line, soft_wrap=True)
        return rendered.get()


def _size(file: TextIO) -> os.terminal_size:
    try:
        size = os.get_terminal_size(file.fileno())
    except OSError:
        size = shutil.get_terminal_size()
    return os.terminal_size((size.columns or 80, size.lines or 24))
