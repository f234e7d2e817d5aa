"""The health monitor: which rows of metrics raise which alarm, once."""

import json
import math
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

import hackmatrix
from hackmatrix.environments.interface.metric import Severity
from hackmatrix.environments.task_metrics import metrics_of_task
from hackmatrix.learning.algorithms.ppo import PPO
from hackmatrix.learning.reporting.alarms import (
    RETURN,
    SPEED,
    UNLEARNED_ROWS,
    WINDOW,
    Alarm,
    Health,
    alarms_of,
    parse_row,
)
from hackmatrix.learning.reporting.metrics import LEARNER_METRICS
from hackmatrix.learning.trainer.measures import metrics_of
from hackmatrix.runs.folder import RunFolder
from hackmatrix.runs.metrics_file import read_metrics

Row = dict[str, float | None]

DIVERGENCE, INFORMATION = "train/divergence", "train/search_information"
ENTROPY, KL, CLIP = "train/entropy_frac", "train/approx_kl", "train/clip_frac"
CRITICAL = {"entropy_collapse", "kl_too_high", "clip_too_high", "not_finite"}


def alarms(rows: Iterable[Row]) -> list[Alarm]:
    """All alarms of a run with these rows."""
    health = Health(LEARNER_METRICS)
    return [alarm for update, row in enumerate(rows, 1) for alarm in health.check(update, row)]


def fired(rows: Iterable[Row]) -> list[tuple[str, int]]:
    """Names and rows (from 1) of the alarms of a run."""
    return [(alarm.name, alarm.update) for alarm in alarms(rows)]


def series(name: str, values: Iterable[float | None]) -> list[Row]:
    return [{name: value} for value in values]


def healthy_rows(count: int = 100) -> list[Row]:
    chance = random.Random(0)
    return [
        {
            **{metric.name: 0.0 for metric in LEARNER_METRICS},
            ENTROPY: 1.5 + chance.gauss(0, 0.1),
            KL: 0.04 + chance.gauss(0, 0.004),
            CLIP: 0.25 + chance.gauss(0, 0.01),
            RETURN: 0.2 * row + chance.gauss(0, 1),
            SPEED: 20_000 * chance.uniform(0.75, 1.1),
        }
        for row in range(count)
    ]


def test_of_several_tasks_each_return_is_judged_and_not_their_mean() -> None:
    """The mean over all games falls while both tasks are learned: good games are long and few."""
    metrics = (*LEARNER_METRICS, *metrics_of_task("Pond"), *metrics_of_task("River"))
    pond, river = "task/Pond/mean_return", "task/River/mean_return"
    chance = random.Random(0)

    def told(flat: bool) -> list[Alarm]:
        health = Health(metrics)
        return [
            alarm
            for row in range(2 * WINDOW)
            for alarm in health.check(
                row,
                {
                    RETURN: -float(row),
                    pond: row + chance.gauss(0, 1),
                    river: chance.gauss(0, 1) if flat else 2.0 * row,
                },
            )
        ]

    assert told(flat=False) == []
    (alarm,) = told(flat=True)
    assert alarm.name == "return_flat"
    assert alarm.message.startswith(f"{river} gained")


def test_a_healthy_run_raises_nothing() -> None:
    assert alarms(healthy_rows()) == []


@pytest.mark.parametrize(
    ("metric", "value", "alarm"),
    [
        (ENTROPY, 0.05, None),
        (ENTROPY, 0.049, "entropy_low"),
        (ENTROPY, 0.02, "entropy_low"),
        (ENTROPY, 0.019, "entropy_collapse"),
        (KL, 0.06, None),
        (KL, 0.0601, "kl_high"),
        (KL, 0.08, "kl_high"),
        (KL, 0.0801, "kl_too_high"),
        (CLIP, 0.30, None),
        (CLIP, 0.301, "clip_high"),
        (CLIP, 0.35, "clip_high"),
        (CLIP, 0.351, "clip_too_high"),
        (CLIP, None, None),
        ("train/vf_loss", 1e9, None),
    ],
)
def test_a_limit_fires_once_beyond_it_and_at_its_worst(
    metric: str, value: float | None, alarm: str | None
) -> None:
    rows = series(metric, [value, value])
    assert fired(rows) == ([] if alarm is None else [(alarm, 1)])


