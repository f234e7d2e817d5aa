"""A backend of JAX that does not start: one line instead of JAX's traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hackmatrix.core.devices.failed_backend import explain, tpu_holders


@pytest.mark.thorough
def test_a_command_says_it_in_a_line(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "hackmatrix", "train", "--output-dir", "run"],
        env=os.environ | {"JAX_PLATFORMS": "tpu"},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert process.returncode == 2
    (line,) = process.stderr.splitlines()
    assert "JAX's backend 'tpu' does not start: " in line
    assert "JAX_PLATFORMS=tpu asks for it, JAX_PLATFORMS=cpu plays on the CPU" in line
    assert list(tmp_path.iterdir()) == []


def test_other_errors_are_not_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_PLATFORMS", "tpu")
    assert explain(RuntimeError("the pool is empty")) is None
    assert explain(AssertionError()) is None


def test_the_processes_that_hold_a_tpu_are_named(tmp_path: Path) -> None:
    for number, device in ((41, "/dev/vfio/0"), (42, "/dev/null"), (os.getpid(), "/dev/accel0")):
        (tmp_path / f"{number}" / "fd").mkdir(parents=True)
        (tmp_path / f"{number}" / "fd" / "3").symlink_to(device)
        (tmp_path / f"{number}" / "comm").write_text("python3\n")
    (tmp_path / "43").mkdir()  # another user's
    assert tpu_holders(tmp_path) == ["process 41 (python3)"]
