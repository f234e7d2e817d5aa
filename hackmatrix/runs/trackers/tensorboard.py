"""TensorBoard: event files in `{run}/events/`. A step is an update.

`tensorboardX.SummaryWriter` is left out on purpose: it renames metrics (`SIPH+` to `SIPH_`), names
its files by the second, and its own thread dies of a full disk, after which every call blocks.
"""

import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hackmatrix.runs.trackers.background import Row, Say
from hackmatrix.storage.files import write_atomically

FOLDER = "events"


class TensorBoard:
    """Writes event files.

    Args:
        run: the run's folder.
        config: shown as text.
        update: where the run goes on; what an earlier attempt wrote after it is removed.
    """

    name = "TensorBoard"
    finish_seconds = 0.0
    rest = ""

    def __init__(self, run: Path, config: Mapping[str, Any], update: int) -> None:
        self._folder = run / FOLDER
        self._config = config
        self._update = update

    def start(self, say: Say) -> None:
        """Begins a file."""
        # Takes half a second, and a few where PyTorch is installed.
        from tensorboardX.event_file_writer import (  # type: ignore[import-untyped]
            EventsWriter,
        )
        from tensorboardX.proto import event_pb2, summary_pb2  # type: ignore[import-untyped]
        from tensorboardX.summary import text  # type: ignore[import-untyped]

        self._event, self._summary, self._text_of = event_pb2.Event, summary_pb2.Summary, text
        self._folder.mkdir(parents=True, exist_ok=True)
        self._cut()
        # TensorBoard reads files in the order of their names, which begin with the second.
        self._writer = EventsWriter(str(self._folder / "events"), f".{time.time_ns() % 10**9:09}")
        # Hides what was removed from a TensorBoard that has read it before.
        restart = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._write(self._update + 1, time.time(), session_log=restart)
        self._text(self._update, "config", self._table())
        self.flush()

    def log(self, update: int, timesteps: int, row: Row, when: float) -> None:
        """Writes all values in one event."""
        values = [
            self._summary.Value(tag=name, simple_value=float(value)) for name, value in row.items()
        ]
        self._write(update, when, summary=self._summary(value=values))

    def alarm(self, update: int, name: str, message: str) -> None:
        """Writes a text."""
        self._text(update, f"alarm/{name}", message)

    def artifact(self, update: int, files: Sequence[Path]) -> None:
        """Has no place for files."""

    def flush(self) -> None:
        """Brings all to the disk."""
        self._writer.flush()

    def finish(self, failed: bool) -> None:
        """Closes the file."""
        self._writer.close()

    def abandon(self) -> None:
        """Nothing of it outlives its thread."""

    def _cut(self) -> None:
        for path in self._folder.glob("*.tfevents.*"):
            content = path.read_bytes()
            kept = b"".join(
                record
                for record in _records(content)
                if self._event.FromString(record[12:-4]).step <= self._update
            )
            if kept != content:
                write_atomically(path, kept)

    def _text(self, update: int, name: str, text: str) -> None:
        self._write(update, time.time(), summary=self._text_of(name, text))

    def _write(self, update: int, when: float, **content: Any) -> None:
        self._writer.write_event(self._event(wall_time=when, step=update, **content))

    def _table(self) -> str:
        rows = "".join(f"| {name} | {value} |\n" for name, value in self._config.items())
        return f"| setting | value |\n|---|---|\n{rows}"


def _records(content: bytes) -> Iterator[bytes]:
    """Records of an event file, up to one that a kill has cut short."""
    start = 0
    while start + 12 <= len(content):
        (size,) = struct.unpack_from("<Q", content, start)
        end = start + 12 + size + 4  # each with its length before it, and two checksums
        if end > len(content):
            return
        yield content[start:end]
        start = end