def test_a_warning_may_be_followed_by_the_critical_alarm_but_not_the_other_way() -> None:
    assert fired(series(KL, [0.05, 0.07, 0.05, 0.09])) == [("kl_high", 2), ("kl_too_high", 4)]
    assert fired(series(KL, [0.05, 0.09, 0.05, 0.07])) == [("kl_too_high", 2)]


def test_metrics_raise_their_alarms_side_by_side() -> None:
    assert fired([{ENTROPY: 0.03, KL: 0.09, CLIP: 0.2}]) == [("entropy_low", 1), ("kl_too_high", 1)]


def test_a_message_says_what_is_wrong_and_what_to_do() -> None:
    (alarm,) = alarms([{KL: 0.0912}])
    assert alarm == Alarm(
        "kl_too_high",
        Severity.CRITICAL,
        1,
        "train/approx_kl 0.0912 is above 0.08: the policy changes too fast; lower --lr (by half "
        "for twice the gradient steps), or take fewer --update-epochs",
    )


def test_the_table_of_alarms_tells_which_ones_may_stop_a_run() -> None:
    assert {
        rule.name for rule in alarms_of(LEARNER_METRICS) if rule.severity is Severity.CRITICAL
    } == CRITICAL
    assert len({rule.name for rule in alarms_of(LEARNER_METRICS)}) == len(
        alarms_of(LEARNER_METRICS)
    )
    assert all("\n" not in rule.advice for rule in alarms_of(LEARNER_METRICS))


@pytest.mark.parametrize("value", [math.nan, -math.inf])
@pytest.mark.parametrize("metric", ["train/vf_loss", KL, RETURN, SPEED])
def test_a_value_that_is_not_finite_is_critical_and_nothing_else(metric: str, value: float) -> None:
    (alarm,) = alarms(series(metric, [1e-3, value, value]))
    assert (alarm.name, alarm.severity, alarm.update) == ("not_finite", Severity.CRITICAL, 2)
    assert alarm.message.startswith(f"{metric} is not finite: ")
    assert "--detect-anomaly" in alarm.message


def test_what_was_not_measured_is_no_alarm() -> None:
    assert alarms([{metric.name: None for metric in LEARNER_METRICS}, {}]) == []


def test_few_of_many_broken_metrics_are_named() -> None:
    (alarm,) = alarms([{f"train/{name}": math.nan for name in "abcde"}])
    assert alarm.message.startswith("train/a, train/b, train/c and 2 more are not finite: ")
    (alarm,) = alarms([{f"train/{name}": math.nan for name in "abc"}])
    assert alarm.message.startswith("train/a, train/b, train/c are not finite: ")


def noisy(chance: random.Random, curve: Callable[[int], float], rows: int) -> list[Row]:
    """Returns along a curve, with noise of deviation 1."""
    return series(RETURN, [curve(row) + chance.gauss(0, 1) for row in range(rows)])


def swings(period: float, size: float) -> Callable[[int], float]:
    return lambda row: size * math.sin(math.tau * row / period)


def first_trends(curve: Callable[[int], float], rows: int = 2 * WINDOW) -> set[str]:
    """The first alarm of each of 20 runs along a curve."""
    return {fired(noisy(random.Random(seed), curve, rows))[0][0] for seed in range(20)}


def test_a_return_that_stays_within_its_noise_is_flat() -> None:
    assert first_trends(lambda _: -1.55) == {"return_flat"}
    assert fired(series(RETURN, [2.0] * 100)) == [("return_flat", WINDOW)]


