"""The native engine is built at the installation, or left out in one line."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

NATIVE = Path("hackmatrix/game/native")
CHECK = "from hackmatrix.game import native; print(native.available)"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files that the build needs, without what was built."""
    shutil.copytree(ROOT / NATIVE, tmp_path / NATIVE, ignore=shutil.ignore_patterns("*.so"))
    shutil.copytree(ROOT / "hackmatrix/game/rules", tmp_path / "hackmatrix/game/rules")
    (tmp_path / "hackmatrix/__init__.py").touch()
    (tmp_path / "hackmatrix/game/__init__.py").touch()
    shutil.copy(ROOT / "hatch_build.py", tmp_path)
    return tmp_path


def run(checkout: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("CXX", "PATH")}
    command = [sys.executable, *arguments]
    environment = {**kept, "PATH": str(checkout), **variables}
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("variables", "why"),
    [({}, "no C++ compiler on PATH"), ({"CXX": f"{sys.executable} -c 1/0"}, "the compiler failed")],
)
def test_without_a_compiler_it_is_left_out(
    checkout: Path, variables: dict[str, str], why: str
) -> None:
    made = run(checkout, "hatch_build.py", **variables)
    assert made.returncode == 0
    assert made.stderr.splitlines()[-1] == f"hackmatrix: the native engine is left out: {why}"
    assert run(checkout, "-c", CHECK).stdout == "False\n"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
def test_with_a_compiler_it_is_built(checkout: Path) -> None:
    made = run(checkout, "hatch_build.py", PATH=os.environ["PATH"])
    assert (made.returncode, made.stderr) == (0, "")
    assert run(checkout, "-c", CHECK).stdout == "True\n"


def test_what_is_built_is_not_built_again(checkout: Path) -> None:
    suffix = subprocess.run(
        [sys.executable, "-c", "import sysconfig as s; print(s.get_config_var('EXT_SUFFIX'))"],
        capture_output=True,
        text=True,
    ).stdout.strip()
    module = checkout / NATIVE / f"_native{suffix}"
    module.touch()
    assert run(checkout, "hatch_build.py").stderr == ""
    os.utime(module, (0, 0))  # older than its sources
    assert "left out" in run(checkout, "hatch_build.py").stderr
    assert not module.exists()


ALL_MODULES = """
import importlib, pkgutil, sys
sys.modules["hackmatrix.game.native._native"] = None
import hackmatrix
for module in pkgutil.walk_packages(hackmatrix.__path__, "hackmatrix."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            if "_native" in str(error):
                print(module.name)
"""


@pytest.mark.thorough
def test_only_what_is_named_after_it_needs_the_native_engine(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", ALL_MODULES]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    needs = [name for name in done.stdout.split() if "native" not in name]
    assert needs == ["hackmatrix.agents.roster.games_together"]  # imported where it is there


@pytest.mark.slow
def test_without_the_native_engine_one_trains_and_plays(tmp_path: Path) -> None:
    left_out = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "hackmatrix", tmp_path / "hackmatrix", ignore=left_out)
    shutil.copy(ROOT / "hackmatrix_command.py", tmp_path)
    small = "--num-envs 32 --num-steps 16 --num-minibatches 4 --hidden-dim 8 --no-tensorboard"
    for command in (
        f"train --total-timesteps 1024 {small} --run-name run --checkpoint-dir runs",
        "evaluate runs/run scripted --episodes 2",
    ):
        done = run(tmp_path, "-m", "hackmatrix", *command.split(), PATH=os.environ["PATH"])
        assert done.returncode == 0, done.stderr
    assert "win rate" in done.stdout
