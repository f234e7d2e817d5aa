"""Files that others have written name code, and no command runs it that the user does not name."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from hackmatrix.cli.main import main

ENV = "stage:make"  # of a module that lies beside the files, as in an archive that was unpacked
ADD = f"stage:make, code that runs only if you say so by --env {ENV}"
TASKS = [ENV, "CartPole-v1"]


@pytest.fixture(autouse=True)
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a module, params, a run, a configuration of tasks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "stage", raising=False)
    (tmp_path / "stage.py").write_text(
        "open('ran', 'w').close()\ndef make(**_): raise ValueError('stage.py was run')\n"
    )
    run = tmp_path / "run"
    run.mkdir()
    facts = {"format": 1, "environment": ENV, "update": 1, "config": {"env": ENV, "gamma": 1.0}}
    layers = {f"params.Dense_{i}.{n}": np.ones((2, 2)[:k]) for i in range(3) for n, k in _SHAPES}
    for path in (tmp_path / "mine.npz", run / "final_params.npz"):
        np.savez(path, **layers)
        path.with_suffix(".json").write_text(json.dumps(facts))
    (run / "config.yaml").write_text(f"environment:\n  name: {ENV}\n")
    (tmp_path / "begun").mkdir()
    shutil.copy(run / "config.yaml", tmp_path / "begun")
    (run / "metrics.jsonl").write_text('{"update": 1, "timesteps": 1, "train/entropy": 1.0}\n')
    tasks = {"environment": {"multi_task": True, "task_list": TASKS}}
    (tmp_path / "tasks.yaml").write_text(yaml.safe_dump(tasks))
    (tmp_path / "space.yaml").write_text(f"environment:\n  name: [{ENV}, 'stage:other']\n")
    return tmp_path


_SHAPES = (("kernel", 2), ("bias", 1))

NAMED = {  # commands, and what their error line says
    "evaluate mine.npz": f"mine.npz: plays {ADD}",
    "evaluate run": f"final_params.npz: plays {ADD}",
    "evaluate mine.npz random": f"plays {ADD}",
    "evaluate mine.npz --env os:getcwd": "mine.npz: plays 'stage:make', not os:getcwd",
    "evaluate mine.npz --search 2": "only HackMatrix-v1 can be searched",
    "data record new --agent mine.npz": f"mine.npz: plays {ADD}",
    "data record new --agent run --env os:getcwd": "plays 'stage:make', not os:getcwd",
    "analyse position.txt mine.npz": "only HackMatrix-v1 can be searched",
    "watch mine.npz --no-open": "plays stage:make, not HackMatrix-v1",
    "train --resume begun": f"begun: trains on {ADD}",
    "train --config run/config.yaml": f"config.yaml: trains on {ADD}",
    "train --resume mine.npz": "was trained on stage:make, not on HackMatrix-v1",
    "train --init-from mine.npz": "was trained on stage:make, not on HackMatrix-v1",
    "train --config tasks.yaml": (
        "tasks.yaml: trains on stage:make+CartPole-v1, code that runs only if you say so by "
        "--task-list '[stage:make, CartPole-v1]'"
    ),
    "reproduce run": f"run: trained on {ADD}",
    "reproduce run --env os:getcwd": f"run: trained on {ADD}",
    "clone data new.npz --config run/config.yaml": f"config.yaml: trains on {ADD}",
    "tune --config run/config.yaml": f"config.yaml: trains on {ADD}",
}


@pytest.mark.parametrize("line", NAMED)
def test_what_only_a_file_names_is_not_run(
    line: str, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from hackmatrix.game.engine import Game

    (archive / "position.txt").write_text(Game.new(1).to_text())
    assert main(line.split()) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert NAMED[line] in told
    assert not (archive / "ran").exists()


def test_a_search_runs_no_code_of_its_space(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "tune --search-space space.yaml --sampler grid --num-trials 2"
    assert main(line.split()) == 1
    assert f"grid 0: failed: the search trains on {ADD}" in capsys.readouterr().out
    assert not (archive / "ran").exists()


@pytest.mark.parametrize(
    "line",
    [
        f"evaluate mine.npz --env {ENV}",
        f"evaluate run random --env {ENV}",
        f"data record new --agent mine.npz --env {ENV}",
        f"checkpoint verify mine.npz --env {ENV}",
        f"train --resume begun --env {ENV}",
        f"train --config run/config.yaml --env {ENV}",
        f"reproduce run --env {ENV}",
        "train --config tasks.yaml --task-list [stage:make,CartPole-v1]",
    ],
)
def test_what_the_user_names_is_run(
    line: str, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) in (1, 2)
    said = capsys.readouterr()
    assert "stage.py was run" in said.err + said.out
    assert (archive / "ran").exists()


@pytest.mark.slow
def test_a_search_with_named_code_trains_with_it(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = f"tune --config run/config.yaml --env {ENV} --num-trials 1 --fresh-seeds 0"
    assert main(line.split()) == 1
    assert "stage.py was run" in capsys.readouterr().out
    assert (archive / "ran").exists()
