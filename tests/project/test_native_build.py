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
