"""Trainings in processes of their own that go to a bucket, are killed, and go on from it."""

import shutil
import signal
from pathlib import Path

import pytest
from bucket_runs import PREFIX, RUN, contents, put_run, stored, until
from fake_bucket import LEFT_SOCKETS, FakeBucket
from grid_processes import SETTINGS, finish, rows_of, training, wait_for_update
from hosts import BATCH, TINY, codes, train_alone
from hosts import training as training_together
from small_runs import assert_same_run as assert_same_tiny_run

from hackmatrix.runs.buckets.cache import fetch
from hackmatrix.runs.buckets.plan import whole_checkpoints
from hackmatrix.runs.checkpoints import load_checkpoint
from hackmatrix.runs.metrics_file import rows_in

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings(LEFT_SOCKETS)]

EVERY = 5
ALL = [name for name in SETTINGS if not name.startswith("--checkpoint-dir")]
ALL += ["--total-timesteps", str(4 * EVERY * 256), "--save-interval", str(EVERY)]
BUCKET = ["--checkpoint-dir", "gs://my-bucket/runs"]


def is_there(fake: FakeBucket, update: int) -> bool:
    return f"{PREFIX}checkpoints/{update}/manifest.json" in fake.objects


def without_log(files: dict[str, bytes]) -> dict[str, bytes]:
    """All but the log, which tells of the end of the uploads too."""
    return {name: content for name, content in files.items() if name != "log.txt"}


def assert_same_run(one: Path, other: Path, update: int) -> None:
    mine, theirs = (load_checkpoint(run / "checkpoints" / str(update))[0] for run in (one, other))
    assert mine.keys() == theirs.keys()
    for name in mine:
        assert mine[name].tobytes() == theirs[name].tobytes(), name
    assert rows_of(one) == rows_of(other)
    assert (one / "final_params.npz").read_bytes() == (other / "final_params.npz").read_bytes()


def test_a_killed_run_goes_on_on_an_empty_machine(fake: FakeBucket, tmp_path: Path) -> None:
    first, second, undisturbed = (tmp_path / name for name in ("first", "second", "undisturbed"))
    for folder in (first, second, undisturbed):
        folder.mkdir()
    finish(undisturbed, *ALL, "--checkpoint-dir=runs", "--run-name=mine")

    stall = 2 * EVERY + 2
    with training(first, *ALL, *BUCKET, "--run-name=mine", stall=stall) as process:
        wait_for_update(process, stall)
        until(lambda: is_there(fake, 2 * EVERY), 60)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert f"{PREFIX}lease.json" in fake.objects  # nobody gave it back
    shutil.rmtree(first)

    output = finish(second, "--resume", str(RUN), *BUCKET)
    assert f"fetching {RUN} to checkpoints/my-bucket/runs/mine" in output
    assert f"after update {2 * EVERY}" in output
    run = second / "checkpoints" / "my-bucket" / "runs" / "mine"
    assert_same_run(undisturbed / "runs" / "mine", run, 4 * EVERY)

    assert f"{PREFIX}lease.json" not in fake.objects
    assert without_log(stored(fake)) == without_log(contents(run))
    assert_same_run(run, fetch(RUN, checkpoints=True), 4 * EVERY)


def test_a_run_killed_as_it_begins_goes_on_in_its_bucket(fake: FakeBucket, tmp_path: Path) -> None:
    local = Path("checkpoints", "my-bucket", "runs", "mine")
    with training(tmp_path, *ALL, *BUCKET, "--run-name=mine", stall=1) as process:
        until(lambda: (tmp_path / local / "config.yaml").exists(), 120)
        process.send_signal(signal.SIGKILL)
        process.wait()
    output = finish(tmp_path, "--resume", str(local))
    assert f"is mirrored to {RUN}" in output
    assert without_log(stored(fake)) == without_log(contents(tmp_path / local))


