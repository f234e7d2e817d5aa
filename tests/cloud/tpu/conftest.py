"""A described TPU, and a gcloud on the PATH that needs no Google."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from paths import HELPERS
from tpu_world import FLAGS, FakeGcloud

from hackmatrix.cloud.tpu.description import Description


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts for gcloud are written in the home folder."""
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def gcloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGcloud:
    folder = tmp_path / "fake"
    folder.mkdir()
    shutil.copy(FLAGS, folder / "flags.json")
    script = folder / "gcloud"
    text = (HELPERS / "fake_gcloud.py").read_text()
    script.write_text(f"#!{sys.executable} -ISB\n{text}")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_GCLOUD", str(folder))
    monkeypatch.chdir(tmp_path)
    return FakeGcloud(folder)


@pytest.fixture
def make() -> Callable[..., Description]:
    """Makes the description of S0's and S1's TPU, with changes."""

    def described(**changes: Any) -> Description:
        settings = {
            "name": "hackmatrix-train",
            "project": "hack-matrix",
            "zone": "us-central2-b",
            "type": "v4-8",
            "repo": "https://github.com/me/hackmatrix.git",
            "bucket": "gs://my-bucket/hackmatrix",
            "train": "--num-envs 2048 --no-wandb",
        }
        return Description(**{**settings, **changes})

    return described
