"""The examples of docs/clients.md run as they are written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from paths import DOCS

EXAMPLES = re.findall(r"```python\n(.*?)```", (DOCS / "clients.md").read_text(), re.S)
IN_JAX = [code for code in EXAMPLES if 'observation="compact"' in code]


def run(code: str, folder: Path) -> str:
    script = folder / "example.py"
    script.write_text(code)
    command = [sys.executable, "-W", "error::UserWarning", str(script)]
    env = {**os.environ, "TMPDIR": str(folder)}  # Stable-Baselines3 leaves a folder there
    result = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=500
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_there_is_one_for_each_kind_of_user() -> None:
    assert (len(EXAMPLES), len(IN_JAX)) == (3, 1)


@pytest.mark.parametrize("code", [code for code in EXAMPLES if code not in IN_JAX])
def test_an_example_runs(code: str, tmp_path: Path) -> None:
    if "sb3" in code or "torch" in code:
        pytest.importorskip("sb3_contrib")
    run(code, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("code", IN_JAX)
def test_an_example_in_jax_runs(code: str, tmp_path: Path) -> None:
    run(code, tmp_path)
