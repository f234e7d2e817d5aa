"""Disks that are full, and what a process finds that was killed before it began."""

import contextlib
import errno
import io
import resource
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from small_runs import rows_of, run_of, updates_of

from hackmatrix.cli.main import exit_code
from hackmatrix.core import files
from hackmatrix.core.errors import UserError
from hackmatrix.learning.run.loop import End
from hackmatrix.learning.settings.config import TrainOptions
from hackmatrix.runs import metrics_file as rows
from hackmatrix.runs.folder import RunFolder
from hackmatrix.runs.metrics_file import METRICS_FILE
from hackmatrix.runs.params import load_params, save_params

pytestmark = [pytest.mark.usefixtures("shared_programs"), pytest.mark.thorough]


@contextlib.contextmanager
def full_beyond(size: int) -> Iterator[None]:
    """Lets this process write no file beyond this size."""
    soft, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, most))


def partial_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if ".saving-" in path.name]


def test_a_disk_that_is_full_at_the_start_is_found_before_anything_is_compiled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = io.StringIO()

    def command() -> int:
        run_of(tmp_path, output=output)
        return 0

    with full_beyond(0):
        code = exit_code("hackmatrix train", command)
    (line,) = capsys.readouterr().err.splitlines()
    assert code == 1
    assert line.startswith("hackmatrix train: error: ")
    assert line.endswith(": File too large")
    assert "compil" not in output.getvalue()
    assert not (tmp_path / "mine").exists()


def test_a_pair_that_cant_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "best_params.npz"
    save_params(path, {"params": {"a": [1.0]}}, {"update": 1})
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    written: list[int] = []

    def full(handle: int) -> None:
        written.append(handle)
        if len(written) == 2:  # the second file of the pair
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save_params(path, {"params": {"a": [2.0]}}, {"update": 2})
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


@pytest.mark.parametrize("steps", range(5))
def test_a_kill_between_any_two_steps_leaves_params_with_their_own_facts(
    steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "best_params.npz"
    save_params(path, {"params": {"a": [1.0]}}, {"update": 1})
    left = [steps]

    def counted(name: str) -> None:
        real = getattr(Path, name)

        def step(self: Path, *arguments: object, **settings: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise SystemExit  # stands for a kill: no step after it is made
            return real(self, *arguments, **settings)

        monkeypatch.setattr(Path, name, step)

    counted("replace")
    counted("unlink")
    with contextlib.suppress(SystemExit):
        save_params(path, {"params": {"a": [2.0]}}, {"update": 2})
    monkeypatch.undo()
    found = load_params(path)
    held = found.params["params"]["a"]
    assert found.about.get("update", held) == held


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ([], {"run_name": "mine"}),
        ([".lock", ".saving-config.yaml-1"], {"run_name": "mine"}),
        ([".lock", ".saving-probe-1", ".saving-.saving-probe-1-1"], {"output_dir": Path("mine")}),
    ],
)
def test_a_folder_that_a_kill_while_compiling_left_is_taken_over(
    content: list[str], options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    for name in content:
        Path("mine", name).touch()
    assert run_of(Path(), TrainOptions(**options), total_timesteps=64).end is End.FINISHED
    assert partial_files(Path("mine")) == []


def test_a_folder_that_is_being_compiled_for_is_not_taken_over(tmp_path: Path) -> None:
    first = RunFolder.create(tmp_path, "mine", None)
    with pytest.raises(UserError, match="mine is being trained by another process"):
        RunFolder.create(tmp_path, "mine", None)
    first.close()


def test_rows_are_on_disk_before_the_checkpoint_that_follows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    synced, rename = files.sync, Path.rename

    def told_sync(path: Path) -> None:
        order.append(path.name)
        synced(path)

    def told_rename(self: Path, target: Path) -> Path:
        order.append(f"-> {Path(target).name}")
        return rename(self, target)

    monkeypatch.setattr("hackmatrix.runs.metrics_file.sync", told_sync)
    monkeypatch.setattr(Path, "rename", told_rename)
    run_of(tmp_path)
    assert order.index("metrics.jsonl") < order.index("-> 7")


def test_rows_that_a_full_disk_refuses_are_written_when_it_takes_them(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "mine", None)
    run.add_metrics({"update": 1})
    size = (run.path / METRICS_FILE).stat().st_size
    for limit in (size, size + 5):  # nothing of the line fits, or its beginning
        refused = pytest.raises(OSError, match=r"No space left|File too large")
        with full_beyond(limit), refused:
            run.add_metrics({"update": limit})
        assert (run.path / METRICS_FILE).stat().st_size == size
    run.add_metrics({"update": 4})
    assert [row["update"] for row in run.metrics()] == [1, size, size + 5, 4]
    run.close()


@pytest.mark.parametrize("are_finite", [True, False])  # False: nothing is saved at the end
def test_rows_that_wait_at_the_end_of_a_run_are_written(
    are_finite: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = RunFolder.add_metrics

    def add_to_full(self: RunFolder, row: Mapping[str, Any]) -> None:
        path = self.path / METRICS_FILE
        with full_beyond(path.stat().st_size) if row["update"] > 4 else contextlib.nullcontext():
            add(self, row)

    monkeypatch.setattr(RunFolder, "add_metrics", add_to_full)
    if not are_finite:
        monkeypatch.setattr("hackmatrix.learning.trainer.seeds.are_finite", lambda _: False)
    output = io.StringIO()
    outcome = run_of(tmp_path, output=output, log_interval=1)
    assert "metrics.jsonl can't be written" in output.getvalue()
    assert outcome.saved is are_finite
    assert [row["update"] for row in rows_of(outcome.run)] == [1, 2, 3, 4, 5, 6, 7]


def test_there_is_no_checkpoint_without_the_rows_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, opened, add = tmp_path / "mine", rows.open_no_link, RunFolder.add_metrics
    full: list[bool] = []

    def open_on_full(path: Path | str, flags: int, mode: int = 0o666) -> int:
        if full and Path(path).name == METRICS_FILE:
            raise OSError(errno.ENOSPC, "No space left on device")
        return opened(path, flags, mode)

    def fill_up(self: RunFolder, row: Mapping[str, Any]) -> None:
        if row["update"] == 4:
            while not (run / "params_3.json").exists():  # so that nothing is being saved
                time.sleep(0.01)
            full.append(True)
        add(self, row)

    output = io.StringIO()
    with monkeypatch.context() as patch:
        patch.setattr(rows, "open_no_link", open_on_full)
        patch.setattr(RunFolder, "add_metrics", fill_up)
        outcome = run_of(tmp_path, output=output, log_interval=1, save_interval=3)
    assert (outcome.updates, outcome.saved, updates_of(run)) == (7, False, [3])
    reason = "can't be written: metrics.jsonl: No space left on device;"
    for what in ("checkpoint of update 6", "checkpoint of update 7", "last rows of metrics"):
        assert f"warning: the {what} {reason}" in output.getvalue()

    outcome = run_of(tmp_path, TrainOptions(resume=str(run), rewind=True))
    assert outcome.saved
    assert updates_of(run) == [3, 6, 7]
    assert [row["update"] for row in rows_of(run)] == [1, 2, 3, 4, 5, 6, 7]
