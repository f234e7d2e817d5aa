"""Names and folders of runs."""

import io
import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from hackmatrix.core.errors import UserError
from hackmatrix.core.files import PARTIAL
from hackmatrix.learning.reporting.console import Console
from hackmatrix.runs.folder import LostFolderError, RunFolder, lacks_row
from hackmatrix.runs.names import next_name
from hackmatrix.runs.params import agent_folders, save_params


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, "mine", None)


WRITTEN_ON = ("metrics.jsonl", "log.txt", "starts.jsonl")  # as long as a run lasts


def test_names_count_up_within_a_day() -> None:
    day = date(2026, 2, 5)
    assert next_name([], day) == "hackmatrix-jax-feb05-26-1"
    others = ["hackmatrix-jax-feb05-26-1", "hackmatrix-jax-feb05-26-9-large", "notes"]
    assert next_name(others, day) == "hackmatrix-jax-feb05-26-10"
    assert next_name(others, date(2026, 2, 6)) == "hackmatrix-jax-feb06-26-1"
    assert next_name(others, date(2025, 12, 31)) == "hackmatrix-jax-dec31-25-1"


def test_folders_are_named_and_hold_the_configuration(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "runs", "mine", "large")
    assert run.path == tmp_path / "runs" / "mine-large"
    run.write_config("training: {lr: 1}\n")
    assert (run.path / "config.yaml").read_text() == "training: {lr: 1}\n"
    first, second = (RunFolder.create(tmp_path, None, suffix) for suffix in (None, "x"))
    assert first.path.name.endswith("-1")
    assert second.path.name.endswith("-2-x")


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    RunFolder.create(tmp_path, "mine", None).write_config("first")
    with pytest.raises(UserError, match=r"the run .*mine exists: choose another --run-name"):
        RunFolder.create(tmp_path, "mine", None)
    with pytest.raises(UserError, match=r"--output-dir .*mine is a run: choose another folder"):
        RunFolder.create_at(tmp_path / "mine")
    assert (tmp_path / "mine" / "config.yaml").read_text() == "first"


def test_a_folder_with_other_things_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UserError, match=r"--output-dir .* is not empty"):
        RunFolder.create_at(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


_HOLD = """
import sys, time
from pathlib import Path
from hackmatrix.runs.folder import RunFolder
run = RunFolder(Path(sys.argv[1]))
print("locked", flush=True)
time.sleep(600)
"""


def test_one_process_at_a_time_has_a_run_until_it_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "locked\n"
            with pytest.raises(
                UserError, match=f"^{tmp_path} is being trained by another process$"
            ):
                RunFolder(tmp_path)
        finally:
            process.kill()
    RunFolder(tmp_path).close()


def test_a_folder_that_was_made_for_nothing_goes(tmp_path: Path) -> None:
    for begun in (False, True):
        run = RunFolder.create(tmp_path, "mine", None)
        if begun:
            run.write_config("")
        run.close()
        run.remove_if_unused()
        assert (tmp_path / "mine").exists() == begun


def test_a_parent_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"--checkpoint-dir .*file: "):
        RunFolder.create(tmp_path / "file", "mine", None)
    with pytest.raises(UserError, match=r"--output-dir .*mine: "):
        RunFolder.create_at(tmp_path / "file" / "mine")


def test_metrics_are_lines_of_strict_json(run: RunFolder) -> None:
    agents = [{"seed": 1, "a": float("nan")}, {"seed": 2, "a": None}]
    run.add_metrics({"update": 1, "a": 0.5, "b": None, "c": float("nan")})
    run.add_metrics({"update": 2, "a": float("inf"), "agents": agents, "alarms": ["b"]})
    lines = (run.path / "metrics.jsonl").read_text().splitlines()
    of_agents = {"agents": [{"seed": 1, "a": None}, {"seed": 2}], "alarms": ["b"]}
    expected = [{"update": 1, "a": 0.5, "c": None}, {"update": 2, "a": None, **of_agents}]
    assert list(map(json.loads, lines)) == run.metrics() == expected


def test_a_line_that_a_kill_has_cut_is_left_out_and_written_over(run: RunFolder) -> None:
    for update in (1, 2, 3):
        run.add_metrics({"update": update})
    metrics = run.path / "metrics.jsonl"
    metrics.write_bytes(metrics.read_bytes()[:-4])
    assert [row["update"] for row in run.metrics()] == [1, 2]
    run.cut_metrics(2)
    run.add_metrics({"update": 3})
    assert [row["update"] for row in run.metrics()] == [1, 2, 3]
    run.cut_metrics(2)
    assert [row["update"] for row in run.metrics()] == [1, 2]


