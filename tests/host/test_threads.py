"""Trainings outside the main thread, as Optuna's `n_jobs=2` and `wandb.agent` start them."""

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from host_program import SMALL
from paths import FROG

import hackmatrix
from hackmatrix.agents.networks.policy import load_policy

pytestmark = pytest.mark.thorough


def test_two_threads_train_runs_that_they_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(FROG.parent)
    handler = signal.getsignal(signal.SIGINT)

    def train(**named: str | Path) -> Path:
        return hackmatrix.train("frog:Frog", **SMALL, **named).run

    with ThreadPoolExecutor(2) as pool:
        runs = (
            pool.submit(train, run_name="first", checkpoint_dir=str(tmp_path / "runs")),
            pool.submit(train, output_dir=tmp_path / "second"),
        )
        first, second = (run.result() for run in runs)
    assert (first, second) == (tmp_path / "runs" / "first", tmp_path / "second")
    one, other = (load_policy(run).params["params"]["Dense_0"] for run in (first, second))
    np.testing.assert_array_equal(one["kernel"], other["kernel"])
    assert signal.getsignal(signal.SIGINT) is handler
