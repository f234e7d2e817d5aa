"""The processes of a training meet, or say why they don't: real processes."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

# The process that trains, as its parent starts it, but with less patience.
CHILD = """
import os, sys
from hackmatrix.core.devices import team
team._FIRST_WORD_SECONDS, team._NEXT_WORD_SECONDS, team._MEET_SECONDS = 1, 1, 4
from hackmatrix.cli.distributed import main
sys.exit(main([str(os.open(os.devnull, os.O_WRONLY)), *sys.argv[1:]]))
"""
WHOLE = "import sys; from hackmatrix.cli.main import main; sys.exit(main())"


def started(folder: Path, program: str, *arguments: str) -> "subprocess.Popen[str]":
    settings = ("--distributed", "--env", "CartPole-v1", "--checkpoint-dir", str(folder))
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments, *settings, "--no-wandb"],
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def place(address: str, count: int, index: int) -> tuple[str, ...]:
    numbers = ("--num-processes", str(count), "--process-id", str(index))
    return ("--coordinator", address, *numbers)


@pytest.mark.thorough
def test_a_process_that_waits_for_others_says_so_and_ends(tmp_path: Path) -> None:
    """It is the second of two, and finds a port where nobody answers."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        child = started(tmp_path, CHILD, *place(f"127.0.0.1:{port}", 2, 1))
        output, errors = child.communicate(timeout=120)
    assert child.returncode == 75, errors
    waited = [line for line in output.splitlines() if line.startswith("waiting for ")]
    assert len(waited) >= 2
    assert f"waiting for 2 processes at 127.0.0.1:{port}, 1 s so far" in waited[0]
    told = [line for line in errors.splitlines() if line.startswith("hackmatrix train: error: ")]
    assert len(told) == 1
    assert f"2 processes at 127.0.0.1:{port} did not meet within 4 s" in told[0]
    assert "start all processes again" in told[0]
    assert "Check failure stack trace" not in errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
def test_a_port_that_is_taken_is_a_line_and_a_wrong_usage(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        process = started(tmp_path, WHOLE, "train", *place(address, 2, 0))
        output, errors = process.communicate(timeout=120)
    assert (process.returncode, output) == (2, ""), errors
    assert errors.startswith(f"hackmatrix train: error: --coordinator {address}: process 0 can't ")
    assert "Address already in use" in errors
    assert errors.count("\n") == 1
