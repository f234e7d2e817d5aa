"""The machine of a run."""

import os

import pytest

from hackmatrix.core import machine


def test_cores_are_known_where_the_system_tells_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert machine.machine()["cores"] == os.cpu_count()
