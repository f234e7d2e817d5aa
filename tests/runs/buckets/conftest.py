from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_bucket import FakeBucket, emulated
from garbage import only_new_garbage


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeBucket]:
    """A bucket on this machine, to which the library goes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with only_new_garbage(), emulated(monkeypatch) as bucket:
        yield bucket
