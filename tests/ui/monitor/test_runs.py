"""Runs are found, read while they are written, and grouped by what they try."""

import json
import math
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from monitored_runs import append, lines_of, row_of, save_agent, write_run

from hackmatrix.core.errors import UserError
from hackmatrix.environments.interface.metric import Severity
from hackmatrix.learning.reporting.alarms import alarms_of
from hackmatrix.learning.reporting.metrics import LEARNER_METRICS
from hackmatrix.ui.monitor.answers import overview
from hackmatrix.ui.monitor.curves import MetricColumns
from hackmatrix.ui.monitor.metric_groups import in_groups
from hackmatrix.ui.monitor.run import MonitoredRun
from hackmatrix.ui.monitor.runs import Runs, find_runs
from hackmatrix.ui.monitor.status import Condition, axis_positions, health, positions, progress_of

RETURN = "train/mean_episode_return"


def read(path: Path) -> MonitoredRun:
    run = MonitoredRun(path)
    while run.read():
        pass
    return run


def columns(run: MonitoredRun) -> dict[str, list[float]]:
    return {name: run.table.column(name).tolist() for name in run.table}


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from("ab"), st.floats(-9, 9))))
def test_a_row_of_an_earlier_update_starts_over_from_there(
    rows: list[tuple[int, str, float]],
) -> None:
    table, kept = MetricColumns(), dict[int, dict[str, float]]()
    for update, name, value in rows:
        table.add(update, {name: value})
        if kept and update < max(kept):
            kept = {at: row for at, row in kept.items() if at < update}
        kept.setdefault(update, {})[name] = value
    assert list(table.updates) == sorted(kept)
    for name in table:
        expected = [kept[update].get(name, math.nan) for update in sorted(kept)]
        np.testing.assert_array_equal(table.column(name), expected)


def test_what_was_not_measured_is_nan_and_what_is_not_finite_is_infinite() -> None:
    table = MetricColumns()
    table.add(1, {"a": 1.0})
    table.add(2, {"a": None, "b": math.nan})
    np.testing.assert_array_equal(table.column("a"), [1, math.inf])
    np.testing.assert_array_equal(table.column("b"), [math.nan, math.inf])
    assert table.last("a") == (2, math.inf)
    assert table.last("c") is None


