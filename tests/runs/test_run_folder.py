"""Names and folders of runs."""

import json
from datetime import date
from pathlib import Path

import pytest
import yaml

from hackmatrix.errors import UserError
from hackmatrix.runs.folder import RunFolder
from hackmatrix.runs.names import next_name


def test_names_count_up_within_a_day() -> None:
    day = date(2026, 2, 5)
    assert next_name([], day) == "hackmatrix-jax-feb05-26-1"
    others = ["hackmatrix-jax-feb05-26-1", "hackmatrix-jax-feb05-26-9-large", "notes"]
    assert next_name(others, day) == "hackmatrix-jax-feb05-26-10"
    assert next_name(others, date(2026, 2, 6)) == "hackmatrix-jax-feb06-26-1"
    assert next_name(others, date(2025, 12, 31)) == "hackmatrix-jax-dec31-25-1"


def test_a_folder_says_what_the_run_is(tmp_path: Path) -> None:
    config = {"lr": 2.5e-4, "run_name": None, "checkpoint_dir": tmp_path}
    run = RunFolder.create(tmp_path / "runs", "mine", "large", config)
    assert run.path == tmp_path / "runs" / "mine-large"
    saved = yaml.safe_load((run.path / "config.yaml").read_text())
    assert saved == {"lr": 2.5e-4, "run_name": None, "checkpoint_dir": str(tmp_path)}


def test_folders_without_a_name_get_the_next_one(tmp_path: Path) -> None:
    first, second = (RunFolder.create(tmp_path, None, suffix, {}) for suffix in (None, "x"))
    assert first.path.name.endswith("-1")
    assert second.path.name.endswith("-2-x")


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    RunFolder.create(tmp_path, "mine", None, {"lr": 1.0})
    with pytest.raises(UserError, match=r"the run .*mine exists: choose another --run-name"):
        RunFolder.create(tmp_path, "mine", None, {"lr": 2.0})
    assert yaml.safe_load((tmp_path / "mine" / "config.yaml").read_text()) == {"lr": 1.0}


def test_a_parent_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"--checkpoint-dir .*file: "):
        RunFolder.create(tmp_path / "file", "mine", None, {})


def test_metrics_are_lines_of_json(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "mine", None, {})
    run.add_metrics({"update": 1, "a": 0.5, "b": None, "c": float("nan")})
    run.add_metrics({"update": 2, "a": float("inf")})
    lines = (run.path / "metrics.jsonl").read_text().splitlines()
    assert list(map(json.loads, lines)) == [
        {"update": 1, "a": 0.5, "c": None},
        {"update": 2, "a": None},
    ]
