"""The command itself, nothing replaced: real processes that train to a bucket on this machine."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from bucket_runs import PREFIX, RUN, contents, stored, until
from fake_bucket import LEFT_SOCKETS, FakeBucket

from hackmatrix.runs.buckets.plan import checkpoint_of, whole_checkpoints
from hackmatrix.runs.metrics_file import read_metrics, rows_in

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), pytest.mark.filterwarnings(LEFT_SOCKETS)]

UPDATE = 8 * 8  # actions
NEW = "--env CartPole-v1 --num-envs 8 --num-steps 8 --hidden-dim 8 --num-layers 1 --num-devices 1"
NEW += " --log-interval 1 --keep-checkpoints 2 --no-wandb --no-tensorboard"
NEW += " --checkpoint-dir gs://my-bucket/runs --run-name mine"
HERE = Path("checkpoints/my-bucket/runs/mine")


@contextmanager
def training(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    folder.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "hackmatrix", "train", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def train(folder: Path, *arguments: str, updates: int, code: int = 0) -> str:
    """Trains until this update; what was printed."""
    with training(folder, *arguments, "--total-timesteps", str(updates * UPDATE)) as process:
        output, _ = process.communicate(timeout=300)
    assert process.returncode == code, output
    return output


def without_log(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in files.items() if name != "log.txt"}


def test_a_stale_folder_drops_nothing_of_the_newer_run_in_its_bucket(
    fake: FakeBucket, tmp_path: Path
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    train(one, *NEW.split(), "--save-interval", "2", updates=6)
    train(other, "--resume", str(RUN), updates=12)
    newer = stored(fake)
    assert whole_checkpoints(newer) == [10, 12]

    output = train(one, "--resume", str(HERE), updates=14)
    assert f"fetching {RUN} to {HERE}" in output
    assert "after update 12" in output
    held = stored(fake)
    assert whole_checkpoints(held) == [12, 14]
    for name in (name for name in newer if checkpoint_of(name) == 12):
        assert held[name] == newer[name], name
    assert held["metrics.jsonl"].startswith(newer["metrics.jsonl"])
    assert [row["update"] for row in rows_in(held["metrics.jsonl"])] == list(range(1, 15))
    assert without_log(held) == without_log(contents(one / HERE))


def test_a_run_that_was_trained_on_in_two_places_loses_neither(
    fake: FakeBucket, tmp_path: Path
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    train(one, *NEW.split(), "--save-interval", "2", updates=6)
    train(other, "--resume", str(RUN), updates=8)
    home = (one / HERE / "bucket.json").rename(one / "home")
    train(one, "--resume", str(HERE), updates=10)  # as without the network
    home.rename(one / HERE / "bucket.json")
    before = stored(fake), contents(one / HERE)
    for resumed in (str(RUN), str(HERE)):
        output = train(one, "--resume", resumed, updates=20, code=2)
        assert output.count("error: ") == 1
        assert f"error: {HERE} (update 10) and {RUN} (update 8) are not the same run" in output
        assert (stored(fake), contents(one / HERE)) == before


@pytest.mark.parametrize("first", ["the rows", "all"])
def test_a_folder_that_is_deleted_while_its_run_trains_leaves_the_bucket_as_it_was(
    fake: FakeBucket, tmp_path: Path, first: str
) -> None:
    run = tmp_path / "one" / HERE
    words = [*NEW.split(), "--save-interval", "200", "--total-timesteps", "1e9"]
    with training(tmp_path / "one", *words) as process:
        until(lambda: len(whole_checkpoints(stored(fake))) > 1, 200)
        if first == "the rows":
            (run / "metrics.jsonl").unlink()
        else:
            until(lambda: shutil.rmtree(run, ignore_errors=True) or not run.exists())
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 1, output
    assert "Traceback" not in output
    gone = "metrics.jsonl was deleted or cut" if first == "the rows" else "mine was deleted, moved"
    assert output.count(f"hackmatrix train: error: {HERE}") == 1
    assert gone in output
    assert not (run / "metrics.jsonl").exists()

    saved = whole_checkpoints(stored(fake))[-1]
    rows = [row["update"] for row in rows_in(fake.objects[f"{PREFIX}metrics.jsonl"].content)]
    assert rows == list(range(1, len(rows) + 1))
    assert len(rows) >= saved

    end = saved + 3
    assert f"after update {saved}" in train(tmp_path / "two", "--resume", str(RUN), updates=end)
    rows = [row["update"] for row in read_metrics(tmp_path / "two" / HERE)]
    assert rows == list(range(1, end + 1))


def test_one_command_begins_a_run_and_goes_on_with_it(fake: FakeBucket, tmp_path: Path) -> None:
    """As a scheduler starts it again and again, on the same machine or on another one."""
    command = [*NEW.split(), "--resume-if-there"]
    one, other = tmp_path / "one", tmp_path / "other"
    train(one, *command, updates=4)
    for machine, updates in ((one, 8), (other, 12), (one, 16)):
        assert f"after update {updates - 4}" in train(machine, *command, updates=updates)
    rows = rows_in(stored(fake)["metrics.jsonl"])
    assert [row["update"] for row in rows] == list(range(1, 17))
    fake.is_down = True  # then nobody knows whether there is a run
    assert "error" in train(tmp_path / "third", *command, updates=20, code=75)


def test_one_command_begins_a_run_here_and_goes_on_with_it(tmp_path: Path) -> None:
    command = [*NEW.replace("gs://my-bucket/", "").split(), "--resume-if-there"]
    train(tmp_path, *command, updates=4)
    assert "after update 4" in train(tmp_path, *command, updates=8)
    assert "after update 8" in train(tmp_path, *command, updates=8)  # nothing is left to do
