"""The commands, as a user runs them who has set switches of JAX for other programs."""

import os
import subprocess
import sysconfig
from pathlib import Path

from host_program import STRICT

SWITCHES = STRICT | {"JAX_ENABLE_X64": "1", "JAX_DISABLE_JIT": "1"}
COMMAND = Path(sysconfig.get_path("scripts")) / "hackmatrix"


def output_of(*arguments: str, variables: dict[str, str] = SWITCHES, cwd: Path) -> str:
    process = subprocess.run(
        [COMMAND, *arguments], env=os.environ | variables, capture_output=True, text=True, cwd=cwd
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_evaluate_shows_the_same_table(tmp_path: Path) -> None:
    command = ("evaluate", "--episodes", "2", "--max-steps", "50")
    assert output_of(*command, cwd=tmp_path) == output_of(*command, variables={}, cwd=tmp_path)


def test_train_trains(tmp_path: Path) -> None:
    small = "--config original --architecture mlp --hidden-dim 8 --num-envs 4 --num-steps 8"
    command = f"train {small} --total-timesteps 64 --no-wandb --output-dir run"
    output_of(*command.split(), cwd=tmp_path)
    assert (tmp_path / "run" / "final_params.npz").exists()