@pytest.mark.parametrize("left", [None, b"", b'{"update": 1}\n'])
def test_rows_that_are_gone_are_found_and_not_made_anew(run: RunFolder, left: bytes | None) -> None:
    for update in (1, 2):
        run.add_metrics({"update": update})
    metrics = run.path / "metrics.jsonl"
    metrics.unlink()
    if left is not None:
        metrics.write_bytes(left)
    for write in (lambda: run.add_metrics({"update": 3}), run.settle_metrics, run.check):
        with pytest.raises(LostFolderError, match=r"metrics\.jsonl was deleted or cut"):
            write()
    with pytest.raises(OSError, match="rows that were written are gone"):
        run._metrics.add({"update": 3})  # they went after the check
    assert (metrics.read_bytes() if metrics.exists() else None) == left


def test_a_folder_that_goes_meanwhile_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder.create(tmp_path, "mine", None)
    run.add_metrics({"update": 1})
    is_whole = run._metrics.is_whole

    def moved_away() -> bool:
        run.path.rename(tmp_path / "aside")
        return is_whole()

    monkeypatch.setattr(run._metrics, "is_whole", moved_away)
    with pytest.raises(LostFolderError, match="mine was deleted, moved or replaced"):
        run.check()


def test_rows_before_the_first_process_of_a_folder_are_not_missed(tmp_path: Path) -> None:
    assert not lacks_row(tmp_path, 5)  # a checkpoint in no run
    (tmp_path / "config.yaml").touch()
    assert lacks_row(tmp_path, 5)
    assert not lacks_row(tmp_path, 0)
    (tmp_path / "starts.jsonl").write_text('{"update": 5}\n{"update": 8}\n{"upd')
    assert not lacks_row(tmp_path, 5)  # that one went on from a checkpoint alone
    assert lacks_row(tmp_path, 10)
    (tmp_path / "metrics.jsonl").write_text('{"update": 10}\n{"update": 11}\n')
    assert not lacks_row(tmp_path, 10)


def test_agents_of_a_run_are_in_the_order_of_their_seeds(tmp_path: Path) -> None:
    for name in ("seed_10", "seed_9", "seed_100", "seed_", "seed_x", "checkpoints"):
        (tmp_path / name).mkdir()
    assert [folder.name for folder in agent_folders(tmp_path)] == ["seed_9", "seed_10", "seed_100"]


@pytest.mark.parametrize(
    "name", [".lock", "config.yaml", "metrics.jsonl", "log.txt", "starts.jsonl"]
)
def test_a_file_that_a_link_leads_to_is_not_written(name: str, tmp_path: Path) -> None:
    theirs = tmp_path / "bashrc"
    theirs.write_text("theirs")
    run = tmp_path / "mine"
    run.mkdir()
    (run / "config.yaml").write_text("training: {lr: 1}\n")
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(theirs)
    with pytest.raises(UserError, match=rf"mine/{name} is a link: .*; remove the link"):
        RunFolder(run)
    assert theirs.read_text() == "theirs"


def test_links_that_are_planted_while_a_run_is_open_are_not_followed(tmp_path: Path) -> None:
    theirs = tmp_path / "bashrc"
    theirs.write_text("theirs")
    run = RunFolder.create(tmp_path, "mine", None)
    for name in WRITTEN_ON:
        (run.path / name).symlink_to(theirs)
    for name in ("config.yaml", "final_params.npz", "final_params.json"):
        (run.path / f"{PARTIAL}{name}-{os.getpid()}").symlink_to(theirs)
    run.write_config("training: {lr: 1}\n")
    save_params(run.path / "final_params.npz", {"params": np.zeros(1)}, {})
    with pytest.raises(OSError, match=r"metrics.jsonl is a link"):
        run.add_metrics({"update": 1})
    with pytest.raises(OSError, match=r"starts.jsonl is a link"):
        run.add_start({})
    out = io.StringIO()
    with Console(out) as console:
        console.keep_log(run.path / "log.txt")
    assert "log.txt is a link" in out.getvalue()
    assert theirs.read_text() == "theirs"
    assert (run.path / "config.yaml").read_text() == "training: {lr: 1}\n"
    assert not (run.path / "config.yaml").is_symlink()
    run.close()
