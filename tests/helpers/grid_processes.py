"""`grid_command` in processes of their own, and what they leave."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from paths import HELPERS

from hackmatrix.runs.metrics_file import read_metrics

SETTINGS = [
    "--config=original",  # its learning rate is the same however long a run is
    "--num-envs=16",
    "--num-steps=16",
    "--log-interval=1",
    "--normalize-observations",
    "--keep-checkpoints=3",
    "--checkpoint-dir=runs",
    "--no-wandb",
]


@contextmanager
def training(folder: Path, *arguments: str, stall: int = -1) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own, which is killed at the end.

    It makes no more than `stall` updates, if that is given, and waits there.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "grid_command", "train", *arguments],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(HELPERS),
            "PYTHONUNBUFFERED": "1",
            "STALL": str(stall),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def wait_for_update(process: subprocess.Popen[str], update: int) -> None:
    """Until the line of this update is printed."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if (match := re.match(r"update (\d+)/", line)) and int(match[1]) >= update:
            return
    pytest.fail("".join(seen))


def finish(folder: Path, *arguments: str) -> str:
    """Trains to the end; what was printed."""
    with training(folder, *arguments) as process:
        output, _ = process.communicate()
        assert process.returncode == 0, output
    return output


def rows_of(run: Path) -> list[dict[str, object]]:
    """The lines of metrics, without what is said of speed."""
    rows = list(read_metrics(run))
    for row in rows:
        row.pop("train/steps_per_second", None)  # a row of an evaluation has none
        alarms = [name for name in row.pop("alarms", []) if name != "throughput_falling"]
        row["alarms"] = alarms
    return rows
