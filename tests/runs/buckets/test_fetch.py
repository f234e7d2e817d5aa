"""Downloads from a bucket: only what differs, and nothing half or damaged."""

import shutil
from pathlib import Path

import pytest
from bucket_runs import (
    PREFIX,
    RUN,
    add_checkpoint,
    add_params,
    add_rows,
    contents,
    make_run,
    put_run,
    stored,
)
from fake_bucket import LEFT_SOCKETS, FakeBucket, Fault

from hackmatrix.core.errors import UserError
from hackmatrix.runs.bucket import Address, Bucket
from hackmatrix.runs.buckets.cache import cache_folder, fetch, fetch_runs, newest_with_params
from hackmatrix.runs.buckets.reconcile import settle
from hackmatrix.runs.checkpoints import checkpoints_of

pytestmark = [pytest.mark.filterwarnings(LEFT_SOCKETS), pytest.mark.thorough]

RUNS = RUN.parent


def bring(run: Path) -> list[str]:
    """Fetches the run of the bucket; the lines that were said."""
    told: list[str] = []
    settle(Bucket(RUN, patience=2), run, told.append, is_folder_named=False)
    return told


def updates_of(run: Path) -> list[int]:
    return [checkpoint.update for checkpoint in checkpoints_of(run)]


def test_a_folder_that_is_as_new_stays_as_it_is(fake: FakeBucket, tmp_path: Path) -> None:
    run = make_run(tmp_path / "mine", 20)
    put_run(fake, run)
    add_rows(run, 25)
    before = contents(run)
    assert bring(run) == [f"{run} is as new as gs://my-bucket/runs/mine: nothing is fetched"]
    add_checkpoint(run, 30)
    assert "is as new as" in bring(run)[0]
    assert contents(run).items() >= before.items()
    assert not any("/download" in call for call in fake.calls)


def test_an_older_folder_becomes_like_the_bucket(fake: FakeBucket, tmp_path: Path) -> None:
    there = make_run(tmp_path / "there", 20, 30, 40)
    shutil.rmtree(there / "checkpoints" / "20")
    put_run(fake, there)
    fake.objects = {name: o for name, o in fake.objects.items() if "params_20" not in name}
    here = make_run(tmp_path / "here", 20, 30)
    bring(here)
    assert contents(here) == {
        name: content for name, content in contents(there).items() if "params_20" not in name
    }
    assert not any("checkpoints/30/" in call for call in fake.calls)  # it was there already


def test_a_damaged_copy_here_is_replaced(fake: FakeBucket, tmp_path: Path) -> None:
    run = make_run(tmp_path / "mine", 20, 30)
    put_run(fake, run)
    before = contents(run)
    (run / "checkpoints" / "30" / "arrays" / "d").write_bytes(b"Arrays of 30")
    bring(run)
    assert contents(run) == before


def test_the_one_before_a_damaged_checkpoint_stands_in(fake: FakeBucket, tmp_path: Path) -> None:
    put_run(fake, make_run(tmp_path / "there", 20, 30, 40))
    del fake.objects[f"{PREFIX}checkpoints/40/manifest.json"]
    fake.put(f"{PREFIX}checkpoints/30/arrays/d", b"arrays of 31")
    here = tmp_path / "here"
    assert bring(here) == [
        "gs://my-bucket/runs/mine/checkpoints/40 was not uploaded completely: it is left out",
        f"fetching gs://my-bucket/runs/mine to {here}",
        "gs://my-bucket/runs/mine/checkpoints/30 is damaged (the file arrays/d does not match its "
        "checksum): it is left out",
    ]
    assert updates_of(here) == [20]
    assert not list(here.glob("params_[34]0.*"))  # else it would need --rewind to go on
    assert not list((here / "checkpoints").glob(".*"))


def test_what_is_no_run_is_told(fake: FakeBucket, tmp_path: Path) -> None:
    fake.put("runs/mine-too/config.yaml", b"")
    with pytest.raises(UserError, match="gs://my-bucket/runs/mine: there is no run"):
        bring(tmp_path / "here")
    assert not (tmp_path / "here").exists()


def test_an_empty_machine_gets_all_in_spite_of_faults(fake: FakeBucket, tmp_path: Path) -> None:
    there = make_run(tmp_path / "there", 20, 30)
    put_run(fake, there)
    fake.faults = [Fault("503", 1, "GET", "arrays"), Fault("refuse", 1, "GET", "metrics")]
    fake.faults += [Fault("cut", 1, "GET", "config"), Fault("cut", 1, "GET")]
    fake.put(f"{PREFIX}lease.json", b"{}")
    assert bring(tmp_path / "here") == [f"fetching {RUN} to {tmp_path / 'here'}"]
    assert contents(tmp_path / "here") == contents(there)
    assert fake.faults == []


# --- for commands that only read ------------------------------------------------------------------


