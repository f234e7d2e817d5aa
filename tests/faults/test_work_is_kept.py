"""Whatever happens to a run, nothing that it trained is deleted without being asked for."""

import io
import shutil
import time
from pathlib import Path

import pytest
from interrupted_runs import after_update
from small_runs import rows_of, run_of, updates_of

from hackmatrix.agents.networks.policy import load_policy
from hackmatrix.cli.main import exit_code
from hackmatrix.core.errors import UserError
from hackmatrix.learning.settings.config import TrainOptions
from hackmatrix.learning.trainer.trainer import TrainState
from hackmatrix.runs import checkpoints
from hackmatrix.runs.folder import LostFolderError

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("shared_programs")]


def files_of(run: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


@pytest.mark.thorough
def test_params_of_a_run_whose_checkpoints_all_failed_are_not_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_of(tmp_path, save_interval=3, total_timesteps=3 * 64)

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    resumed = TrainOptions(resume=str(tmp_path / "mine"))
    with monkeypatch.context() as full:
        full.setattr("hackmatrix.runs.saver.save_checkpoint", no_space)
        outcome = run_of(tmp_path, resumed, save_interval=3, total_timesteps=7 * 64)
    assert outcome.params == tmp_path / "mine" / "final_params.npz"
    assert updates_of(tmp_path / "mine") == [3]
    with pytest.raises(UserError, match=r"newer params .* \(params_7, final_params\): --rewind"):
        run_of(tmp_path, resumed)
    assert load_policy(tmp_path / "mine").about["update"] == 7

    options, output = TrainOptions(resume=resumed.resume, rewind=True), io.StringIO()
    run_of(tmp_path, options, output=output, total_timesteps=7 * 64)
    assert "2 rows of metrics after update 3 are dropped" in output.getvalue()
    assert updates_of(tmp_path / "mine") == [3, 6, 7]
    assert [row["update"] for row in rows_of(tmp_path / "mine")] == [3, 6, 7]


def told_by_a_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The line with which the command for a run ends."""

    def command() -> int:
        run_of(folder, save_interval=1, log_interval=1)
        return 0

    assert exit_code("hackmatrix train", command) == 1
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.thorough
@pytest.mark.parametrize("fate", ["deleted", "moved", "replaced"])
def test_a_run_whose_folder_is_taken_away_stops_and_leaves_the_next_one_alone(
    fate: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run, other = tmp_path / "mine", tmp_path / "aside"

    def take_away(_: TrainState) -> None:
        wait_for(run / "params_4.json")
        run.rename(other)
        if fate == "deleted":
            shutil.rmtree(other)
        if fate == "replaced":
            (run / "checkpoints" / "1").mkdir(parents=True)
            (run / ".lock").touch()
            (run / "params_1.npz").write_text("of the next run")

    after_update(monkeypatch, 4, take_away)
    line = told_by_a_run(tmp_path, capsys)
    assert line.startswith(f"hackmatrix train: error: {run} was deleted, moved or replaced")
    left = [".lock", "1", "checkpoints", "params_1.npz"] if fate == "replaced" else []
    assert sorted(path.name for path in run.rglob("*")) == left
    assert run.exists() == (fate == "replaced")
    if fate != "deleted":
        assert updates_of(other) == [1, 2, 3, 4]


def wait_for(file: Path) -> None:
    """Until it is there, so that nothing is being saved."""
    while not file.exists():
        time.sleep(0.01)


def test_a_run_whose_rows_are_taken_away_stops_and_makes_no_file_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "mine"

    def take_away(_: TrainState) -> None:
        wait_for(run / "params_4.json")
        (run / "metrics.jsonl").unlink()

    after_update(monkeypatch, 4, take_away)
    line = told_by_a_run(tmp_path, capsys)
    assert line.startswith(f"hackmatrix train: error: {run}/metrics.jsonl was deleted or cut")
    assert not (run / "metrics.jsonl").exists()
    assert updates_of(run) == [1, 2, 3, 4]


def test_a_checkpoint_without_its_rows_is_not_resumed_as_if_it_had_them(tmp_path: Path) -> None:
    run_of(tmp_path, save_interval=3, log_interval=3, total_timesteps=6 * 64)
    run = tmp_path / "mine"
    metrics = run / "metrics.jsonl"
    rows = metrics.read_bytes().splitlines(keepends=True)
    metrics.write_bytes(rows[0])
    before = files_of(run)
    lacks = r"lacks rows before checkpoint 6, its last one is of update 3: put the file back, or --"
    with pytest.raises(UserError, match=lacks):
        run_of(tmp_path, TrainOptions(resume=str(run)))
    assert files_of(run) == before
    output = io.StringIO()
    run_of(tmp_path, TrainOptions(resume=str(run), rewind=True), output=output)
    assert "all 6 updates are made" in output.getvalue()
    metrics.write_bytes(b"".join(rows))
    run_of(tmp_path, TrainOptions(resume=str(run)))


def test_a_folder_that_is_moved_while_a_checkpoint_is_saved_is_not_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "mine"
    write = checkpoints.write_arrays

    def moved(path: Path, arrays: checkpoints.Arrays) -> None:
        run.rename(tmp_path / "aside")
        path.parent.mkdir(parents=True)  # as Orbax does, if it comes to that then
        write(path, arrays)

    monkeypatch.setattr(checkpoints, "write_arrays", moved)
    with pytest.raises(LostFolderError, match="mine was deleted, moved or replaced"):
        run_of(tmp_path, save_interval=3)
    assert not run.exists()
    assert rows_of(tmp_path / "aside")