def test_rows_are_seen_when_they_are_written(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", [row_of(10, mean_episode_return=1.0)])
    run = read(path)
    version = run.version
    run.read()
    assert run.version == version
    append(path, row_of(20, mean_episode_return=2.0), row_of(20, **{"eval/mean_return": 5.0}))
    run.read()
    assert run.version > version
    assert columns(run)[RETURN] == [1, 2]
    assert run.table.last("eval/mean_return") == (20, 5)


def test_a_rewound_run_shows_only_what_it_has(tmp_path: Path) -> None:
    rows = [row_of(update, mean_episode_return=1.0) for update in (10, 20, 30)]
    rows[2]["alarms"] = ["kl_high"]
    path = write_run(tmp_path / "run", rows)
    run = read(path)
    assert len(run.alarms) == 1
    partial = path / ".saving-metrics"
    partial.write_bytes(lines_of([*rows[:1], row_of(15, mean_episode_return=7.0)]))
    partial.replace(path / "metrics.jsonl")
    run.read()
    assert list(run.table.updates) == [10, 15]
    assert columns(run)[RETURN] == [1, 7]
    assert run.alarms == []


def test_lines_that_are_no_rows_are_passed_over(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run")
    lines = b'\nnull\n{"update": "x"}\n\xff\xfe\n{"update": 3, "odd/key": 1}\n{"upd'
    (path / "metrics.jsonl").write_bytes(lines)
    (path / "config.yaml").write_text("{: what")
    run = read(path)
    assert list(run.table.updates) == [3]
    assert list(in_groups(set(run.table))) == ["odd"]


ALIASES = "\n".join(
    ["a0: &a0 [lol, lol, lol]"] + [f"a{i}: &a{i} [{f'*a{i - 1}, ' * 9}]" for i in range(1, 13)]
)


@pytest.mark.timeout(120)  # for a pipe or a bomb one would wait for ever
@pytest.mark.parametrize(
    "config",
    [
        "training: {seed: !!bool x}",
        "[" * 5000,
        ALIASES,
        f"training: {{total_timesteps: {'9' * 400}, num_seeds: 0x{'f' * 9000}}}",
        f"training: {{total_timesteps: {'9' * 90}, num_seeds: {'9' * 90}}}",
        "{" + ", ".join(f"a{i}: 1" for i in range(100_000)) + "}",
        None,
    ],
    ids=["tag", "depth", "aliases", "long numbers", "large numbers", "size", "pipe"],
)
def test_no_configuration_ends_the_reading_or_holds_it_up(
    config: str | None, tmp_path: Path
) -> None:
    path = write_run(tmp_path / "run", [row_of(10, mean_episode_return=1.0)])
    (path / "config.yaml").unlink()
    if config is None:
        os.mkfifo(path / "config.yaml")
    else:
        (path / "config.yaml").write_text(config)
    runs = Runs([str(path)], tmp_path)
    runs.read_all()
    append(path, row_of(20, mean_episode_return=2.0))
    runs.read_all()
    assert columns(runs.runs[0])[RETURN] == [1, 2]
    json.dumps(overview(runs), allow_nan=False)


def test_what_is_not_finite_is_an_alarm_where_the_run_did_not_raise_one(tmp_path: Path) -> None:
    rows = [
        row_of(10, grad_norm=1.0),
        row_of(20, grad_norm=None, entropy=math.nan),
        row_of(30, grad_norm=None),
        row_of(40, grad_norm=1.0),
        row_of(50, grad_norm=None, alarms=["not_finite"]),
    ]
    run = read(write_run(tmp_path / "run", rows))
    assert [(a.name, a.update, a.severity) for a in run.alarms] == [
        ("not_finite", 20, Severity.CRITICAL),
        ("not_finite", 50, Severity.CRITICAL),
    ]
    assert run.alarms[0].metric == "train/grad_norm"
    assert run.alarms[0].message.startswith("train/grad_norm and 1 more NaN or infinite: the run")


def test_runs_that_are_not_shown_are_counted(tmp_path: Path) -> None:
    for i in range(30):
        write_run(tmp_path / f"run{i}")
    runs = Runs([str(tmp_path)], tmp_path)
    assert len(runs.runs) == 24
    assert runs.notice == "24 of 30 runs are shown, the newest; name others to see them"
    write_run(tmp_path / "new")
    runs.find_more()
    runs.find_more()
    assert len(runs.runs) == 25
    assert runs.notice == "25 of 31 runs are shown, the newest; name others to see them"
    assert Runs([str(tmp_path / "new")], tmp_path).notice is None


def test_agents_of_one_run_have_their_own_rows(tmp_path: Path) -> None:
    row = row_of(10, mean_episode_return=2.0, steps_per_second=1000.0)
    row["agents"] = [{"seed": 4, RETURN: 1.0}, {"seed": 5, RETURN: 3.0}]
    run = read(write_run(tmp_path / "run", [row], num_seeds=2))
    assert run.num_seeds == 2
    last = {seed: table.last(RETURN) for seed, table in run.tables(RETURN).items()}
    assert last == {4: (10, 1.0), 5: (10, 3.0)}
    assert list(run.tables("train/steps_per_second")) == [None]
    assert positions(run, "hours").tolist() == [2 * 10_000 / 1000 / 3600]


def test_alarms_say_what_was_seen_and_what_to_do(tmp_path: Path) -> None:
    rows = [
        row_of(10, approx_kl=0.07, alarms=["kl_high"]),
        row_of(20, approx_kl=0.01, alarms=["return_flat", "of_my_own"]),
    ]
    run = read(write_run(tmp_path / "run", rows))
    first, second, third = run.alarms
    assert first[:4] == ("kl_high", Severity.WARNING, 10, "train/approx_kl")
    assert first.message.startswith("train/approx_kl 0.0700: the policy changes fast")
    assert second.metric == RETURN
    assert "learning has stopped" in second.message
    assert third.message == "of my own"


def test_every_alarm_of_the_learner_is_known(tmp_path: Path) -> None:
    names = [rule.name for rule in alarms_of(LEARNER_METRICS)]
    run = read(write_run(tmp_path / "run", [row_of(10, alarms=names)]))
    assert [alarm.name for alarm in run.alarms] == names
    assert all(alarm.message != alarm.name.replace("_", " ") for alarm in run.alarms)


def test_health_is_that_of_the_last_values(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", [row_of(10, approx_kl=0.07)])
    run = read(path)
    assert health(run) is Severity.WARNING
    append(path, row_of(20, approx_kl=0.01))
    run.read()
    assert health(run) is None
    append(path, row_of(30, grad_norm=None))
    run.read()
    assert health(run) is Severity.CRITICAL


def test_where_a_run_stands(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", updates=20)
    run = read(path)
    assert progress_of(run).condition is Condition.WAITING
    append(path, row_of(10, steps_per_second=100.0))
    run.read()
    at = progress_of(run)
    assert at.condition is Condition.RUNNING
    assert (at.update, at.steps, at.total, at.seconds_left) == (10, 10_000, 20_000, 100.0)
    long_ago = time.time() - 400  # a row takes 100 seconds
    os.utime(path / "metrics.jsonl", (long_ago, long_ago))
    assert progress_of(run).condition is Condition.SILENT
    append(path, row_of(20, steps_per_second=100.0))
    run.read()
    assert progress_of(run).condition is Condition.FINISHED
    shutil.rmtree(path)
    run.read()
    assert progress_of(run).condition is Condition.GONE
    assert progress_of(run).update == 20


def test_updates_have_places_on_every_axis(tmp_path: Path) -> None:
    rows = [row_of(10, steps_per_second=100.0), row_of(20), row_of(30, steps_per_second=100.0)]
    run = read(write_run(tmp_path / "run", rows))
    (found,) = axis_positions(run, [25])
    assert found == {"updates": 25, "steps": 25_000, "hours": pytest.approx(250 / 3600)}
    assert axis_positions(MonitoredRun(tmp_path / "none"), [1])[0]["steps"] == 0


def test_the_newest_the_best_and_the_final_agent_can_be_watched(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", [row_of(10)])
    for update in (10, 30):
        save_agent(path, update)
    save_agent(path, 30, "final_params")
    save_agent(path, 20, "best_params")
    saved = MonitoredRun(path).saved_params()
    assert [each.path.name for each in saved] == [
        "params_30.npz",
        "best_params.npz",
        "params_10.npz",
    ]
    assert [(each.update, each.label) for each in saved] == [(30, "final"), (20, "best"), (10, "")]


def test_runs_are_named_by_folder_file_or_name(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    old, new = (write_run(runs / name, [row_of(1)]) for name in ("old", "new"))
    for name in ("metrics.jsonl", "config.yaml"):
        os.utime(old / name, (1, 1))
    assert find_runs([], runs) == [new]
    assert find_runs([], old) == [old]
    assert find_runs(["old"], runs) == [old]
    assert find_runs([str(old), str(old / "metrics.jsonl")], tmp_path) == [old]
    assert find_runs([str(runs)], tmp_path) == [new, old]


@pytest.mark.parametrize("words", [[], ["runs"], ["runs/nothing"]])
def test_what_is_no_run_is_told_in_one_line(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "runs" / "empty").mkdir(parents=True)
    with pytest.raises(UserError, match=r"no .*run") as told:
        find_runs([str(tmp_path / word) for word in words], tmp_path / "runs")
    assert "\n" not in str(told.value)


def test_runs_that_differ_in_their_seeds_alone_are_one_group(tmp_path: Path) -> None:
    write_run(tmp_path / "best-0", seed=0, checkpoint_dir="here")
    write_run(tmp_path / "best-1", seed=1, checkpoint_dir="there")
    write_run(tmp_path / "other", seed=0, lr=1e-3)
    runs = Runs([str(tmp_path)], tmp_path)
    runs.read_all()
    groups = {group.name: {run.name for run in group.runs} for group in runs.groups()}
    assert groups == {"best-*": {"best-0", "best-1"}, "other": {"other"}}