def test_a_run_is_copied_without_its_checkpoints(fake: FakeBucket, tmp_path: Path) -> None:
    there = make_run(tmp_path / "there", 20, 30)
    put_run(fake, there)
    fake.put(f"{PREFIX}checkpoints/40/facts.json", b"half uploaded")
    copy = fetch(RUN)
    assert copy == cache_folder() / "my-bucket" / "runs" / "mine"
    small = {n: c for n, c in contents(there).items() if not n.startswith("checkpoints")}
    assert contents(copy) == small
    assert contents(fetch(RUN, checkpoints=True)) == contents(there)
    assert fetch(RUN / "checkpoints/30", checkpoints=True) == copy / "checkpoints" / "30"


def test_a_copy_is_fetched_again_only_where_it_differs(fake: FakeBucket, tmp_path: Path) -> None:
    there = make_run(tmp_path / "there", 20)
    put_run(fake, there)
    copy = fetch(RUN)
    del fake.objects[f"{PREFIX}params_20.npz"], fake.objects[f"{PREFIX}params_20.json"]
    fake.put(f"{PREFIX}params_30.npz", b"new")
    fake.put(f"{PREFIX}log.txt", b"another")
    fake.calls.clear()
    assert fetch(RUN) == copy
    assert contents(copy) == {
        n: c for n, c in stored(fake).items() if not n.startswith("checkpoints")
    }
    got = sorted(
        call for call in fake.calls if call.startswith(f"GET {PREFIX}") and call[-1] != "/"
    )
    assert got == [f"GET {PREFIX}log.txt", f"GET {PREFIX}params_30.npz"]


def test_of_rows_only_the_new_ones_are_fetched(fake: FakeBucket, tmp_path: Path) -> None:
    there = make_run(tmp_path / "there", 20)
    put_run(fake, there)
    rows = fetch(RUN) / "metrics.jsonl"
    inode, before = rows.stat().st_ino, rows.read_bytes()
    more = b'{"update": 21}\n'
    fake.put(f"{PREFIX}metrics.jsonl", before + more)
    fetch(RUN)
    assert rows.read_bytes() == before + more
    assert rows.stat().st_ino == inode  # it was continued, not replaced
    fake.put(f"{PREFIX}metrics.jsonl", b'{"update": 1}\n' + more * 9)  # rewound, and then longer
    fetch(RUN)
    assert rows.read_bytes() == b'{"update": 1}\n' + more * 9


def test_a_file_of_params_comes_with_its_facts(fake: FakeBucket, tmp_path: Path) -> None:
    there = make_run(tmp_path / "there", 20)
    add_params(there, "final_params", 20)
    put_run(fake, there)
    path = fetch(RUN / "final_params.npz")
    assert contents(path.parent) == {
        name: (there / name).read_bytes() for name in ("final_params.npz", "final_params.json")
    }
    del fake.objects[f"{PREFIX}final_params.json"]
    fetch(RUN / "final_params.npz")
    assert not path.with_suffix(".json").exists()
    with pytest.raises(UserError, match="there is neither a file nor a folder"):
        fetch(RUN / "other.npz")
    with pytest.raises(UserError, match="gs://another: there is no such bucket"):
        fetch(Address("another", "x"))


def test_what_changes_while_it_is_read_is_read_again(fake: FakeBucket, tmp_path: Path) -> None:
    put_run(fake, make_run(tmp_path / "there", 20))
    read, times = Bucket.read, iter(range(100))

    def changing(self: Bucket, name: str, start: int = 0) -> bytes:
        if name == "log.txt" and next(times) < 2:
            fake.put(f"{PREFIX}log.txt", b"log %d" % len(fake.calls))
        return read(self, name, start)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Bucket, "read", changing)
        copy = fetch(RUN)
    assert (copy / "log.txt").read_bytes() == stored(fake)["log.txt"]


def test_of_a_folder_of_runs_rows_and_settings_are_copied(fake: FakeBucket, tmp_path: Path) -> None:
    for name in ("one", "two"):
        put_run(fake, make_run(tmp_path / name, 20), f"runs/{name}/")
    copy = fetch_runs(RUNS)
    assert contents(copy).keys() == {
        f"{run}/{name}" for run in ("one", "two") for name in ("config.yaml", "metrics.jsonl")
    }
    times = [(copy / run / "metrics.jsonl").stat().st_mtime for run in ("one", "two")]
    assert times == sorted(times)
    assert fetch_runs(RUNS / "one" / "metrics.jsonl") == copy / "one"
    assert (copy / "one" / "log.txt").exists()
    assert newest_with_params(RUNS) == RUNS / "two"
    fake.put("runs/two/params_20.json", b'{"environment": "CartPole-v1"}')
    assert newest_with_params(RUNS) == RUNS / "one"
    with pytest.raises(UserError, match="there is nothing"):
        fetch_runs(RUNS / "three")
    with pytest.raises(UserError, match="no run with params in it"):
        newest_with_params(RUNS / "one")
