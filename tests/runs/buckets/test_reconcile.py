"""A run that was trained in two places: one side goes on from the other, or nothing is dropped."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

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
from hackmatrix.runs.bucket import Bucket, Unreachable
from hackmatrix.runs.buckets import mirror as mirrors
from hackmatrix.runs.buckets.mirror import Mirror
from hackmatrix.runs.buckets.plan import own_objects
from hackmatrix.runs.buckets.reconcile import settle
from hackmatrix.runs.folder import RunFolder

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


class Case(NamedTuple):
    """What both sides did after update 50, what happened then, and which of them goes on."""

    mine: list[int]
    theirs: list[int]
    goes_on: str  # "mine", "theirs" or "neither"
    folder: bool = True  # whether `--resume` names it, not the bucket
    rewind: bool = False
    update: int | None = None
    without: str = "nothing"  # a file that neither has
    change: Callable[[Path, Path], None] = lambda here, there: None  # noqa: ARG005


def two_sides(
    fake: FakeBucket, tmp_path: Path, mine: list[int], theirs: list[int], case: Case | None = None
) -> Path:
    """A run of two processes that both went on from update 50; the second one's is the bucket's."""
    start = go_on(make_run(tmp_path / "start"), "one", 30, 40, 50)
    here, there = tmp_path / "mine", tmp_path / "there" / "mine"
    for run in (here, there):
        shutil.copytree(start, run)
    if theirs:
        go_on(there, "another", *theirs)
    if mine:
        go_on(here, "one again", *mine)
    if case is not None:
        case.change(here, there)
        for run in (here, there):
            (run / case.without).unlink(missing_ok=True)
    put_run(fake, there)
    return here


def no_common_checkpoint(_: Path, there: Path) -> None:
    remove_checkpoints(there, 30, 40, 50)


def killed_before_a_checkpoint(here: Path, _: Path) -> None:
    """After its rewind: it is no process of the checkpoint."""
    go_on(here, "killed before its first checkpoint")


def rows_gone(here: Path, _: Path) -> None:
    (here / "metrics.jsonl").unlink()


def older_rows_gone(here: Path, _: Path) -> None:
    (here / "metrics.jsonl").write_text('{"update": 60}\n')


def params_alone(here: Path, _: Path) -> None:
    """Their checkpoint could not be written."""
    add_params(here, "params_65", 65)


@pytest.mark.parametrize(
    "case",
    [
        Case([], [60], "theirs"),
        Case([], [100, 110, 120], "theirs", folder=False),
        Case([], [100, 110, 120], "theirs", change=no_common_checkpoint),
        Case([60], [], "mine"),
        Case([60], [70], "neither"),
        Case([70], [60], "neither", folder=False),
        Case([60], [70], "neither", without="metrics.jsonl"),  # there are no rows yet
        Case([60], [70], "neither", without="starts.jsonl"),  # an older version recorded none
        Case([60], [70, 80], "mine", rewind=True),
        Case([60], [70, 80], "theirs", rewind=True, folder=False),
        Case([], [60], "mine", rewind=True, update=30),
        Case([], [60], "theirs", change=killed_before_a_checkpoint),
        Case([], [], "theirs", change=rows_gone),
        Case([60], [], "neither", change=older_rows_gone),
        Case([], [60], "neither", change=params_alone),
    ],
)
def test_the_side_goes_on_that_drops_nothing(fake: FakeBucket, tmp_path: Path, case: Case) -> None:
    here = two_sides(fake, tmp_path, case.mine, case.theirs, case)
    mine, theirs = contents(here), stored(fake)
    how = {"folder": case.folder, "rewind": case.rewind, "update": case.update}
    if case.goes_on == "neither":
        with pytest.raises(UserError, match="are not the same run any more") as refused:
            bring(here, **how)
        line = str(refused.value)
        for words in (f"--resume {here} --rewind", f"--resume {RUN} --rewind", "--run-name"):
            assert words in line
        assert "\n" not in line
        assert (contents(here), stored(fake)) == (mine, theirs)
        return
    told = bring(here, **how)
    if not case.rewind:
        says = {
            "mine": f"{here} is as new as {RUN}: nothing is fetched",
            "theirs": f"fetching {RUN} to {here}",
        }
        assert told == [says[case.goes_on]]
    assert contents(here) == (mine if case.goes_on == "mine" else theirs)
    if case.update is None:
        follow(here, rewinds=case.rewind)
        assert stored(fake) == contents(here)


def test_a_checkpoint_that_is_not_there_changes_nothing(fake: FakeBucket, tmp_path: Path) -> None:
    here = two_sides(fake, tmp_path, [60], [70])
    before = contents(here)
    with pytest.raises(UserError, match="has no checkpoint 60; there are 30, 40, 50, 70"):
        bring(here, folder=False, rewind=True, update=60)
    fake.put(f"{PREFIX}checkpoints/70/arrays/d", b"Arrays of another, 70")
    with pytest.raises(UserError, match="has no whole checkpoint 70"):
        bring(here, folder=False, rewind=True)
    assert (here / "checkpoints" / "60").exists()
    assert before.keys() <= contents(here).keys()


def test_a_folder_that_is_being_trained_is_left_alone(fake: FakeBucket, tmp_path: Path) -> None:
    here = two_sides(fake, tmp_path, [], [60])
    before = contents(here)
    trainer = RunFolder(here)
    with pytest.raises(UserError, match="is being trained by another process"):
        bring(here, folder=False)
    assert contents(here) == before
    trainer.close()


@pytest.mark.parametrize(("is_stale", "reads"), [(True, range(14)), (False, range(0, 25, 4))])
def test_after_any_break_the_next_try_brings_all(
    fake: FakeBucket, tmp_path: Path, is_stale: bool, reads: range
) -> None:
    """The folder has the first checkpoints, or is not there yet."""
    here = two_sides(fake, tmp_path, [], [60, 70])
    stale = here.rename(tmp_path / "stale")
    read = Bucket.read
    for most in reads:
        left = [most]

        def breaking(self: Bucket, name: str, start: int = 0, left: list[int] = left) -> bytes:
            if left[0] == 0:
                raise Unreachable("the network is gone")
            left[0] -= 1
            return read(self, name, start)

        shutil.rmtree(here, ignore_errors=True)
        if is_stale:
            shutil.copytree(stale, here)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Bucket, "read", breaking)
            with pytest.raises(Unreachable):
                bring(here, folder=is_stale)
        bring(here, folder=is_stale)
        assert contents(here) == stored(fake), most


def test_only_what_was_fetched_or_is_half_may_be_deleted(fake: FakeBucket, tmp_path: Path) -> None:
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