def test_a_return_that_solves_the_environment_need_not_rise() -> None:
    metrics = metrics_of(SimpleNamespace(reward_threshold=475.0), PPO)
    for solved, names in ((500.0, []), (474.0, ["return_flat"])):
        health = Health(metrics)
        rows = series(RETURN, [solved] * 2 * WINDOW)
        assert [a.name for i, row in enumerate(rows) for a in health.check(i, row)] == names


@pytest.mark.thorough
def test_shorter_games_are_solved_by_a_smaller_return() -> None:
    assert hackmatrix.make("CartPole-v1", max_episode_steps=200).reward_threshold == 190


@pytest.mark.parametrize("curve", [swings(15, 4.0), swings(30, 4.0), lambda row: -0.3 * row])
def test_a_return_that_swings_without_gain_or_falls_oscillates(
    curve: Callable[[int], float],
) -> None:
    assert first_trends(curve) == {"return_oscillating"}


RISING: dict[str, Callable[[int], float]] = {
    "slowly": lambda row: 0.15 * row,
    "fast": lambda row: 2.0 * row,
    "ever faster": lambda row: 0.15 * row + 0.002 * row**2,
    "ever slower": lambda row: 8.0 * math.sqrt(row),
    "in swings": lambda row: 0.6 * row + swings(20, 4.0)(row),
    "in stairs": lambda row: 3.0 * (row // 10),
}


@pytest.mark.thorough
@pytest.mark.parametrize("way", RISING)
def test_a_noisy_return_that_rises_raises_nothing(way: str) -> None:
    for seed in range(100):
        assert alarms(noisy(random.Random(seed), RISING[way], 5 * WINDOW)) == [], seed


def test_a_plateau_is_told_after_the_rise() -> None:
    for seed in range(20):
        ((name, row), *_) = fired(noisy(random.Random(seed), lambda r: min(r, 60) * 0.5, 150))
        assert name == "return_flat"
        assert 60 + WINDOW // 2 < row < 60 + 2 * WINDOW


def searched(learned: Iterable[float], information: float = 0.4) -> list[Row]:
    """Rows of a run whose network has learned these parts of what its search found."""
    rows = [((1 - part) * information, information) for part in learned]
    return [{DIVERGENCE: left, INFORMATION: all_} for left, all_ in rows]


def test_a_policy_that_never_learns_what_its_search_finds_is_told() -> None:
    chance = random.Random(0)
    never = [chance.uniform(-0.2, 0.15) for _ in range(2 * UNLEARNED_ROWS)]
    assert fired(searched(never)) == [("search_not_learned", UNLEARNED_ROWS)]


def test_a_policy_that_learns_what_its_search_finds_raises_nothing() -> None:
    late = [0.0] * (UNLEARNED_ROWS - 1) + [0.5] * UNLEARNED_ROWS
    assert fired(searched(late)) == []
    again = [*late, *[0.1] * UNLEARNED_ROWS]  # a network that has forgotten it all is told again
    assert fired(searched(again)) == [("search_not_learned", len(again))]
    assert fired(searched([0.0] * 100, information=0.01)) == []  # it finds nothing


def test_a_trend_needs_a_full_window_of_measured_returns() -> None:
    short = series(RETURN, [1.0] * (WINDOW - 1))
    assert fired(short + series(RETURN, [None, math.nan])) == [("not_finite", WINDOW + 1)]
    assert fired(short + series(RETURN, [None, 1.0])) == [("return_flat", WINDOW + 1)]


def test_a_trend_says_how_much_was_gained() -> None:
    (flat,) = alarms(series(RETURN, [1.0, 2.0] * (WINDOW // 2)))
    assert flat.message.startswith(f"{RETURN} gained 0.0667 (standard error 0.26) in 30 rows: ")
    assert flat.severity is Severity.WARNING
    (fall,) = alarms(series(RETURN, [float(-row) for row in range(1, WINDOW + 1)]))
    assert "moved between -30 and -1 and gained -15 (standard error 0.26)" in fall.message


@pytest.mark.parametrize(
    ("speeds", "row"),
    [
        ([100] * 5 + [69] * 3, 8),
        ([100] * 20 + [69] * 30, 23),
        ([100] * 5 + [69, 69, 70, 69, 69, 71], None),  # never three in a row
        ([100] * 5 + [70] * 3, None),  # the limit itself
        ([100] * 4 + [69] * 3, None),  # the first slow row has too few before it
        ([100] * 4 + [69] * 4, 8),
        ([100 - row for row in range(30)], None),
        ([1_000] + [100] * 20, None),  # one fast row is not what is usual
    ],
)
def test_throughput_falls_when_three_rows_are_slow(
    speeds: Sequence[float], row: int | None
) -> None:
    rows = series(SPEED, map(float, speeds))
    assert fired(rows) == ([] if row is None else [("throughput_falling", row)])


def test_a_fall_of_throughput_says_from_what_to_what() -> None:
    (alarm,) = alarms(series(SPEED, [20_000.0] * 10 + [9_000.0] * 3))
    assert alarm.message.startswith(f"{SPEED} 9,000 is below 70% of 20,000 for 3 rows: ")
    assert alarm.severity is Severity.WARNING


def sick_rows() -> list[Row]:
    """A run with every alarm."""
    rows = healthy_rows(150)
    for number, row in enumerate(rows):
        if number > 60:
            row[RETURN] = swings(20, 4.0)(number)
        if number > 90:
            row[RETURN] = random.Random(number).gauss(0, 1)
            row |= {DIVERGENCE: 0.35, INFORMATION: 0.4}
    for name, number, value in [
        (ENTROPY, 10, 0.04),
        (ENTROPY, 20, 0.01),
        (KL, 30, 0.07),
        (KL, 40, 0.09),
        (CLIP, 50, 0.32),
        (CLIP, 60, 0.4),
        ("train/grad_norm", 62, math.nan),
        (RETURN, 70, math.inf),
        (RETURN, 75, None),
        (SPEED, 130, 1e4),
        (SPEED, 131, 1e4),
        (SPEED, 132, 1e4),
    ]:
        rows[number][name] = value
    return rows


def test_evaluations_in_between_change_nothing() -> None:
    plain, mixed = Health(LEARNER_METRICS), Health(LEARNER_METRICS)
    evaluation = {"update": 7, "timesteps": 7e6, "eval/mean_return": 1.0, "eval/win_rate": None}
    told = []
    for update, row in enumerate(sick_rows()):
        told += plain.check(update, row)
        assert mixed.check(update, evaluation) == []
        told_too = mixed.check(update, row)
        assert told_too == [alarm for alarm in told if alarm.update == update]
    assert {alarm.name for alarm in told} == {rule.name for rule in alarms_of(LEARNER_METRICS)}


@pytest.mark.parametrize("stopped_after", [0, 62, 76, 131])
def test_a_resumed_run_goes_on_from_its_lines_of_metrics(
    tmp_path: Path, stopped_after: int
) -> None:
    rows = sick_rows()
    run = RunFolder.create(tmp_path, "run", None)
    for update, row in enumerate(rows[:stopped_after]):
        run.add_metrics({"update": update, "timesteps": 100 * update, **row})

    one_go, resumed = Health(LEARNER_METRICS), Health(LEARNER_METRICS)
    for update, line in enumerate(read_metrics(run.path)):
        assert resumed.check(line["update"], parse_row(line)) == one_go.check(update, rows[update])
    for update in range(stopped_after, len(rows)):
        assert resumed.check(update, rows[update]) == one_go.check(update, rows[update])


def test_null_in_a_line_was_a_number_that_is_not_finite() -> None:
    line = json.loads('{"update": 3, "train/entropy": null, "train/approx_kl": 0.02}')
    row = parse_row(line)
    assert row["train/approx_kl"] == 0.02
    assert [alarm.name for alarm in Health(LEARNER_METRICS).check(3, row)] == ["not_finite"]
