"""Every command line, read by the parser of the real gcloud where it is installed."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tpu_lines import every_line
from tpu_world import FLAGS

from hackmatrix.cloud.tpu.description import Description

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed"),
]

IN_ALPHA = set().union(*json.loads(FLAGS.read_text())["only in alpha"].values())


@pytest.mark.parametrize(("type_", "flex_hours"), [("v4-16", None), ("v6e-16", 48)])
def test_gcloud_takes_every_line(
    type_: str, flex_hours: int | None, make: Callable[..., Description], tmp_path: Path
) -> None:
    """Without an account gcloud reads the line, then asks for a login (exit code 1)."""
    (tmp_path / "setup.sh").touch()
    (tmp_path / "startup.sh").touch()
    environment = {
        **os.environ,
        "CLOUDSDK_CONFIG": str(tmp_path / "config"),
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
    }
    tpu = make(
        type=type_,
        zone="us-east1-d",
        flex_hours=flex_hours,
        queue_hours=6,
        service_account="train@hack-matrix.iam.gserviceaccount.com",
        secrets=tmp_path / "setup.sh",
    )
    seen = set()
    for argv in every_line(tpu):
        if (command := tuple(argv[:6])) in seen:
            continue
        seen.add(command)
        if IN_ALPHA & {word.partition("=")[0] for word in argv}:
            argv = [argv[0], "alpha", *argv[1:]]
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            env=environment,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 1, (argv, done.stderr)
        assert "gcloud auth login" in done.stderr, (argv, done.stderr)
    wrong = ["gcloud", "compute", "tpus", "tpu-vm", "create", "x", "--vm-image=y"]
    done = subprocess.run(wrong, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 2
