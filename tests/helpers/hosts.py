"""`hackmatrix train --distributed` in several processes, each in a folder of its own.

The folder stands for the disk of a host, which the others do not see.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from paths import HELPERS

ENV = ("--env", "probe_environments:Grid")  # also where a run is resumed: a file alone runs no code
TINY = (
    *("--num-envs", "8", "--num-steps", "4"),
    *("--hidden-dim", "8", "--num-layers", "1", "--num-minibatches", "1", "--update-epochs", "1"),
    *("--log-interval", "1", "--no-wandb", "--no-tensorboard", "--checkpoint-dir", "runs"),
)
BATCH = 8 * 4


class Host:
    """A host with its processes: the command, which is the parent, and the one that trains."""

    def __init__(self, folder: Path, place: tuple[str, ...], arguments: tuple[str, ...]) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.output = folder / "output.txt"
        with self.output.open("w") as output:
            self.parent = subprocess.Popen(
                [sys.executable, "-m", "hackmatrix", "train", *ENV, *place, *arguments],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(HELPERS), "PYTHONUNBUFFERED": "1"},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def child(self) -> int:
        """The process that trains."""
        children = Path(f"/proc/{self.parent.pid}/task/{self.parent.pid}/children").read_text()
        return int(children.split()[0])

    def kill(self) -> None:
        """Kills the process that trains, as a failing machine would."""
        os.kill(self.child, signal.SIGKILL)

    def stop(self) -> None:
        """Lets the process that trains be there and do nothing."""
        os.kill(self.child, signal.SIGSTOP)

    def told(self) -> str:
        return self.output.read_text()

    def wait_for(self, pattern: str) -> None:
        """Until the output has a match."""
        while not re.search(pattern, self.told()):
            assert self.parent.poll() is None, self.told()
            time.sleep(0.05)

    def files(self) -> set[str]:
        return {each.name for each in self.folder.iterdir()} - {"output.txt"}


@contextmanager
def training(folder: Path, count: int, *arguments: str) -> Iterator[list[Host]]:
    """So many processes that train together; they are killed at the end."""
    coordinator = f"127.0.0.1:{free_port()}"
    hosts = []
    for index in range(count):
        place = ("--distributed", "--coordinator", coordinator)
        place += ("--num-processes", str(count), "--process-id", str(index))
        hosts.append(Host(folder / f"host{index}", place, arguments))
    try:
        yield hosts
    finally:
        for host in hosts:
            if host.parent.poll() is None:
                with suppress(IndexError):
                    host.kill()
                host.parent.kill()
                host.parent.wait()


def codes(hosts: list[Host]) -> list[int]:
    """The exit codes, when all have ended."""
    return [host.parent.wait() for host in hosts]


def train(folder: Path, count: int, *arguments: str) -> None:
    """Trains to the end."""
    with training(folder, count, *arguments) as hosts:
        if codes(hosts) != [0] * count:
            pytest.fail("\n".join(host.told() for host in hosts))


def train_alone(folder: Path, *arguments: str) -> None:
    """Trains to the end in one process."""
    host = Host(folder / "host0", (), arguments)
    assert host.parent.wait() == 0, host.told()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
