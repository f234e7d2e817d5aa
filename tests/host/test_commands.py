"""The commands, as a user runs them who has set switches of JAX for other programs."""

import os
import subprocess
import sysconfig
from pathlib import Path

import pytest
from host_program import STRICT

pytestmark = pytest.mark.slow  # test_settings has the quicker case

SWITCHES = STRICT | {"JAX_ENABLE_X64": "1", "JAX_DISABLE_JIT": "1"}
COMMAND = Path(sysconfig.get_path("scripts")) / "hackmatrix"


def run(command: str, cwd: Path) -> str:
    process = subprocess.run(
        [COMMAND, *command.split()],
        env=os.environ | SWITCHES,
        capture_output=True,
        text=True,
        cwd=cwd,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_a_run_is_trained_and_evaluated(tmp_path: Path) -> None:
    small = "--config original --architecture mlp --hidden-dim 8 --num-envs 4 --num-steps 2"
    few = "--num-minibatches 2 --update-epochs 1 --total-timesteps 16"
    run(f"train {small} {few} --no-wandb --output-dir run", tmp_path)
    assert "games            2" in run("evaluate run --episodes 2 --max-steps 50", tmp_path)
