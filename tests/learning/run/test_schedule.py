"""The tasks due after each update, without a trainer."""

import dataclasses
import itertools
from typing import Any

import pytest

from hackmatrix.learning.run.schedule import Schedule
from hackmatrix.learning.settings.config import TrainConfig, TrainOptions
from hackmatrix.learning.trainer.config import Course

END = 20


def stops(schedule: Schedule, first: int = 0) -> list[int]:
    """Where calls end that go as far as they may."""
    updates = [first]
    while updates[-1] < schedule.num_updates:
        updates.append(schedule.next_due(updates[-1]))
    return updates[1:]


def test_each_thing_is_due_by_its_own_interval_and_at_the_end() -> None:
    schedule = Schedule(END, log_interval=6, eval_interval=9, save_interval=5)
    updates = range(1, END + 1)
    assert [u for u in updates if schedule.is_log_due(u)] == [6, 12, 18, 20]
    assert [u for u in updates if schedule.is_evaluation_due(u)] == [9, 18, 20]
    assert [u for u in updates if schedule.is_save_due(u, 1e9)] == [5, 10, 15, 20]
    assert stops(schedule) == [5, 6, 9, 10, 12, 15, 18, 20]


def test_without_evaluations_none_is_due_not_even_at_the_end() -> None:
    schedule = Schedule(END, log_interval=6)
    assert not any(map(schedule.is_evaluation_due, range(1, END + 1)))
    assert stops(schedule) == [6, 12, 18, 20]


def test_saves_by_the_clock_wait_for_their_seconds_and_for_the_end_of_a_call() -> None:
    schedule = Schedule(END, log_interval=8, save_seconds=60)
    assert [schedule.is_save_due(3, seconds) for seconds in (0, 59.9, 60, 61)] == [0, 0, 1, 1]
    assert stops(schedule) == [8, 16, 20]


def test_the_update_that_is_traced_has_a_call_of_its_own() -> None:
    schedule = Schedule(END, log_interval=10, profiled=4)
    assert stops(schedule) == [3, 4, 10, 20]
    assert stops(schedule, first=3) == [4, 10, 20]
    assert stops(schedule, first=4) == [10, 20]
    assert stops(dataclasses.replace(schedule, profiled=1)) == [1, 10, 20]
    assert stops(dataclasses.replace(schedule, profiled=END + 1)) == [10, 20]


def test_no_call_goes_past_anything_that_is_due() -> None:
    for log, evaluate, save in itertools.product(range(1, 7), repeat=3):
        schedule = Schedule(END, log, evaluate, save)
        due = {
            update
            for update in range(1, END + 1)
            if schedule.is_log_due(update)
            or schedule.is_evaluation_due(update)
            or schedule.is_save_due(update, 0)
        }
        for first in range(END):
            assert stops(schedule, first) == sorted(u for u in due if u > first)


@pytest.mark.parametrize(
    ("options", "first", "profiled"),
    [
        ({}, 0, None),
        ({"profile": True, "profile_step": 5}, 0, 5),
        ({"profile": True, "profile_step": 5}, 7, 8),  # over: the next one
    ],
)
def test_configuration_and_options_make_a_schedule(
    options: dict[str, Any], first: int, profiled: int | None
) -> None:
    config = TrainConfig.of(
        num_envs=8, num_steps=8, log_interval=3, eval_interval=4, save_interval_minutes=2
    )
    course = Course(config.learning.batch_size, 10 * config.learning.batch_size)
    schedule = Schedule.of(config, course, TrainOptions(**options), first)
    assert schedule == Schedule(10, 3, 4, None, 120, profiled)
