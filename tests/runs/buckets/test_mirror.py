"""A bucket follows a run's folder, whatever fails on the way."""

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bucket_runs import (
    PREFIX,
    RUN,
    Held,
    add_checkpoint,
    add_params,
    add_rows,
    contents,
    make_run,
    put_run,
    remove_checkpoints,
    stored,
    until,
)
from fake_bucket import LEFT_SOCKETS, FakeBucket, Fault

from hackmatrix.core.files import check_manifest
from hackmatrix.runs.bucket import Bucket, Unreachable
from hackmatrix.runs.buckets import mirror as mirrors
from hackmatrix.runs.buckets.lease import LeaseLost
from hackmatrix.runs.buckets.mirror import Mirror
from hackmatrix.runs.buckets.plan import home_of, whole_checkpoints
from hackmatrix.runs.folder import RunFolder

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings(LEFT_SOCKETS)]


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirrors, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(mirrors, "_LONGEST_PAUSE", 0.2)
    monkeypatch.setattr(mirrors, "END_SECONDS", 20.0)
    monkeypatch.setattr(mirrors, "_QUIET_SECONDS", 20.0)  # a busy machine takes its time


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with a checkpoint."""
    return make_run(tmp_path / "mine", 20)


@contextmanager
def mirrored(run: Path, lease: Held, told: list[str], patience: float = 4.0) -> Iterator[Mirror]:
    bucket = Bucket(RUN, patience)
    with Mirror(run, bucket, lease, told.append, told.append) as mirror:  # type: ignore[arg-type]
        yield mirror
    mirror._thread.join()


def follow(run: Path, lease: Held | None = None) -> list[str]:
    """Mirrors a run until all is done; the lines that were said."""
    told: list[str] = []
    with mirrored(run, lease or Held(), told) as mirror:
        pass
    assert mirror.is_complete
    return told


def test_all_of_a_run_is_in_the_bucket_and_is_sent_once(fake: FakeBucket, run: Path) -> None:
    assert follow(run) == []
    assert stored(fake) == contents(run)
    assert home_of(run) == RUN
    sent = [call for call in fake.calls if call.startswith("POST")]
    assert len(sent) == len(set(sent)) == len(contents(run))
    fake.calls.clear()
    add_rows(run, 30)
    add_checkpoint(run, 30)
    follow(run)  # in another process
    new = f"POST {PREFIX}checkpoints/30/"
    rows = f"POST {PREFIX}metrics.jsonl"
    sent = [call for call in fake.calls if call.startswith("POST")]
    assert sent == [rows, new + "arrays/d", new + "facts.json", new + "manifest.json"]


def test_a_run_that_never_started_leaves_nothing(fake: FakeBucket, tmp_path: Path) -> None:
    assert follow(tmp_path / "mine") == []
    (tmp_path / "empty").mkdir()
    assert follow(tmp_path / "empty") == []
    assert fake.calls == []
    assert list(tmp_path.rglob("*")) == [tmp_path / "empty"]


@pytest.mark.usefixtures("fake")
def test_a_folder_names_its_bucket_before_the_run_starts(tmp_path: Path) -> None:
    with mirrored(tmp_path / "mine", Held(), []):
        assert home_of(tmp_path / "mine") == RUN
        with contextlib.closing(RunFolder.create(tmp_path, "mine", None)) as run:
            run.write_config("")
    assert home_of(tmp_path / "mine") == RUN


def test_rows_go_by_the_clock_or_with_a_checkpoint(fake: FakeBucket, run: Path) -> None:
    with mirrored(run, Held(), []) as mirror:
        until(lambda: f"{PREFIX}log.txt" in fake.objects)
        add_rows(run, 21)
        (run / "starts.jsonl").write_text("{}\n")  # it was never sent: no reason to wait
        until(lambda: f"{PREFIX}starts.jsonl" in fake.objects)
        assert b"21" not in fake.objects[f"{PREFIX}metrics.jsonl"].content
        mirror._written["metrics.jsonl"] -= mirrors.ROWS_SECONDS
        until(lambda: b"21" in fake.objects[f"{PREFIX}metrics.jsonl"].content)


def test_only_own_files_are_removed_and_newer_ones_come_first(
    fake: FakeBucket, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "mine", 20, 30)
    follow(run)
    of_others = {"tpu/finished-1", "notes.md", "best_params.npz", "profiles/x"}
    of_others |= {"checkpoints/99/facts.json", "checkpoints/20/facts.json"}
    for name in of_others:
        fake.put(PREFIX + name, b"of another")
    fake.calls.clear()
    remove_checkpoints(run, 20)
    add_rows(run, 40)
    add_checkpoint(run, 40)
    follow(run)
    assert stored(fake) == contents(run) | dict.fromkeys(of_others, b"of another")
    whole = fake.calls.index(f"POST {PREFIX}checkpoints/40/manifest.json")
    removed = [place for place, call in enumerate(fake.calls) if call.startswith("DELETE")]
    assert min(removed) > whole
    assert fake.calls[removed[0]] == f"DELETE {PREFIX}checkpoints/20/manifest.json"


def test_what_is_missing_at_one_look_alone_stays(fake: FakeBucket, tmp_path: Path) -> None:
    run = make_run(tmp_path / "mine", 20, 30)
    put_run(fake, run)
    mirror = Mirror(run, Bucket(RUN, 2), Held(), print, print)  # type: ignore[arg-type]
    away = tmp_path / "away"
    for _ in range(2):  # as while somebody removes or moves the folder
        (run / "checkpoints" / "20").rename(away)
        mirror._look(ending=False)
        away.rename(run / "checkpoints" / "20")
        mirror._look(ending=False)
    assert stored(fake) == contents(run)
    assert not [call for call in fake.calls if call.startswith("DELETE")]


def test_a_deleted_folder_deletes_nothing_there(fake: FakeBucket, tmp_path: Path) -> None:
    run = make_run(tmp_path / "mine", 20, 30)
    follow(run)
    before = stored(fake)
    shutil.rmtree(run / "checkpoints")
    follow(run)
    assert stored(fake) == before
    shutil.rmtree(run)
    follow(run)
    assert stored(fake) == before


@pytest.mark.parametrize("fate", ["deleted", "half deleted", "replaced"])
def test_a_folder_that_goes_while_it_is_mirrored_leaves_the_bucket_as_it_was(
    fake: FakeBucket, tmp_path: Path, fate: str
) -> None:
    run = make_run(tmp_path / "mine", 20, 30)
    told: list[str] = []
    with mirrored(run, Held(), told) as mirror:
        until(lambda: f"{PREFIX}log.txt" in fake.objects)
        before = stored(fake)
        if fate == "half deleted":
            (run / "config.yaml").unlink()
        else:
            run.rename(tmp_path / "aside")
        if fate == "deleted":
            shutil.rmtree(tmp_path / "aside")
        if fate == "replaced":
            make_run(run, 10, 20, 30, 40)
        until(lambda: mirror.is_over)
    assert stored(fake) == before
    assert not mirror.is_complete
    assert told == [
        f"{run} was deleted, moved or replaced: nothing more is uploaded, what {RUN} holds stays"
    ]
    assert (run / "bucket.json").exists() == (fate == "half deleted")


def test_no_checkpoint_is_sent_without_its_rows(fake: FakeBucket, run: Path) -> None:
    told: list[str] = []
    with mirrored(run, Held(), told) as mirror:
        until(lambda: f"{PREFIX}log.txt" in fake.objects)
        before = stored(fake)
        (run / "metrics.jsonl").unlink()
        add_checkpoint(run, 30)
        until(lambda: mirror.is_over)
    assert stored(fake) == before
    assert told == [
        f"{run}/metrics.jsonl lacks rows before checkpoint 30: nothing more is uploaded, what "
        f"{RUN} holds stays"
    ]


def test_rows_that_rewind_gave_up_hold_no_checkpoint_back(fake: FakeBucket, run: Path) -> None:
    (run / "metrics.jsonl").write_bytes(b"")
    bucket, lease = Bucket(RUN, 4), Held()
    with Mirror(run, bucket, lease, print, print, rewinds=True) as mirror:  # type: ignore[arg-type]
        pass
    assert mirror.is_complete
    assert stored(fake) == contents(run)


def test_rows_that_come_while_the_folder_is_listed_go_with_the_next_look(
    fake: FakeBucket, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = Mirror(run, Bucket(RUN, 2), Held(), print, print)  # type: ignore[arg-type]
    assert mirror._look(ending=False)
    stamps = mirrors._stamps

    def late(
        run: Path,
    ) -> object:  # as if the rows were listed before the new ones, and all else after
        before = stamps(run)
        add_rows(run, 30)
        add_checkpoint(run, 30)
        return stamps(run) | {"metrics.jsonl": before["metrics.jsonl"]}

    with monkeypatch.context() as patch:
        patch.setattr(mirrors, "_stamps", late)
        assert not mirror._look(ending=False)
    assert not any("checkpoints/30" in name for name in fake.objects)
    assert mirror._look(ending=False)
    assert stored(fake) == contents(run)


@pytest.mark.parametrize("rewinds", [False, True])
def test_rows_that_the_bucket_holds_are_not_replaced_by_fewer_without_rewind(
    fake: FakeBucket, tmp_path: Path, rewinds: bool
) -> None:
    run = make_run(tmp_path / "mine", 10, 20, 30)
    add_rows(run, 31, 32)
    follow(run)
    told: list[str] = []
    bucket, lease = Bucket(RUN, 4), Held()
    with Mirror(run, bucket, lease, told.append, told.append, rewinds=rewinds) as mirror:  # type: ignore[arg-type]
        until(lambda: mirror._rows is not None)
        rows = (run / "metrics.jsonl").read_bytes().splitlines(keepends=True)
        (run / "metrics.jsonl").write_bytes(b"".join(rows[:3]))  # as a run that makes 31 again
        mirror._written.clear()
        until(lambda: fake.objects[f"{PREFIX}metrics.jsonl"].content == b"".join(rows[:3]))
        (run / "metrics.jsonl").write_bytes(rows[2])
    mirror._thread.join()
    assert mirror.is_complete == rewinds
    assert stored(fake)["metrics.jsonl"] == (rows[2] if rewinds else b"".join(rows[:3]))
    lacks = f"{run}/metrics.jsonl lacks rows that were in it"
    assert [line.partition(":")[0] for line in told] == ([] if rewinds else [lacks])


def test_damaged_manifests_end_no_upload(fake: FakeBucket, tmp_path: Path) -> None:
    run = make_run(tmp_path / "mine", 20, 30, 40, 50)
    for update, content in ((20, b""), (30, b"\xff"), (40, b"[1]"), (50, b"{}")):
        (run / "checkpoints" / str(update) / "manifest.json").write_bytes(content)
    follow(run)
    assert stored(fake) == contents(run)


def test_a_manifest_is_not_sent_before_all_that_it_lists(fake: FakeBucket, run: Path) -> None:
    mirror = Mirror(run, Bucket(RUN, 2), Held(), print, print)  # type: ignore[arg-type]
    (run / "checkpoints" / "20" / "arrays" / "d").unlink()  # as by somebody who removes the run
    assert not mirror._look(ending=False)
    assert f"{PREFIX}checkpoints/20/manifest.json" not in fake.objects


def test_what_another_writes_meanwhile_is_not_deleted(fake: FakeBucket, tmp_path: Path) -> None:
    run = make_run(tmp_path / "mine", 20, 30)
    follow(run)
    remove_checkpoints(run, 20)
    delete = Bucket.delete

    def late(self: Bucket, name: str, generation: int | None = None) -> None:
        if name == "params_20.npz":
            fake.put(f"{PREFIX}{name}", b"of another")
        delete(self, name, generation)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Bucket, "delete", late)
        follow(run)
    assert stored(fake) == contents(run) | {"params_20.npz": b"of another"}


def test_a_checkpoint_removed_while_it_is_sent_is_left_out(
    fake: FakeBucket, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "mine", 20, 30)
    write = Bucket.write

    def slow(self: Bucket, name: str, content: bytes, generation: int | None = None) -> object:
        if name == "checkpoints/20/arrays/d" and (run / "checkpoints" / "20").exists():
            shutil.rmtree(run / "checkpoints" / "20")
        return write(self, name, content, generation)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Bucket, "write", slow)
        follow(run)
    assert stored(fake) == contents(run)


@pytest.mark.parametrize("kind", ["503", "lose", "damage"])
def test_faults_delay_uploads_and_nothing_else(fake: FakeBucket, run: Path, kind: str) -> None:
    fake.faults = [
        Fault(kind, 2, "POST", "arrays"),
        Fault(kind, 1, "POST", "manifest"),
        Fault(kind, 1, "GET"),
        Fault(kind, 1, "POST", "metrics"),
    ]
    told = follow(run)
    assert stored(fake) == contents(run)
    assert fake.faults == []
    assert len([line for line in told if "is tried again" in line]) <= 2, told


def test_a_bucket_that_is_down_and_up_is_told_once(fake: FakeBucket, run: Path) -> None:
    fake.is_down = True
    told: list[str] = []
    with mirrored(run, Held(), told, patience=0.5):
        until(lambda: told)
        time.sleep(1.0)
        fake.is_down = False
        until(lambda: len(told) > 1)
    assert "no answer" in told[0]
    assert told[0].endswith("training goes on, and the upload is tried again")
    assert told[1:] == ["uploads to gs://my-bucket/runs/mine go on"]
    assert stored(fake) == contents(run)


def test_at_the_end_the_wait_has_a_limit_and_what_is_left_is_named(
    fake: FakeBucket, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirrors, "END_SECONDS", 0.3)
    monkeypatch.setattr(mirrors, "_QUIET_SECONDS", 0.2)
    told: list[str] = []
    lease = Held()
    fake.faults = [Fault("slow", 1, "POST", "arrays", seconds=2.5)]
    bucket = Bucket(RUN, patience=10)
    with Mirror(run, bucket, lease, told.append, told.append) as mirror:  # type: ignore[arg-type]
        until(lambda: not fake.faults)
    assert fake.calls[-1] == f"POST {PREFIX}metrics.jsonl"  # it did not wait for the next one
    assert not mirror.is_complete
    assert told[0] == "uploading what is left to gs://my-bucket/runs/mine, for at most 0 s"
    assert told[1] == (
        "checkpoints/20/arrays/d, checkpoints/20/facts.json, checkpoints/20/manifest.json and 3 "
        f"more not in gs://my-bucket/runs/mine yet: `hackmatrix train --resume {run}` uploads it"
    )
    lease.error = LeaseLost("given up, as the command is over")
    mirror._thread.join()
    assert not mirror.is_over  # nobody has taken the run


def test_a_slow_bucket_never_blocks_the_run(fake: FakeBucket, run: Path) -> None:
    fake.delay = 0.2
    with mirrored(run, Held(), []):
        for update in range(21, 25):
            add_rows(run, update)
            add_checkpoint(run, update)
        assert f"{PREFIX}checkpoints/20/manifest.json" not in fake.objects  # it waits for nothing
        fake.delay = 0
    assert stored(fake) == contents(run)


def test_a_lost_lease_ends_the_uploads_with_a_line(fake: FakeBucket, run: Path) -> None:
    told: list[str] = []
    lease = Held()
    with mirrored(run, lease, told) as mirror:
        until(lambda: f"{PREFIX}log.txt" in fake.objects)
        lease.error = LeaseLost("far has taken the run over")
        before = stored(fake)
        add_checkpoint(run, 30)
        until(lambda: mirror.is_over)
    assert stored(fake) == before
    assert not mirror.is_complete
    assert told == [
        f"far has taken the run over: nothing more is uploaded; this run goes on in {run}"
    ]


def test_an_expired_lease_stops_uploads_for_a_while(fake: FakeBucket, run: Path) -> None:
    lease = Held()
    lease.error = Unreachable("the lease could not be renewed")
    told: list[str] = []
    with mirrored(run, lease, told):
        until(lambda: told)
        assert fake.calls == []
        lease.error = None
    assert stored(fake) == contents(run)


def test_what_another_wrote_is_replaced_with_the_lease_alone(fake: FakeBucket, run: Path) -> None:
    lease = Held()
    told: list[str] = []
    with mirrored(run, lease, told) as mirror:
        until(lambda: f"{PREFIX}log.txt" in fake.objects)
        fake.put(f"{PREFIX}params_30.npz", b"of another")
        add_params(run, "params_30", 30)
        until(lambda: f"{PREFIX}params_30.json" in fake.objects)
        assert lease.renewals == 1
        fake.put(f"{PREFIX}params_40.npz", b"of another")

        def lost() -> None:
            raise LeaseLost("far has it")

        lease.renew = lost  # type: ignore[method-assign]
        add_params(run, "params_40", 40)
        until(lambda: mirror.is_over)
    assert stored(fake)["params_30.npz"] == b"params of 30"
    assert stored(fake)["params_40.npz"] == b"of another"


def test_a_second_ctrl_c_waits_for_nothing(fake: FakeBucket, run: Path) -> None:
    fake.faults = [Fault("slow", 1, "POST", seconds=1.0)]
    lease = Held()
    mirror = Mirror(run, Bucket(RUN, 5), lease, print, print)  # type: ignore[arg-type]
    mirror.__enter__()
    until(lambda: not fake.faults)
    mirror.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert stored(fake) == {}
    lease.error = LeaseLost("the test is over")
    mirror._thread.join()


def test_the_bucket_never_holds_a_half_checkpoint(
    fake: FakeBucket, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is there with a manifest matches it, and has its rows, after each single call."""
    problems: list[str] = []

    def look() -> None:
        now, copy = stored(fake), tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        for name, content in now.items():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes(content)
        for update in whole_checkpoints(now):
            try:
                check_manifest(copy / "checkpoints" / str(update))
                assert b'"update": %d,' % update in now["metrics.jsonl"]
            except Exception as error:
                problems.append(repr(error))

    for name in ("write", "delete"):
        call = getattr(Bucket, name)

        def watched(*arguments: Any, call: Callable[..., Any] = call) -> object:
            try:
                return call(*arguments)
            finally:
                look()

        monkeypatch.setattr(Bucket, name, watched)
    with mirrored(run, Held(), []):
        for update in range(21, 27):
            add_rows(run, update)
            add_checkpoint(run, update)
            if update > 23:
                shutil.rmtree(run / "checkpoints" / str(update - 3))
            if update == 25:  # made again with other content, as after a rewind
                shutil.rmtree(run / "checkpoints" / "25")
                add_checkpoint(run, 25, b"other arrays")
            time.sleep(0.2)
    assert problems == []
    assert stored(fake) == contents(run)
