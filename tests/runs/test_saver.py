"""The saver: what is kept, while training goes on, and whatever file operation fails."""

import itertools
import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from failing_operations import Failing, failing_in

from hackmatrix.runs import checkpoints
from hackmatrix.runs.checkpoints import Facts, best_checkpoint, checkpoints_of
from hackmatrix.runs.params import update_of_params
from hackmatrix.runs.saver import Saver, Snapshot

SCORES = [1.0, 5.0, None]  # of updates 1, 2 and 3: the second is the best


def updates_of(run: Path) -> list[int]:
    return [checkpoint.update for checkpoint in checkpoints_of(run)]


def snapshot(update: int, score: float | None = None, num_agents: int = 1) -> Snapshot:
    evaluation = None
    if score is not None:
        evaluation = {"mean_return": score, "agents": [{"mean_return": score}] * num_agents}
    config = {"seed": 0, "num_seeds": num_agents}
    facts = Facts(update, 64 * update, update, "Grid", "0.1", config, evaluation)
    params = {"params": {"a": np.full(2, update, np.float32)}}
    return Snapshot({"a": np.ones(2)}, facts, [params] * num_agents)


def saver(run: Path, keep: int, told: list[Any]) -> Saver:
    return Saver(
        run,
        keep,
        check=lambda: None,
        settle_metrics=lambda: None,
        on_saved=lambda facts, files: told.append((facts.update, files[0].name)),
        on_failed=lambda failure, error: told.append(f"{failure}: {error.strerror}"),
    )


def saved(
    run: Path, prepare: Callable[[Failing, int], None], scores: Sequence[float | None] = SCORES
) -> tuple[Saver, list[str]]:
    """Saves updates with these scores; `prepare` is called before each, and at the end."""
    told: list[Any] = []
    with failing_in(run) as failing, saver(run, 1, told) as saving:
        for update, score in enumerate(scores, start=1):
            saving.wait()
            prepare(failing, update)
            saving.save(snapshot(update, score))
        saving.wait()
        prepare(failing, len(scores) + 1)
    return saving, [line for line in told if isinstance(line, str)]


def operations_of_updates(run: Path) -> list[int]:
    """The number of operations before each update, and of all."""
    seen: list[int] = []
    saver, told = saved(run, lambda failing, _: seen.append(failing.seen))
    assert not told
    assert saver.is_best_kept
    return seen


def runs_in(folder: Path) -> Callable[[], Path]:
    """Makes a run's folder, with its lock, whenever it is called."""
    numbers = itertools.count()

    def made() -> Path:
        run = folder / str(next(numbers))
        run.mkdir()
        (run / ".lock").touch()
        return run

    return made


def assert_kept(run: Path) -> None:
    assert [checkpoint.update for checkpoint in checkpoints_of(run)] == [2, 3]
    held = {"best_params": 2, "params_2": 2, "params_3": 3}
    assert {path.stem for path in run.glob("*.npz")} == held.keys()
    assert {path.stem for path in run.glob("*.json")} == held.keys()
    for name, update in held.items():
        assert update_of_params(run, name) == update


def check_operations(tmp_path: Path, chosen: slice) -> None:
    """Lets each of the chosen operations fail once, in a run of its own."""
    new = runs_in(tmp_path)
    count = operations_of_updates(new())[-1]
    assert count > 200
    for number in range(count)[chosen]:
        run = new()

        def arm(failing: Failing, update: int, number: int = number) -> None:
            if update == 1:
                failing.arm(number)

        saver, told = saved(run, arm)
        assert not saver.has_failed, (number, told)
        assert saver.is_best_kept, (number, told)
        assert_kept(run)


@pytest.mark.thorough
def test_an_operation_that_fails_costs_neither_best_nor_newest(tmp_path: Path) -> None:
    check_operations(tmp_path, slice(3, None, 40))


@pytest.mark.slow
def test_any_operation_that_fails_costs_neither_best_nor_newest(tmp_path: Path) -> None:
    check_operations(tmp_path, slice(None))


