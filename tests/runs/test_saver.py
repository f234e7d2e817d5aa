"""A save that fails at any file operation: what was to be kept is kept in the end, or is told."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from failing_operations import Failing, failing_in

from hackmatrix.runs.checkpoints import Facts, checkpoints_of
from hackmatrix.runs.params import update_of_params
from hackmatrix.runs.saver import Saver, Snapshot

SCORES = [1.0, 5.0, None]  # of updates 1, 2 and 3: the second is the best


def snapshot(update: int, score: float | None) -> Snapshot:
    evaluation = None if score is None else {"mean_return": score}
    config = {"seed": 0, "num_seeds": 1}
    facts = Facts(update, 64 * update, update, "Grid", "0.1", config, evaluation)
    return Snapshot({"a": np.ones(2)}, facts, [{"params": {"a": np.full(2, float(update))}}])


def saved(
    run: Path,
    prepare: Callable[[Failing, int], None],
    scores: Sequence[float | None] = SCORES,
) -> tuple[Saver, list[str]]:
    """Saves updates with these scores; `prepare` is called before each, and at the end."""
    told: list[str] = []
    with failing_in(run) as failing:
        saver = Saver(
            run,
            1,
            check=lambda: None,
            settle_metrics=lambda: None,
            on_saved=lambda facts, files: None,  # noqa: ARG005
            on_failed=lambda failure, error: told.append(f"{failure}: {error.strerror}"),
        )
        with saver:
            for update, score in enumerate(scores, start=1):
                saver.wait()
                prepare(failing, update)
                saver.save(snapshot(update, score))
            saver.wait()
            prepare(failing, len(scores) + 1)
    return saver, told


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
def test_a_file_operation_that_fails_costs_neither_the_best_nor_the_newest(tmp_path: Path) -> None:
    check_operations(tmp_path, slice(3, None, 24))


@pytest.mark.slow
def test_any_file_operation_that_fails_costs_neither_the_best_nor_the_newest(
    tmp_path: Path,
) -> None:
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
