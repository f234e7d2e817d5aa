"""Another package called `hackmatrix`, as the original's is, on PYTHONPATH and in the folder."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from paths import ROOT

from hackmatrix.core.processes import python_module

COMMANDS = Path(sys.executable).parent
CLIENT = """
import json, os, sys
from hackmatrix.integrations.process.client import GameProcess
os.chdir(sys.argv[1])
with GameProcess() as game:
    print(json.dumps(game.ask("reset", seed=1)["observation"]["stage"]))
"""


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A folder with such a package, which ends whoever imports it."""
    package = tmp_path / "theirs" / "hackmatrix"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('another package was imported')\n")
    return package.parent


def said(*command: object, folder: Path, told: str = "", **variables: str) -> str:
    """Output of a process that is started in the folder, with the folder on PYTHONPATH."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}.", **variables},
        input=told,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_commands(commands: Path, foreign: Path) -> None:
    """Both commands find the package that they came with."""
    assert said(commands / "hackmatrix", "--version", folder=foreign).startswith("hackmatrix 0.")
    request = '{"action":"getActionSpace"}\n'
    answer = said(commands / "hackmatrix-game", "--headless-cli", folder=foreign, told=request)
    assert json.loads(answer) == {"actionSpaceSize": 28}


def test_the_commands_find_their_own_package(foreign: Path) -> None:
    check_commands(COMMANDS, foreign)


@pytest.mark.thorough
def test_a_process_that_the_package_starts_finds_it(foreign: Path) -> None:
    assert said(*python_module("hackmatrix", "--version"), folder=foreign).startswith("hackmatrix")
    client = [sys.executable, "-c", CLIENT, foreign]
    done = subprocess.run(client, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "1\n", done.stderr
    script = ROOT / "scripts" / "train_purejaxrl.py"
    assert "seed: 0" in said(sys.executable, script, "--print-config", folder=foreign)


def test_no_other_file_starts_python_with_a_module() -> None:
    package = ROOT / "hackmatrix"
    starting = {p for p in package.rglob("*.py") if "sys.executable" in p.read_text()}
    # The worker on a TPU starts the clone in which it starts it; `serve` opens a browser, isolated;
    # `typed_command` prints a line and starts nothing.
    assert starting == {
        package / "cli/serve.py",
        package / "core/processes.py",
        package / "core/processes.py",
        package / "cloud/tpu/worker.py",
    }


@pytest.mark.thorough
def test_an_environment_of_ones_own_is_still_sought_in_the_current_folder_first(
    foreign: Path,
) -> None:
    for folder in (foreign, foreign.parent):
        text = f"def make():\n    raise ValueError('made in {folder.name}')\n"
        (folder / "mine.py").write_text(text)
    done = subprocess.run(
        [COMMANDS / "hackmatrix", "evaluate", "random", "--env", "mine:make"],
        cwd=foreign.parent,
        env={**os.environ, "PYTHONPATH": str(foreign)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert f"made in {foreign.parent.name}" in done.stderr


@pytest.mark.slow
def test_the_wheel_finds_its_own_package_in_a_new_environment(
    foreign: Path, tmp_path: Path
) -> None:
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    assert "hackmatrix_command.py" in zipfile.ZipFile(wheel).namelist()
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = environment / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel]
    subprocess.run(install, check=True)
    # What the package needs is borrowed from this environment, which has the package by a .pth
    # file, and those are read in an environment's own folder alone.
    ours = next(path for path in sys.path if path.endswith("site-packages"))
    (theirs,) = environment.glob("lib/*/site-packages")
    (theirs / "borrowed.pth").write_text(f"{ours}\n")
    where = said(
        *[python, "-c", "import hackmatrix; print(hackmatrix.__file__)"],
        folder=tmp_path,
        PYTHONPATH="",
    )
    assert Path(where.strip()).is_relative_to(theirs)
    check_commands(environment / "bin", foreign)
    process = [python, "-c", CLIENT, str(foreign)]
    assert said(*process, folder=tmp_path, PYTHONPATH="") == "1\n"
