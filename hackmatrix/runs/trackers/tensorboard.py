"""TensorBoard: event files in `{run}/events/`, or `logs/`. A step is an update.

`tensorboardX.SummaryWriter` is not used on purpose: it renames metrics (`SIPH+` to `SIPH_`), names
its files by the second, and its thread dies when the disk is full, after which every call blocks.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hackmatrix.runs.folder import events_of
from hackmatrix.runs.trackers.tracker import Say, TrackedRun


class TensorBoard:
    """Writes one event file for each session of a run."""

    name = "TensorBoard"

    def __init__(self, run: TrackedRun) -> None:
        self._run = run

    def start(self, say: Say) -> None:
        """Opens a new event file."""
        # This import takes half a second, and a few seconds where PyTorch is installed.
        from tensorboardX.event_file_writer import (  # type: ignore[import-untyped]
            EventsWriter,
        )
        from tensorboardX.proto import event_pb2, summary_pb2  # type: ignore[import-untyped]
        from tensorboardX.summary import text  # type: ignore[import-untyped]

        self._event, self._summary, self._text_of = event_pb2.Event, summary_pb2.Summary, text
        folder = events_of(self._run.folder)
        folder.mkdir(exist_ok=True)
        # TensorBoard reads files in the order of their names, which begin with the second.
        self._writer = EventsWriter(str(folder / "events"), f".{time.time_ns() % 10**9:09}")
        # Makes TensorBoard discard what an earlier session wrote after the update of its
        # checkpoint.
        restart = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._write(self._run.update + 1, time.time(), session_log=restart)
        rows = "".join(f"| {name} | {value} |\n" for name, value in self._run.config.items())
        self._text(self._run.update, "config", f"| setting | value |\n|---|---|\n{rows}")

    def log(self, update: int, timesteps: int, row: Mapping[str, float], when: float) -> None:
        """Writes all values of a row as one event."""
        values = [self._summary.Value(tag=name, simple_value=row[name]) for name in row]
        self._write(update, when, summary=self._summary(value=values))

    def alarm(self, update: int, name: str, message: str) -> None:
        """Writes the alarm as a text."""
        self._text(update, f"alarm/{name}", message)

    def artifact(self, update: int, files: Sequence[Path]) -> None:
        """Does nothing: TensorBoard stores no files."""

    def finish(self, failed: bool) -> None:
        """Closes the event file."""
        self._writer.close()

    def _text(self, update: int, name: str, text: str) -> None:
        self._write(update, time.time(), summary=self._text_of(name, text))

    def _write(self, update: int, when: float, **content: Any) -> None:
        self._writer.write_event(self._event(wall_time=when, step=update, **content))
        self._writer.flush()
