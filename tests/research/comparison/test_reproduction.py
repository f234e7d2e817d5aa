"""Runs that are trained again: equal bit for bit, or told what differs."""

import contextlib
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_data import GRID, use_grid
from sharing_trainer import SharingTrainer

from hackmatrix.cli.main import main
from hackmatrix.research.comparison.reproduction import RecordedRun, compare, read_recorded

TRAIN = [
    *("train", "--env", "CartPole-v1", "--num-envs", "2", "--num-steps", "8"),
    *("--num-minibatches", "1", "--hidden-dim", "8", "--log-interval", "2", "--no-tensorboard"),
    "--no-wandb",
]
EVALUATED = ["--num-seeds", "2", "--eval-interval", "3", "--eval-episodes", "4"]


Runs = tuple[Path, Path, dict[str, Any]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """A run, the one that was trained again, and what the command said.

    Both in this process, where the second takes over what the first has compiled; the slow tests
    and `tests/commands` reproduce runs in processes of their own.
    """
    folder = tmp_path_factory.mktemp("runs")
    run, again = folder / "run", folder / "again"
    train = [*TRAIN, "--env", GRID, *EVALUATED, "--total-timesteps", "80", "--output-dir", str(run)]
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patched:
        use_grid(patched)
        patched.setattr("hackmatrix.learning.run.loop.Trainer", SharingTrainer)
        assert main(train) == 0
        before = contents(run)
        with contextlib.redirect_stdout(said):
            assert main(["reproduce", str(run), "--output-dir", str(again), "--json"]) == 0
    assert contents(run) == before
    return run, again, json.loads(said.getvalue())


@pytest.fixture(autouse=True)
def _grid(monkeypatch: pytest.MonkeyPatch) -> None:
    use_grid(monkeypatch)


def contents(run: Path) -> dict[Path, tuple[bytes, int]]:
    files = sorted(path for path in run.rglob("*") if path.is_file())
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def reproduced(run: Path) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "hackmatrix", "reproduce", str(run), "--json"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.stdout, result.stderr
    said: dict[str, Any] = json.loads(result.stdout)
    return result.returncode, said


def changed(run: Path, change: Callable[[Path], None], folder: Path) -> RecordedRun:
    """The run after a change of a copy of it."""
    copy = Path(shutil.copytree(run, folder / "copy"))
    change(copy)
    return read_recorded(copy, None)


@pytest.mark.slow
def test_a_run_is_trained_again_bit_for_bit(runs: Runs) -> None:
    _, again, said = runs
    assert said["equal"]
    assert said["rows"] == 5  # of metrics after 2, 4 and 5 updates, and two evaluations
    files = {f"seed_{seed}/{name}_params.npz" for seed in (0, 1) for name in ("best", "final")}
    assert said["params"] == dict.fromkeys(files)
    assert (again / "config.yaml").exists()


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def write_rows(folder: Path, rows: list[dict[str, Any]]) -> None:
    (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))


@pytest.mark.thorough
def test_a_changed_number_in_a_row_is_found(runs: Runs, tmp_path: Path) -> None:
    def change(copy: Path) -> None:
        first, *rows = rows_of(copy)
        first["agents"][1]["train/entropy"] += 1e-9
        first["train/steps_per_second"] = 1.0  # which is another each time
        write_rows(copy, [first, *rows])

    found = compare(changed(runs[0], change, tmp_path), runs[1])
    assert not found.is_equal
    assert len(found.unequal_rows) == 1
    assert found.unequal_rows[0].startswith("update 2: train/entropy of seed 1 was 1.")
    assert "rows    4 of 5 are equal" in found.text()
    assert not any(found.params.values())


@pytest.mark.thorough
def test_the_speed_alone_makes_no_difference(runs: Runs, tmp_path: Path) -> None:
    def change(copy: Path) -> None:
        first, *rows = rows_of(copy)
        first |= {"train/steps_per_second": 1.0, "alarms": ["throughput_falling"]}
        write_rows(copy, [first, *rows])

    assert compare(changed(runs[0], change, tmp_path), runs[1]).is_equal


@pytest.mark.thorough
def test_a_bit_of_a_param_is_found(runs: Runs, tmp_path: Path) -> None:
    def change(copy: Path) -> None:
        path = copy / "seed_1" / "final_params.npz"
        arrays = dict(np.load(path))
        kernel = arrays["params.Dense_0.kernel"]
        kernel[0, 0] = np.nextafter(kernel[0, 0], np.float32(9))
        np.savez(path, **arrays)

    found = compare(changed(runs[0], change, tmp_path), runs[1])
    unequal = {name: how for name, how in found.params.items() if how is not None}
    assert list(unequal) == ["seed_1/final_params.npz"]
    assert unequal["seed_1/final_params.npz"].startswith("1 of ")
    assert "NOT reproduced" in found.text()


