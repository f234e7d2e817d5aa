"""A run that was trained in two places: one side goes on from the other, or nothing is dropped."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from bucket_runs import (
    PREFIX,
    RUN,
    Held,
    add_params,
    contents,
    go_on,
    make_run,
    put_run,
    remove_checkpoints,
    stored,
)
from fake_bucket import LEFT_SOCKETS, FakeBucket

from hackmatrix.core.errors import UserError
from hackmatrix.runs.buckets import mirror as mirrors
from hackmatrix.runs.buckets.mirror import Mirror
from hackmatrix.runs.buckets.plan import own_objects
from hackmatrix.runs.buckets.reconcile import settle
from hackmatrix.runs.folder import RunFolder
from hackmatrix.runs.storage.bucket import Bucket, Unreachable

pytestmark = [pytest.mark.filterwarnings(LEFT_SOCKETS), pytest.mark.thorough]


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirrors, "LOOK_SECONDS", 0.05)


def bring(run: Path, *, folder: bool, rewind: bool = False, update: int | None = None) -> list[str]:
    """Settles which side goes on; the lines that were said."""
    told: list[str] = []
    bucket = Bucket(RUN, patience=2)
    settle(bucket, run, told.append, is_folder_named=folder, rewind=rewind, update=update)
    return told


def follow(run: Path, *, rewinds: bool = False) -> None:
    """Mirrors the run until all is done."""
    lease = Held()
    mirror = Mirror(run, Bucket(RUN, 4), lease, print, print, rewinds=rewinds)  # type: ignore[arg-type]
    with mirror:
        pass
    mirror._thread.join()
    assert mirror.is_complete


def two_sides(fake: FakeBucket, tmp_path: Path, mine: list[int], theirs: list[int]) -> Path:
    """A run of two processes that both went on from update 50; the second one's is the bucket's."""
    start = go_on(make_run(tmp_path / "start"), "one", 30, 40, 50)
    here, there = tmp_path / "mine", tmp_path / "there" / "mine"
    for run in (here, there):
        shutil.copytree(start, run)
    put_run(fake, go_on(there, "another", *theirs) if theirs else there)
    return go_on(here, "one again", *mine) if mine else here


@pytest.mark.parametrize("folder", [True, False])
@pytest.mark.parametrize("theirs", [[60], [100, 110, 120]])
def test_a_stale_folder_gets_what_the_bucket_has_on_top_of_it(
    fake: FakeBucket, tmp_path: Path, folder: bool, theirs: list[int]
) -> None:
    here = two_sides(fake, tmp_path, [], theirs)
    before = stored(fake)
    assert bring(here, folder=folder) == [f"fetching {RUN} to {here}"]
    assert contents(here) == before
    follow(here)
    assert stored(fake) == before


def test_that_holds_when_the_two_have_no_checkpoint_in_common(
    fake: FakeBucket, tmp_path: Path
) -> None:
    here = two_sides(fake, tmp_path, [], [100, 110, 120])
    remove_checkpoints(tmp_path / "there" / "mine", 30, 40, 50)
    fake.objects.clear()
    put_run(fake, tmp_path / "there" / "mine")
    bring(here, folder=True)
    assert contents(here) == stored(fake)


@pytest.mark.parametrize("folder", [True, False])
def test_a_folder_that_is_ahead_goes_on(fake: FakeBucket, tmp_path: Path, folder: bool) -> None:
    here = two_sides(fake, tmp_path, [60], [])
    before = contents(here)
    told = bring(here, folder=folder)
    assert told == [f"{here} is as new as {RUN}: nothing is fetched"]
    assert contents(here) == before
    follow(here)
    assert stored(fake) == before


@pytest.mark.parametrize("folder", [True, False])
@pytest.mark.parametrize(("mine", "theirs"), [([60], [70]), ([70], [60])])
def test_when_both_have_gone_on_neither_is_dropped(
    fake: FakeBucket, tmp_path: Path, folder: bool, mine: list[int], theirs: list[int]
) -> None:
    here = two_sides(fake, tmp_path, mine, theirs)
    before = contents(here), stored(fake)
    with pytest.raises(UserError) as refused:
        bring(here, folder=folder)
    line = str(refused.value)
    assert line.startswith(f"{here} (update {mine[0]}) and {RUN} (update {theirs[0]}) are not the")
    assert f"--resume {here} --rewind" in line
    assert f"--resume {RUN} --rewind" in line
    assert "--run-name" in line
    assert "\n" not in line
    assert (contents(here), stored(fake)) == before


def without_rows(run: Path) -> None:
    (run / "metrics.jsonl").unlink()


def without_starts(run: Path) -> None:
    (run / "starts.jsonl").unlink()


@pytest.mark.parametrize("without", [without_rows, without_starts])
def test_rows_or_starts_alone_tell_it(
    fake: FakeBucket, tmp_path: Path, without: Callable[[Path], None]
) -> None:
    """A run has no rows yet, or was begun by a version that recorded no starts."""
    here = two_sides(fake, tmp_path, [60], [70])
    there = tmp_path / "there" / "mine"
    for run in (here, there):
        without(run)
    fake.objects.clear()
    put_run(fake, there)
    with pytest.raises(UserError, match="are not the same run any more"):
        bring(here, folder=True)


@pytest.mark.parametrize("folder", [True, False])
def test_with_rewind_the_side_that_is_named_goes_on(
    fake: FakeBucket, tmp_path: Path, folder: bool
) -> None:
    here = two_sides(fake, tmp_path, [60], [70, 80])
    mine, theirs = contents(here), stored(fake)
    bring(here, folder=folder, rewind=True)
    assert contents(here) == (mine if folder else theirs)
    follow(here, rewinds=True)
    assert stored(fake) == contents(here)


def test_a_stale_folder_that_rewinds_is_not_brought_forward(
    fake: FakeBucket, tmp_path: Path
) -> None:
    here = two_sides(fake, tmp_path, [], [60])
    before = contents(here)
    bring(here, folder=True, rewind=True, update=30)
    assert contents(here) == before


def test_a_checkpoint_that_is_not_in_the_bucket_changes_nothing(
    fake: FakeBucket, tmp_path: Path
) -> None:
    here = two_sides(fake, tmp_path, [60], [70])
    before = contents(here)
    with pytest.raises(UserError, match="has no checkpoint 60; there are 30, 40, 50, 70"):
        bring(here, folder=False, rewind=True, update=60)
    fake.put(f"{PREFIX}checkpoints/70/arrays/d", b"Arrays of another, 70")
    with pytest.raises(UserError, match="has no whole checkpoint 70"):
        bring(here, folder=False, rewind=True)
    assert (here / "checkpoints" / "60").exists()
    assert before.keys() <= contents(here).keys()


def test_a_process_that_rewound_and_was_killed_is_no_process_of_the_checkpoint(
    fake: FakeBucket, tmp_path: Path
) -> None:
    here = two_sides(fake, tmp_path, [], [60])
    go_on(here, "killed before its first checkpoint")
    bring(here, folder=True)
    assert contents(here) == stored(fake)


def test_a_folder_whose_rows_are_gone_gets_them_from_the_bucket(
    fake: FakeBucket, tmp_path: Path
) -> None:
    here = two_sides(fake, tmp_path, [], [])
    (here / "metrics.jsonl").unlink()
    bring(here, folder=True)
    assert contents(here) == stored(fake)


def test_a_folder_whose_rows_are_gone_does_not_replace_those_of_the_bucket(
    fake: FakeBucket, tmp_path: Path
) -> None:
    here = two_sides(fake, tmp_path, [60], [])
    (here / "metrics.jsonl").write_text('{"update": 60}\n')
    with pytest.raises(UserError, match="are not the same run any more"):
        bring(here, folder=True)
    assert (here / "checkpoints" / "60").exists()


def test_params_that_are_newer_than_the_bucket_are_not_dropped(
    fake: FakeBucket, tmp_path: Path
) -> None:
    here = two_sides(fake, tmp_path, [], [60])
    add_params(here, "params_65", 65)  # its checkpoint could not be written
    with pytest.raises(UserError, match="are not the same run any more"):
        bring(here, folder=True)
    assert (here / "params_65.npz").exists()


def test_a_folder_that_is_being_trained_is_left_alone(fake: FakeBucket, tmp_path: Path) -> None:
    here = two_sides(fake, tmp_path, [], [60])
    before = contents(here)
    trainer = RunFolder(here)
    with pytest.raises(UserError, match="is being trained by another process"):
        bring(here, folder=False)
    assert contents(here) == before
    trainer.close()


def test_after_any_break_the_next_try_brings_all(fake: FakeBucket, tmp_path: Path) -> None:
    here = two_sides(fake, tmp_path, [], [60, 70])
    stale = tmp_path / "stale"
    here.rename(stale)
    read = Bucket.read
    for most in range(14):
        left = [most]

        def breaking(self: Bucket, name: str, start: int = 0, left: list[int] = left) -> bytes:
            if left[0] == 0:
                raise Unreachable("the network is gone")
            left[0] -= 1
            return read(self, name, start)

        shutil.rmtree(here, ignore_errors=True)
        shutil.copytree(stale, here)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Bucket, "read", breaking)
            with pytest.raises(Unreachable):
                bring(here, folder=True)
        bring(here, folder=True)
        assert contents(here) == stored(fake), most


def test_what_was_fetched_or_is_half_may_be_deleted_and_nothing_else(
    fake: FakeBucket, tmp_path: Path
) -> None:
    here = two_sides(fake, tmp_path, [], [60])
    fake.put(f"{PREFIX}checkpoints/99/facts.json", b"half")
    fake.put(f"{PREFIX}params_99.npz", b"of another")
    bring(here, folder=True)
    own = own_objects(here, RUN)
    assert (
        own["checkpoints/60/manifest.json"]
        == fake.objects[f"{PREFIX}checkpoints/60/manifest.json"].generation
    )
    assert "params_99.npz" not in own
    remove_checkpoints(here, 30, 40)
    fake.put(f"{PREFIX}checkpoints/40/facts.json", b"of another")
    follow(here)
    left = stored(fake).keys() - contents(here).keys()
    assert left == {"params_99.npz", "checkpoints/40/facts.json"}
