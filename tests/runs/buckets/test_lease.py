"""One trainer at a time: who gets the lease, who is refused, and how it is lost."""

import json
import os
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
from bucket_runs import PREFIX, RUN, until
from fake_bucket import LEFT_SOCKETS, FakeBucket, Fault

from hackmatrix.core.errors import UserError
from hackmatrix.runs.bucket import Bucket, Forbidden, Unreachable
from hackmatrix.runs.buckets import lease
from hackmatrix.runs.buckets.lease import LeaseLost, take_lease

pytestmark = pytest.mark.filterwarnings(LEFT_SOCKETS)

HELD = PREFIX + lease.NAME


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leases of 1.5 seconds; those of this test are given back at its end."""
    for name, seconds in {
        "SECONDS": 1.5,
        "RENEW_SECONDS": 0.2,
        "_LOOK_SECONDS": 0.05,
        "_PATIENCE": 2.0,
        "_PATIENCE_AT_END": 2.0,
    }.items():
        monkeypatch.setattr(lease, name, seconds)
    taken = []
    init = lease.Lease.__init__

    def remembered(self: lease.Lease, *arguments: object) -> None:
        init(self, *arguments)  # type: ignore[arg-type]
        taken.append(self)

    monkeypatch.setattr(lease.Lease, "__init__", remembered)
    yield
    for each in taken:
        each.release()
        each._thread.join()


def bucket() -> Bucket:
    return Bucket(RUN, patience=4)


def holder(fake: FakeBucket) -> dict[str, object]:
    found: dict[str, object] = json.loads(fake.objects[HELD].content)
    return found


def left_by(fake: FakeBucket, **facts: object) -> None:
    """A lease that another process has left."""
    told = {"host": "far", "pid": 77, "machine": "m", "token": "theirs"} | facts
    fake.put(HELD, json.dumps(told).encode())


def taken() -> tuple[lease.Lease, list[str]]:
    """The lease, and what was said before."""
    said: list[str] = []
    return take_lease(bucket(), said.append), said


def test_a_lease_names_its_holder_is_renewed_and_given_back(fake: FakeBucket) -> None:
    mine = take_lease(bucket(), print)
    assert holder(fake)["pid"] == os.getpid()
    assert holder(fake).keys() == {"host", "pid", "machine", "token", "time"}
    first = fake.objects[HELD].generation
    until(lambda: fake.objects[HELD].generation > first)
    mine.check()
    mine.release()
    assert fake.names() == []
    with pytest.raises(LeaseLost, match="was released"):
        mine.check()


def test_a_second_trainer_is_refused_as_the_first_renews(fake: FakeBucket) -> None:
    mine = take_lease(bucket(), print)
    said: list[str] = []
    with pytest.raises(UserError, match=r"gs://my-bucket/runs/mine is being trained by .+ \(proc"):
        take_lease(bucket(), said.append)
    assert f"(process {os.getpid()}) until " in said[0]
    assert len(said) == 1
    mine.check()
    assert fake.names() == [HELD]


@pytest.mark.timeout(40)  # leases last 60 s outside this file
@pytest.mark.parametrize("content", [None, b"[]", b"\xff"])
def test_a_lease_that_expires_is_taken_over(fake: FakeBucket, content: bytes | None) -> None:
    if content is None:
        left_by(fake)
    else:  # it says nothing
        fake.put(HELD, content)
    began = time.monotonic()
    mine, said = taken()
    mine.check()
    assert time.monotonic() - began > 0.5
    (line,) = said
    assert content is not None or "is leased to far (process 77) until" in line
    assert holder(fake)["pid"] == os.getpid()


@pytest.mark.parametrize("hours", [-30, 30])
def test_ages_are_told_by_the_clock_of_the_server(fake: FakeBucket, hours: int) -> None:
    fake.clock = timedelta(hours=hours)
    left_by(fake)
    fake.clock += timedelta(seconds=1.6)
    assert taken()[1] == []


def test_a_lease_of_a_process_that_is_gone_is_taken_at_once(fake: FakeBucket) -> None:
    left_by(fake, machine=lease._machine(), pid=2**22 + 1)
    assert taken()[1] == []


def test_of_two_that_come_at_once_one_gets_it(fake: FakeBucket) -> None:
    real, other = Bucket.write, bucket()

    def late(self: Bucket, name: str, content: bytes, generation: int | None = None) -> object:
        if name == lease.NAME and self is not other and HELD not in fake.objects:
            take_lease(other, print)
        return real(self, name, content, generation)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Bucket, "write", late)
        with pytest.raises(UserError, match="is being trained by"):
            take_lease(bucket(), print)


def test_a_bucket_that_can_not_be_written_is_told_before_training(fake: FakeBucket) -> None:
    fake.faults = [Fault("403", method="POST")]
    with pytest.raises(Forbidden, match="permission denied"):
        take_lease(bucket(), print)


def test_a_lease_outlives_a_lost_answer_and_a_deletion(fake: FakeBucket) -> None:
    fake.faults = [Fault("lose", method="POST", name="lease")]
    mine = take_lease(bucket(), print)
    fake.faults = [Fault("lose", method="POST", name="lease")]
    mine.renew()
    del fake.objects[HELD]
    mine.renew()
    mine.check()
    assert holder(fake)["token"] == mine._token


def test_a_lease_is_lost_when_another_takes_it_over(fake: FakeBucket) -> None:
    mine = take_lease(bucket(), print)
    left_by(fake)
    with pytest.raises(LeaseLost, match=r"far \(process 77\) has taken the run over"):
        mine.renew()
    with pytest.raises(LeaseLost):
        mine.check()
    mine.release()
    assert holder(fake)["token"] == "theirs"


def test_without_the_network_the_lease_rests_and_then_goes_on(fake: FakeBucket) -> None:
    mine = take_lease(bucket(), print)
    fake.is_down = True

    def rests() -> bool:
        try:
            mine.check()
        except Unreachable as error:
            return "could not be renewed" in str(error)
        return False

    until(rests)
    fake.is_down = False
    until(lambda: not rests())


def test_a_lease_that_expired_may_have_been_another_s_meanwhile(fake: FakeBucket) -> None:
    mine = take_lease(bucket(), print)
    fake.is_down = True
    until(lambda: time.monotonic() >= mine._good_until)
    del fake.objects[HELD]  # another has taken it, trained the run and given it back
    fake.is_down = False
    with pytest.raises(LeaseLost, match="another may have trained the run meanwhile"):
        mine.renew()
    with pytest.raises(LeaseLost):
        mine.check()
    assert fake.names() == []