@pytest.mark.parametrize("first", ["metrics.jsonl", "."])
def test_a_folder_deleted_while_its_run_trains_leaves_the_bucket_as_it_was(
    fake: FakeBucket, tmp_path: Path, first: str
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    local = Path("checkpoints", "my-bucket", "runs", "mine")
    with training(one, *ALL, *BUCKET, "--run-name=mine", "--total-timesteps=1e9") as process:
        until(lambda: len(whole_checkpoints(stored(fake))) > 1, 200)
        if first == ".":
            until(
                lambda: shutil.rmtree(one / local, ignore_errors=True) or not (one / local).exists()
            )
        else:
            (one / local / first).unlink()
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 1, output
    assert "Traceback" not in output
    gone = "mine was deleted, moved" if first == "." else "metrics.jsonl was deleted or cut"
    (error,) = (line for line in output.splitlines() if "error: " in line)
    assert gone in error
    assert not (one / local / "metrics.jsonl").exists()

    saved = whole_checkpoints(stored(fake))[-1]
    rows = [row["update"] for row in rows_in(stored(fake)["metrics.jsonl"])]
    assert rows == list(range(1, len(rows) + 1))
    assert len(rows) >= saved
    end = ["--total-timesteps", str((saved + 3) * 256)]
    assert f"after update {saved}" in finish(other, "--resume", str(RUN), *end)
    assert [row["update"] for row in rows_of(other / local)] == list(range(1, saved + 4))


def test_a_run_of_the_bucket_goes_on_as_another(fake: FakeBucket, tmp_path: Path) -> None:
    finish(tmp_path, *ALL, "--checkpoint-dir=runs", "--run-name=mine")
    put_run(fake, tmp_path / "runs" / "mine")
    before = stored(fake)
    more = ["--total-timesteps", str(5 * EVERY * 256)]
    finish(tmp_path, "--resume", str(RUN), "--run-suffix", "more", "--run-name", "mine", *more)
    assert stored(fake) == before
    local = tmp_path / "checkpoints" / "my-bucket" / "runs" / "mine-more"
    assert without_log(stored(fake, "runs/mine-more/")) == without_log(contents(local))
    assert f"{PREFIX}lease.json" not in fake.objects


def test_two_processes_go_on_on_empty_machines(fake: FakeBucket, tmp_path: Path) -> None:
    first, second, alone = (tmp_path / name for name in ("first", "second", "alone"))
    for folder in (first, second, alone):
        folder.mkdir()
    settings = [*TINY, "--run-name", "mine", "--lr-schedule", "constant", "--total-timesteps"]
    with training_together(first, 2, *settings, "1e9", *BUCKET) as hosts:
        hosts[0].wait_for("update 3/")
        hosts[1].parent.send_signal(signal.SIGTERM)
        assert codes(hosts) == [143, 143], [host.told() for host in hosts]
    local = Path("checkpoints", "my-bucket", "runs", "mine")
    (saved,) = (int(path.name) for path in (first / "host0" / local / "checkpoints").iterdir())
    assert is_there(fake, saved)
    assert f"{PREFIX}lease.json" not in fake.objects
    assert hosts[1].files() == set()
    shutil.rmtree(first)

    steps = ["--total-timesteps", str((saved + 3) * BATCH)]
    with training_together(second, 2, "--resume", str(RUN), *BUCKET, *steps) as hosts:
        assert codes(hosts) == [0, 0], [host.told() for host in hosts]
    assert f"after update {saved}" in hosts[0].told()
    assert hosts[1].files() == set()
    run = second / "host0" / local
    assert without_log(stored(fake)) == without_log(contents(run))

    train_alone(alone, *settings, str(saved * BATCH), "--num-devices", "2")
    train_alone(alone, "--resume", "runs/mine", *steps, "--num-devices", "2")
    assert_same_tiny_run(run, alone / "host0" / "runs" / "mine", saved + 3)


def test_one_command_begins_a_run_and_goes_on_with_it(fake: FakeBucket, tmp_path: Path) -> None:
    """As a scheduler starts it again and again, each time on empty machines."""
    command = [*TINY, "--run-name", "mine", *BUCKET, "--resume-if-there", "--total-timesteps"]

    def told(folder: str, updates: int, code: int) -> str:
        (tmp_path / folder).mkdir()
        steps = str(updates * BATCH)
        with training_together(tmp_path / folder, 2, *command, steps) as hosts:
            assert codes(hosts) == [code, code], [host.told() for host in hosts]
        return hosts[0].told()

    assert "after update" not in told("one", 3, 0)
    assert is_there(fake, 3)
    assert "after update 3" in told("other", 6, 0)
    assert is_there(fake, 6)
    before = stored(fake)
    fake.is_down = True  # then nobody knows whether there is a run
    assert "error: " in told("third", 9, 75)
    assert stored(fake) == before
