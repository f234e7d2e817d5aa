"""Objects of a bucket, through the real library and a server of this machine that has faults."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_bucket import BUCKET, LEFT_SOCKETS, FakeBucket, Fault, emulated
from garbage import only_new_garbage

from hackmatrix.core.errors import UserError
from hackmatrix.runs.bucket import (
    CREDENTIAL_SECONDS,
    Address,
    Bucket,
    Changed,
    Forbidden,
    Missing,
    Unreachable,
    checksum,
    is_address,
)

pytestmark = [pytest.mark.filterwarnings(LEFT_SOCKETS), pytest.mark.thorough]

CONTENT = bytes(range(256)) * 4


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeBucket]:
    with only_new_garbage(), emulated(monkeypatch) as fake:
        yield fake


@pytest.fixture
def bucket(fake: FakeBucket) -> Bucket:
    assert fake is not None
    return Bucket(Address(BUCKET, "a/b"), patience=5)


def test_addresses() -> None:
    address = Address.of("gs://my-bucket/runs//mine/")
    assert address == Address.of(Path("gs://my-bucket/runs/mine")) == ("my-bucket", "runs/mine")
    assert str(address) == "gs://my-bucket/runs/mine"
    assert (address.name, str(address.parent)) == ("mine", "gs://my-bucket/runs")
    assert str(Address.of("gs://my-bucket") / "x") == "gs://my-bucket/x"
    assert address.below(Path("here")) == Path("here/my-bucket/runs/mine")
    assert Address.of("gs://my-bucket").below(Path("here")) == Path("here/my-bucket")
    assert [is_address(path) for path in ("gs://b", "checkpoints", None)] == [True, False, False]


@pytest.mark.parametrize("text", ["gs://", "gs:///x", "gs://B/x", "s3://bucket/x", "gs://b-b/../c"])
def test_what_is_no_address_is_told(text: str) -> None:
    with pytest.raises(UserError, match="must have the form gs://BUCKET/FOLDER"):
        Address.of(text)


def test_an_object_is_written_found_read_and_deleted(fake: FakeBucket, bucket: Bucket) -> None:
    written = bucket.write("x/y.txt", CONTENT)
    assert fake.objects["a/b/x/y.txt"].content == CONTENT
    assert bucket.find("x/y.txt") == bucket.objects()["x/y.txt"] == written
    assert (written.size, written.crc32c) == (1024, checksum(CONTENT))
    assert checksum(CONTENT[100:], checksum(CONTENT[:100])) == checksum(CONTENT)
    assert bucket.read("x/y.txt") == CONTENT
    assert bucket.read("x/y.txt", 1000) == CONTENT[1000:]
    assert bucket.folders() == ["x"]
    assert bucket.objects("z") == {}
    bucket.delete("x/y.txt")
    bucket.delete("x/y.txt")
    assert bucket.find("x/y.txt") is None
    with pytest.raises(Missing):
        bucket.read("x/y.txt")


def test_only_an_object_of_the_generation_is_replaced(fake: FakeBucket, bucket: Bucket) -> None:
    first = bucket.write("x", b"1", 0)
    with pytest.raises(Changed, match="gs://my-bucket/a/b/x: was written by another process"):
        bucket.write("x", b"2", 0)
    second = bucket.write("x", b"2", first.generation)
    for generation in (first.generation, second.generation + 1):
        with pytest.raises(Changed):
            bucket.write("x", b"3", generation)
        with pytest.raises(Changed):
            bucket.delete("x", generation)
    assert bucket.read("x") == b"2"
    fake.faults = [Fault("lose", method="POST")]
    with pytest.raises(Changed):  # the caller finds out whose write it was
        bucket.write("y", CONTENT, 0)
    assert bucket.read("y") == CONTENT


def test_names_that_are_no_paths_are_left_out(fake: FakeBucket, bucket: Bucket) -> None:
    for name in ("../x", "x//y", "/x", "folder/", "ok", "back\\slash"):
        fake.put(f"a/b/{name}", b"")
    assert list(bucket.objects()) == ["ok"]


@pytest.mark.parametrize("kind", ["503", "429", "refuse", "cut", "lose"])
def test_what_fails_for_once_is_tried_again(fake: FakeBucket, bucket: Bucket, kind: str) -> None:
    fake.faults = [Fault(kind, 2, "POST")]
    bucket.write("x", CONTENT)
    fake.faults = [Fault(kind, 2, "GET")]
    assert bucket.read("x") == CONTENT
    fake.faults = [Fault(kind, 2, "GET")]
    assert list(bucket.objects()) == ["x"]
    assert fake.faults == []


def test_of_a_large_object_only_a_lost_piece_goes_again(fake: FakeBucket, bucket: Bucket) -> None:
    large = os.urandom(17 * 2**20)
    fake.faults = [Fault("lose", method="PUT"), Fault("503", method="PUT")]
    assert bucket.write("large", large).size == len(large)
    assert fake.objects["a/b/large"].content == large
    assert fake.calls.count("PUT a/b/large") == 5


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_what_is_damaged_on_the_way_is_refused(
    fake: FakeBucket, bucket: Bucket, method: str
) -> None:
    fake.put("a/b/x", CONTENT)
    fake.faults = [Fault("damage", 100, method)]
    with pytest.raises(Unreachable):
        bucket.write("x", CONTENT) if method == "POST" else bucket.read("x")


@pytest.mark.timeout(60)  # it would be tried for ever
def test_what_goes_on_failing_is_told_when_the_patience_is_over(fake: FakeBucket) -> None:
    with pytest.raises(Missing, match="there is no such bucket"):
        Bucket(Address("another", "x"), patience=1).objects()
    bucket = Bucket(Address(BUCKET, "a"), patience=0.5)
    fake.is_down = True
    with pytest.raises(Unreachable, match="gs://my-bucket/a: no answer"):
        bucket.objects()


@pytest.mark.parametrize(
    ("status", "told"),
    [("403", "permission denied: made up, 403"), ("401", "the credentials are of no use")],
)
def test_a_refusal_is_told_at_once(
    fake: FakeBucket, bucket: Bucket, status: str, told: str
) -> None:
    fake.faults = [Fault(status)]
    with pytest.raises(Forbidden, match=told):
        bucket.objects()
    assert len(fake.calls) == 1


NO_CREDENTIALS = """
import threading
from hackmatrix.runs.bucket import Address
from hackmatrix.runs.bucket import Bucket, Forbidden
try:
    Bucket(Address("my-bucket", "x"), patience=5)
except Forbidden as error:
    print([each.name for each in threading.enumerate()])
    print(error)
"""


def test_without_credentials_one_line_comes_before_the_library_has_given_up(tmp_path: Path) -> None:
    words = [sys.executable, "-c", NO_CREDENTIALS]
    with socket.create_server(("127.0.0.1", 0)) as silent:  # in place of the cloud's own server
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "GCE_METADATA_HOST": place,
            "GCE_METADATA_IP": place,
        }
        done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    threads, line = done.stdout.splitlines()
    assert "credentials" in threads  # still asks
    assert CREDENTIAL_SECONDS < 5
    assert line.startswith(
        "gs://my-bucket/x: there are no credentials of Google Cloud here: "
        "`gcloud auth application-default login` makes some"
    )


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.cloud.storage", None)
    with pytest.raises(UserError, match=r"pip install 'hackmatrix\[bucket\]'"):
        Bucket(Address(BUCKET, "a"), patience=5)
