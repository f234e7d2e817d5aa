"""Trainings of a search in one process: each is what `hackmatrix train` alone makes of it."""

import io
import json
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from small_runs import assert_same_run, rows_of, updates_of

from hackmatrix.cli.main import main
from hackmatrix.cli.together import Together
from hackmatrix.learning.run.schedule import SharedPrograms
from hackmatrix.learning.trainer.trainer import Trainer

SETTINGS: dict[str, Any] = {
    "model": {"hidden_dim": 8, "num_layers": 1},
    "environment": {"name": "CartPole-v1", "num_envs": 8},
    "training": {"num_steps": 8, "total_timesteps": 7 * 64, "num_seeds": 2},
    "logging": {"log_interval": 1, "tensorboard": False, "wandb": False},
}

Argv = Callable[..., list[str]]


@pytest.fixture
def argv(tmp_path: Path) -> Argv:
    """The arguments of a training in the folder of this name, with some settings of its own."""

    def argv(name: str, **changes: Any) -> list[str]:
        settings = {**SETTINGS, "training": SETTINGS["training"] | changes}
        (tmp_path / f"{name}.yaml").write_text(yaml.dump(settings))
        return ["--config", f"{tmp_path / name}.yaml", "--output-dir", str(tmp_path / name)]

    return argv


class Process:
    """Obeys orders in this process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._answers = io.StringIO()
        self.together = Together(self._answers)

    def begin(self, number: int, argv: list[str]) -> None:
        log = str(self._folder / f"{number}.log")
        self.together.obey({"number": number, "argv": argv, "log": log})

    def log(self, number: int) -> list[str]:
        return (self._folder / f"{number}.log").read_text().splitlines()

    def run(self) -> dict[int, int]:
        """Waits until all trainings have ended; returns their exit codes, the first one first."""
        self.together.join()
        answers = map(json.loads, self._answers.getvalue().splitlines())
        return {answer["number"]: answer["code"] for answer in answers}


@pytest.fixture
def process(tmp_path: Path) -> Process:
    return Process(tmp_path)


# All that the update takes as an input, in one trial and another.
ONE = {"lr": 1e-2, "gamma": 0.9, "gae_lambda": 0.8, "clip_eps": 0.3, "vf_coef": 0.2, "seed": 5}
OTHER = {"ent_coef": 0.3, "final_ent_coef": 0.01, "max_grad_norm": 0.1, "lr_schedule": "cosine"}


@pytest.mark.slow
def test_each_is_the_run_that_train_makes_bit_for_bit(
    argv: Argv, process: Process, tmp_path: Path
) -> None:
    for number, (name, changes) in enumerate({"one": ONE, "other": OTHER}.items()):
        process.begin(number, argv(name, **changes))
    assert process.run() == {0: 0, 1: 0}
    assert len(process.together.programs.trainers) == 1
    for name, changes in {"one": ONE, "other": OTHER}.items():
        assert main(["train", *argv(f"{name}-alone", **changes)]) == 0
        assert_same_run(tmp_path / name, tmp_path / f"{name}-alone", 7)
    rates = [row["train/learning_rate"] for row in rows_of(tmp_path / "one")]
    assert rates == [1e-2] * 7


def is_waiting(thread: threading.Thread) -> bool:
    """Whether this thread has got in line."""
    frame = sys._current_frames().get(thread.ident or 0)
    return any(call.name == "wait_for" for call in traceback.extract_stack(frame))


def test_turns_go_round() -> None:
    programs, order = SharedPrograms(), list[str]()

    def work(name: str) -> None:
        with programs.turn():
            order.append(name)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    with programs.turn():
        for thread in threads:
            thread.start()
            while not is_waiting(thread):
                time.sleep(0.001)
    work("who has just had it")
    for thread in threads:
        thread.join()
    assert order == ["a", "b", "c", "who has just had it"]


def test_a_turn_that_fails_is_over() -> None:
    programs = SharedPrograms()
    with pytest.raises(ValueError, match="wrong"), programs.turn():
        raise ValueError("wrong")
    with programs.turn():
        pass


@pytest.mark.slow
def test_each_ends_in_its_own_way(
    argv: Argv, process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Trainer.run

    def failing(trainer: Trainer, state: Any, num_updates: int) -> Any:
        if num_updates and float(trainer.hyper.lr) == pytest.approx(0.5):
            raise RuntimeError("RESOURCE_EXHAUSTED")
        return run(trainer, state, num_updates)

    monkeypatch.setattr(Trainer, "run", failing)
    process.begin(1, argv("long", total_timesteps=200 * 64))
    process.begin(2, argv("short", total_timesteps=3 * 64))
    process.begin(3, argv("wrong", num_minibatches=3))
    process.begin(4, argv("large", lr=0.5))
    process.begin(5, argv("other", update_epochs=1))
    codes = process.run()
    assert codes == {1: 0, 2: 0, 3: 2, 4: 1, 5: 0}
    assert list(codes).index(2) < list(codes).index(1)  # the shorter one ends first
    assert len(process.together.programs.trainers) == 2  # another structure has its own
    assert process.log(2)[-1].startswith("next")
    (line,) = process.log(3)
    assert line.startswith("hackmatrix train: error: --num-minibatches 3 must divide")
    assert process.log(4)[-1] == "RuntimeError: RESOURCE_EXHAUSTED"
    assert updates_of(tmp_path / "long") == [200]


@pytest.mark.thorough
def test_one_that_is_ended_is_saved_and_goes_on_as_if_it_had_not_been(
    argv: Argv, process: Process, tmp_path: Path
) -> None:
    changes = {"lr": 1e-2, "lr_schedule": "linear", "total_timesteps": 300 * 64}
    process.begin(1, argv("cut", **changes))
    process.begin(2, argv("whole", **changes))
    wait_for_rows(tmp_path / "cut")
    process.together.obey({"number": 1})
    assert process.run() == {1: 128 + 15, 2: 0}
    (update,) = updates_of(tmp_path / "cut")
    assert 0 < update < 300
    again = Process(tmp_path)
    again.begin(3, ["--resume", str(tmp_path / "cut")])
    assert again.run() == {3: 0}
    assert_same_run(tmp_path / "cut", tmp_path / "whole", 300)

    for number, name in ((4, "one"), (5, "other")):
        again.begin(number, argv(name, total_timesteps=10_000 * 64))
    for name in ("one", "other"):
        wait_for_rows(tmp_path / name)
    again.together.end()  # as when the search ends: all are saved
    assert again.run() == {3: 0, 4: 143, 5: 143}
    assert all(len(updates_of(tmp_path / name)) == 1 for name in ("one", "other"))


def wait_for_rows(run: Path) -> None:
    """Waits until a run has trained for some updates."""
    deadline = time.monotonic() + 120
    while not (run / "metrics.jsonl").exists() or len(rows_of(run)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
