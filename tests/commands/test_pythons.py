"""The sources, installed by pip into an environment of each Python that the package names."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from made_places import TINY, Places, copy_of_the_repository
from quick_compilation import COMPILED_QUICKLY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]  # fetches what builds the engine

ENGINE = "from hackmatrix.game.native import available, _native; print(available, _native.__file__)"


def interpreter(version: str) -> str:
    """A Python of this version: on PATH, or installed by pyenv."""
    installed = (Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python")
    for python in (shutil.which(f"python{version}"), *map(str, sorted(installed))):
        if (
            python
            and not subprocess.run([python, "-c", "import venv"], capture_output=True).returncode
        ):
            return python
    pytest.skip(f"no Python {version} is installed")


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_the_sources_install_and_play(version: str, places: Places, tmp_path: Path) -> None:
    repository = copy_of_the_repository(tmp_path / "repository")
    for built in repository.glob("hackmatrix/game/native/*.so"):
        built.unlink()
    build = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--directory",
        tmp_path,
        "--target",
        "sdist",
    ]
    subprocess.run(build, cwd=repository, check=True)
    (sources,) = tmp_path.glob("*.tar.gz")
    venv = tmp_path / "venv"
    subprocess.run([interpreter(version), "-m", "venv", venv], check=True)
    here = tmp_path / "here"
    here.mkdir()

    def run(*command: str | Path) -> str:
        environment = places.environment(venv / "bin")
        for name in COMPILED_QUICKLY:  # flags of another JAX, perhaps
            environment.pop(name)
        done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(venv / "bin" / "pip", "install", "-q", f"{sources}[train]")
    assert run(venv / "bin" / "python", "-c", ENGINE).startswith(f"True {venv}")
    assert "win rate" in run("hackmatrix", "evaluate", "scripted", "--episodes", "2")
    assert "done after" in run("hackmatrix", "train", *TINY.split(), "--run-name", "new")
    assert "win rate" in run("hackmatrix", "evaluate", "checkpoints/new", "--episodes", "2")
