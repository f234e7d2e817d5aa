"""The examples run: the training in one file, and the cells of the notebook."""

import json
import re
import runpy
import subprocess
import sys

import pytest
from paths import ROOT

PPO = ROOT / "examples" / "own_ppo.py"
TOUR = ROOT / "examples" / "tour.ipynb"


def run(*sizes: int) -> str:
    command = [sys.executable, str(PPO), *map(str, sizes)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def stages(said: str) -> list[float]:
    return [float(each) for each in re.findall(r"steps: (\S+) stages cleared a game", said)]


@pytest.mark.parametrize(("argument", "code"), [("--help", 0), ("many", 2)])
def test_the_training_in_one_file_says_how_it_is_called(
    argument: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(PPO), argument])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(PPO), run_name="__main__")
    assert ended.value.code == code
    said = capsys.readouterr()
    assert all(name in said.out + said.err for name in ("steps", "num_games", "episodes"))


@pytest.mark.slow  # 130,000 steps
def test_it_learns() -> None:
    said = run(200_000, 256, 10)
    reached = stages(said)
    assert reached[-1] > 1.5 > reached[0]
    assert re.search(r"^games +10$", said, re.M)


def cells() -> list[str]:
    notebook = json.loads(TOUR.read_text())
    return ["".join(each["source"]) for each in notebook["cells"] if each["cell_type"] == "code"]


def test_the_cells_of_the_notebook_compile_and_have_their_outputs() -> None:
    for cell in cells():
        compile(cell, "tour.ipynb", "exec")
    notebook = json.loads(TOUR.read_text())
    outputs = [o for each in notebook["cells"] for o in each.get("outputs", [])]
    assert sum("image/svg+xml" in each.get("data", {}) for each in outputs) >= 3
    assert not [each for each in outputs if each["output_type"] == "error"]


@pytest.mark.slow  # trains
def test_the_notebook_runs() -> None:
    shell = "from IPython.core.interactiveshell import InteractiveShell as S; s = S.instance()"
    lines = [f"s.run_cell({cell!r}, silent=False).raise_error()" for cell in cells()]
    command = [sys.executable, "-c", "\n".join([shell, *lines])]
    told = subprocess.run(
        command, cwd=TOUR.parent, stdout=subprocess.PIPE, text=True, timeout=280, check=True
    )
    assert "the agent of the package takes" in told.stdout