@pytest.mark.thorough
def test_rows_and_params_that_one_of_them_lacks_are_found(runs: Runs, tmp_path: Path) -> None:
    run, again, _ = runs
    found = compare(
        changed(run, lambda copy: write_rows(copy, rows_of(copy)[:-1]), tmp_path), again
    )
    assert not found.is_equal
    assert len(found.unequal_rows) == 1
    assert found.unequal_rows[0].endswith(": there is no row")

    copy = Path(shutil.copytree(again, tmp_path / "again"))
    write_rows(copy, rows_of(copy)[:2])
    for path in (copy / "seed_0").glob("*.npz"):
        path.unlink()
    found = compare(read_recorded(run, None), copy)
    assert not found.is_equal
    assert len(found.unequal_rows) == 3
    assert found.params["seed_0/final_params.npz"] == "was not made again"


@pytest.mark.thorough
def test_what_is_different_from_then_is_told(runs: Runs, tmp_path: Path) -> None:
    def change(copy: Path) -> None:
        start = json.loads((copy / "starts.jsonl").read_text())
        start["versions"]["jax"] = "0.1"
        start |= {"device": "TPU v4", "commit": "abc+"}
        (copy / "starts.jsonl").write_text(json.dumps(start) + "\n")
        text = (copy / "config.yaml").read_text()
        (copy / "config.yaml").write_text(text.replace("gamma: ", "gamma: 0.5 # "))

    told = "; ".join(changed(runs[0], change, tmp_path).differences)
    for each in (
        "jax was 0.1, is ",
        "device was TPU v4, is cpu",
        "the code then had changes that are in no commit",
        "gamma was 0.99 while it trained, is 0.5 in config.yaml",
    ):
        assert each in told
    shutil.rmtree(tmp_path / "copy")
    none = changed(runs[0], lambda copy: (copy / "starts.jsonl").unlink(), tmp_path)
    assert none.differences == [
        "no starts.jsonl tells with which version and on which machine it was trained"
    ]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("files", "content", "message"),
    [
        ("config.yaml", None, "is no folder of a run"),
        (
            "starts.jsonl",
            '{"update": 7}',
            "goes on from update 7 of another run, so it has no",
        ),
        ("seed_0/final_params.npz", "x", "is no .npz file of params"),
        ("config.yaml", "tpu: {distributed: true}", "was trained by several processes"),
        ("config.yaml", "training: {gama: 1}", "unknown setting"),
        ("seed_0 seed_1 metrics.jsonl", None, "has neither rows of metrics nor params"),
    ],
)
def test_what_can_not_be_trained_again_is_refused_in_one_line(
    files: str, content: str | None, message: str, runs: Runs, tmp_path: Path, capsys: Any
) -> None:
    copy = Path(shutil.copytree(runs[0], tmp_path / "run"))
    for path in (copy / name for name in files.split()):
        if content is not None:
            path.write_text(content)
        elif path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    assert main(["reproduce", str(copy)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.thorough
def test_nothing_is_written_into_the_run(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", str(runs[0]), "--output-dir", str(runs[0] / "again")]) == 2
    assert "lies in the run, to which nothing is written" in capsys.readouterr().err
    assert not (runs[0] / "again").exists()


@pytest.mark.slow
def test_a_resumed_run_that_began_from_params_is_reproduced(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert main([*TRAIN, "--total-timesteps", "32", "--output-dir", str(first)]) == 0
    params = str(first / "final_params.npz")
    start = [*TRAIN, "--resume", params, "--total-timesteps", "64", "--output-dir", str(second)]
    command = [sys.executable, "-m", "hackmatrix"]
    subprocess.run([*command, *start], check=True, capture_output=True)
    more = ["train", "--resume", str(second), "--total-timesteps", "128"]
    subprocess.run([*command, *more], check=True, capture_output=True)
    assert len((second / "starts.jsonl").read_text().splitlines()) == 2
    code, said = reproduced(second)
    assert said["equal"], said
    assert code == 0


@pytest.mark.slow
def test_of_a_run_that_was_killed_the_part_that_was_made_is_reproduced(tmp_path: Path) -> None:
    run = tmp_path / "run"
    train = [*TRAIN, "--total-timesteps", "80", "--save-interval", "2", "--output-dir", str(run)]
    assert main(train) == 0
    for path in [*run.glob("final_params.*"), *run.glob("params_[45].*")]:
        path.unlink()
    rows = (run / "metrics.jsonl").read_text().splitlines()
    (run / "metrics.jsonl").write_text(rows[0] + "\n")
    code, said = reproduced(run)
    assert said["params"] == {"params_2.npz": None}
    assert (said["rows"], code) == (1, 0)
