"""The examples of docs/clients.md run as they are written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from paths import DOCS

EXAMPLES = re.findall(r"```python\n(.*?)```", (DOCS / "clients.md").read_text(), re.S)
IN_JAX = 'observation="compact"'


@pytest.mark.parametrize(
    "code", [pytest.param(it, marks=[pytest.mark.slow] * (IN_JAX in it)) for it in EXAMPLES]
)
def test_an_example_runs(code: str, tmp_path: Path) -> None:
    if "sb3" in code or "torch" in code:
        pytest.importorskip("sb3_contrib")
    script = tmp_path / "example.py"
    script.write_text(code)
    command = [sys.executable, "-W", "error::UserWarning", str(script)]
    env = {**os.environ, "TMPDIR": str(tmp_path)}  # Stable-Baselines3 leaves a folder there
    result = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_there_is_one_for_each_kind_of_user() -> None:
    assert [IN_JAX in code for code in EXAMPLES].count(True) == 1
    assert len(EXAMPLES) == 3
