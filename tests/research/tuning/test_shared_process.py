"""Processes of trainings, as the search sees them; a stand-in answers."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hackmatrix.core.files import write_atomically
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.research.tuning import shared_process
from hackmatrix.research.tuning.training import Start, last_words, training

# Ends a training when told to, with the code 143; one with the learning rate 0.5 at once; dies at
# one with the seed 13. Its file of arguments says what it was told.
_STAND_IN = """\
import json, os, sys
for line in sys.stdin:
    order = json.loads(line)
    number = order["number"]
    if "argv" not in order:
        print(json.dumps({"number": number, "code": 143}), flush=True)
        continue
    with open(order["log"], "a") as log:
        print(os.getpid(), *order["argv"], file=log)
    settings = "" if order["argv"][0] == "--resume" else open(order["argv"][1]).read()
    if "seed: 13" in settings:
        os._exit(9)
    if "lr: 0.5" in settings:
        print(json.dumps({"number": number, "code": 0}), flush=True)
"""


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Begins trainings in two processes."""
    monkeypatch.setattr(shared_process, "COMMAND", [sys.executable, "-c", _STAND_IN])
    with shared_process.trainings(2, 3, tmp_path) as start:
        yield start


def process_of(run: Path) -> str:
    log = run.with_suffix(".log")
    while not log.exists() or not log.read_text().endswith("\n"):
        time.sleep(0.01)
    return log.read_text().split()[0]


def code_of(under_way: Any) -> int:
    """The exit code of a training, when it has ended."""
    while under_way.poll() is None:
        time.sleep(0.01)
    return int(under_way.returncode)


def test_one_ends_by_itself_or_when_it_is_no_longer_wanted(start: Start, tmp_path: Path) -> None:
    with start(TrainConfig.of(lr=0.5), tmp_path / "one") as under_way:
        assert code_of(under_way) == 0
    with start(TrainConfig(), tmp_path / "other") as under_way:
        assert under_way.poll() is None
    assert under_way.poll() == 143


def test_processes_have_equal_shares(start: Start, tmp_path: Path) -> None:
    runs = [tmp_path / name for name in "abcd"]
    with start(TrainConfig(), runs[0]), start(TrainConfig(), runs[1]):
        with start(TrainConfig(), runs[2]):
            one, other, third = map(process_of, runs[:3])
            assert one != other
            assert third in (one, other)
        with start(TrainConfig(), runs[3]):
            assert process_of(runs[3]) in (one, other)


def test_if_a_process_dies_its_trainings_have_failed(start: Start, tmp_path: Path) -> None:
    runs = [tmp_path / name for name in "abc"]
    unlucky = TrainConfig.of(seed=13)
    with start(TrainConfig(), runs[0]) as elsewhere, start(unlucky, runs[1]) as died:
        assert code_of(died) == 1
        assert last_words(runs[1]) == "its process ended with exit code 9"
        assert elsewhere.poll() is None
        with start(TrainConfig.of(lr=0.5), runs[2]) as again:
            assert code_of(again) == 0
    assert process_of(runs[2]) != process_of(runs[1])


def test_a_run_that_was_begun_goes_on(start: Start, tmp_path: Path) -> None:
    run = tmp_path / "one"
    run.mkdir()
    write_atomically(run / "config.yaml", b"lr: 0.5\n")
    with start(TrainConfig(), run):
        process_of(run)
    assert run.with_suffix(".log").read_text().split()[1:] == ["--resume", str(run)]


def test_alone_each_has_a_process_of_its_own(tmp_path: Path) -> None:
    with shared_process.trainings(2, 1, tmp_path) as start:
        assert start is training