def test_while_the_best_cant_be_written_no_later_checkpoint_overtakes_it(tmp_path: Path) -> None:
    """So a run that is killed then goes on from an earlier one, and makes the best again."""
    run = runs_in(tmp_path)()

    def broken_from_the_second_on(failing: Failing, update: int) -> None:
        if update == 2:
            failing.arm(0, count=10**6)
        if update == 4:
            assert [checkpoint.update for checkpoint in checkpoints_of(run)] == [1]

    saver, told = saved(run, broken_from_the_second_on)
    assert saver.has_failed
    assert not saver.is_best_kept
    assert [line for line in told if line.startswith("the checkpoint")] == [
        f"the checkpoint of update {update} can't be written: Input/output error"
        for update in (2, 3)
    ]
    assert [checkpoint.update for checkpoint in checkpoints_of(run)] == [1]


def test_the_best_one_stays_until_a_better_one_is_written(tmp_path: Path) -> None:
    run = runs_in(tmp_path)()

    def broken_from_the_third_on(failing: Failing, update: int) -> None:
        if update == 3:
            failing.arm(0, count=10**6)

    saver, _ = saved(run, broken_from_the_third_on, [1.0, None, 5.0])
    assert not saver.is_best_kept
    assert [checkpoint.update for checkpoint in checkpoints_of(run)] == [1, 2]
    assert update_of_params(run, "best_params") == 1


def test_a_better_one_takes_the_place_of_one_that_waits(tmp_path: Path) -> None:
    run = runs_in(tmp_path)()

    def broken_for_the_first(failing: Failing, update: int) -> None:
        failing.arm(0, count=10**6 if update == 1 else 0)

    saver, told = saved(run, broken_for_the_first)
    assert len(told) >= 1
    assert not saver.has_failed
    assert_kept(run)


@pytest.mark.parametrize("num_agents", [1, 2])
def test_the_newest_and_the_best_stay_with_their_params(num_agents: int, tmp_path: Path) -> None:
    told: list[Any] = []
    with saver(tmp_path, 2, told) as saving:
        for update, score in enumerate([1.0, 5.0, None, 3.0, 2.0, None], start=1):
            saving.save(snapshot(update, score, num_agents))
    assert updates_of(tmp_path) == [2, 5, 6]
    best = best_checkpoint(tmp_path)
    assert best is not None
    assert best.update == 2
    assert told == [(update, str(update)) for update in range(1, 7)]
    folders = [tmp_path] if num_agents == 1 else [tmp_path / "seed_0", tmp_path / "seed_1"]
    names = {"best_params", "params_2", "params_5", "params_6"}
    for folder in folders:
        for suffix in ("npz", "json"):
            assert {path.stem for path in folder.glob(f"*.{suffix}")} == names
        assert json.loads((folder / "best_params.json").read_text())["update"] == 2


def test_the_newest_stays_though_another_is_better(tmp_path: Path) -> None:
    with saver(tmp_path, 1, []) as saving:
        for update, score in enumerate([4.0, 3.0, 2.0], start=1):
            saving.save(snapshot(update, score))
    assert updates_of(tmp_path) == [1, 3]


def test_training_does_not_wait_for_a_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_write = threading.Event()
    write = checkpoints.write_arrays

    def slow(*args: Any) -> None:
        assert may_write.wait(30)
        write(*args)

    monkeypatch.setattr(checkpoints, "write_arrays", slow)
    with saver(tmp_path, 2, []) as saving:
        saving.save(snapshot(1))  # returns though nothing can be written
        assert updates_of(tmp_path) == []
        may_write.set()
    assert updates_of(tmp_path) == [1]  # leaving waits for the rest


def test_a_failed_save_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    told: list[Any] = []
    with saver(tmp_path, 2, told) as saving:
        saving.save(snapshot(1))
        saving.wait()
        with monkeypatch.context() as full:
            full.setattr(checkpoints, "write_arrays", no_space)
            saving.save(snapshot(2))
            saving.wait()
            assert saving.has_failed
        saving.save(snapshot(3))
    refused = "the checkpoint of update 2 can't be written: No space left on device"
    assert told == [(1, "1"), refused, (3, "3")]
    assert not saving.has_failed
    assert updates_of(tmp_path) == [1, 3]
