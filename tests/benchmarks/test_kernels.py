"""`benchmarks.kernels`: what ran on the device is counted, and nothing else."""

import json
from typing import Any

import pytest

from benchmarks import kernels


def test_kernels_of_a_trace() -> None:
    def event(name: str, tid: int, **more: Any) -> dict[str, Any]:
        return {"name": name, "pid": 1, "tid": tid, "dur": 2.0, **more}

    events = [
        {"name": "thread_name", "pid": 1, "tid": 7, "args": {"name": "Stream #14(Compute)"}},
        {"name": "thread_name", "pid": 1, "tid": 8, "args": {"name": "python"}},
        event("fusion.12", 7),
        event("step", 7),
        event("call", 8),
        event("dot.3", 8, args={"hlo_op": "dot.3"}),  # of XLA on CPUs
    ]
    assert kernels.kernels_of(events) == [("fusion", 2e-6), ("step", 2e-6), ("dot", 2e-6)]


@pytest.mark.slow
def test_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    small = "--num-envs 16 --num-minibatches 4 --repeats 1"
    assert kernels.main(["--config", "quick", *small.split(), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["launches"] > 100
    assert figures["kernel_seconds"] > 0
    assert kernels.main(["--config", "nothing"]) == 2
