"""Trackers: what they are told is in their files, and whatever they do, the run goes on."""

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from hackmatrix.environments.hackmatrix.metric_table import METRICS
from hackmatrix.runs.trackers import TrackedRun, Trackers, fan_out
from hackmatrix.runs.trackers import tracker as trackers_module
from hackmatrix.runs.trackers.tracker import Unavailable

Said = list[str]


class Recorder:
    """A tracker that keeps what it is told."""

    name = "recorder"

    def __init__(self) -> None:
        self.told: list[Any] = []

    def start(self, say: Callable[[str], None]) -> None:
        self.told.append("start")

    def log(self, update: int, timesteps: int, row: Mapping[str, float], when: float) -> None:
        self.told.append((update, timesteps, dict(row)))

    def alarm(self, update: int, name: str, message: str) -> None:
        self.told.append((update, name, message))

    def artifact(self, update: int, files: Sequence[Path]) -> None:
        self.told.append((update, *files))

    def finish(self, failed: bool) -> None:
        self.told.append("failed" if failed else "finished")


def track(
    run: Path, rows: Mapping[int, Mapping[str, Any]], update: int = 0, **config: Any
) -> list[str]:
    said: Said = []
    run.mkdir(exist_ok=True)
    with open_board(run, said.append, update, **config) as all_of_them:
        for number, row in rows.items():
            all_of_them.log(number, number * 32, row)
    return said


def open_board(
    run: Path, say: Callable[[str], None] = print, update: int = 0, **config: Any
) -> Trackers:
    """TensorBoard alone."""
    return Trackers.open(TrackedRun(run, {"wandb": False, **config}, update), say)


def events_of(run: Path) -> EventAccumulator:
    events = EventAccumulator(str(run / "events"), size_guidance={"scalars": 0, "tensors": 0})
    return events.Reload()


def scalars_of(run: Path, name: str) -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in events_of(run).Scalars(name)]


def texts_of(run: Path, name: str) -> list[tuple[int, str]]:
    return [
        (event.step, event.tensor_proto.string_val[0].decode())
        for event in events_of(run).Tensors(f"{name}/text_summary")
    ]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_rows_settings_and_alarms_are_in_the_events(tmp_path: Path) -> None:
    names = [metric.name for metric in METRICS]
    rows = {
        update: {name: np.float32(update + index / 7) for index, name in enumerate(names)}
        for update in (10, 20)
    }
    odd = {"nan": math.nan, "inf": math.inf, "none": None, "alarms": ["kl_high"], "count": 3}
    with open_board(tmp_path, lr=0.5) as all_of_them:
        for update, row in {**rows, 30: odd, 40: {"none": 1.5}}.items():
            all_of_them.log(update, update * 32, row)
        all_of_them.alarm(50, "kl_high", "too fast")
    assert set(events_of(tmp_path).Tags()["scalars"]) == {*names, *odd} - {"alarms"}
    for name in names:
        expected = [(update, float(row[name])) for update, row in rows.items()]
        assert scalars_of(tmp_path, name) == expected
    assert scalars_of(tmp_path, "none") == [(40, 1.5)]
    assert scalars_of(tmp_path, "inf") == [(30, math.inf)]
    assert scalars_of(tmp_path, "count") == [(30, 3.0)]
    assert [math.isnan(value) for _, value in scalars_of(tmp_path, "nan")] == [True]
    assert texts_of(tmp_path, "alarm/kl_high") == [(50, "too fast")]
    ((step, text),) = texts_of(tmp_path, "config")
    assert step == 0
    assert "| lr | 0.5 |" in text


def test_a_run_that_goes_on_shows_no_points_of_the_attempt_before(tmp_path: Path) -> None:
    run = tmp_path / "run"
    track(run, {10: {"a": 1.0}, 20: {"a": 2.0}, 30: {"a": 3.0, "seldom": 1.0}, 40: {"a": 4.0}})
    before = events_of(run)
    assert len(before.Scalars("seldom")) == 1
    track(run, {30: {"a": 30.0}}, update=20)
    assert scalars_of(run, "a") == [(10, 1.0), (20, 2.0), (30, 30.0)]
    track(run, {20: {"a": 20.0}}, update=10)
    for events in (before.Reload(), events_of(run)):  # a reader that was open, and a new one
        assert [(e.step, e.value) for e in events.Scalars("a")] == [(10, 1.0), (20, 20.0)]
        assert events.Scalars("seldom") == []
    assert len(list((run / "events").iterdir())) == 3


@pytest.mark.parametrize("missing", [1, 20])
def test_a_file_that_a_kill_has_cut_short_is_no_trouble(tmp_path: Path, missing: int) -> None:
    track(tmp_path, {10: {"a": 1.0}, 20: {"a": 2.0}})
    (file,) = (tmp_path / "events").iterdir()
    file.write_bytes(file.read_bytes()[:-missing])
    assert track(tmp_path, {30: {"a": 3.0}}, update=25) == []
    assert scalars_of(tmp_path, "a") == [(10, 1.0), (30, 3.0)]


def test_a_row_can_be_seen_at_once(tmp_path: Path) -> None:
    with open_board(tmp_path) as all_of_them:
        for update in (1, 2):
            all_of_them.log(update, update, {"a": 1.0})
            wait_for(lambda: bool((tmp_path / "events").is_dir()))
            wait_for(lambda: "a" in events_of(tmp_path).Tags()["scalars"])
            wait_for(lambda: len(scalars_of(tmp_path, "a")) == update)  # noqa: B023


def test_event_files_that_cannot_be_written_are_said_once(tmp_path: Path) -> None:
    (tmp_path / "events").touch()
    (line,) = track(tmp_path, {update: {"a": 1.0} for update in range(5)})
    assert line.startswith("TensorBoard: ")
    assert line.endswith(
        "File exists: '" + str(tmp_path / "events") + "'; it is off for the rest of this run"
    )


@pytest.mark.parametrize(
    ("failing", "error"),
    [
        ("start", ValueError("no\n such thing")),
        ("start", Unavailable("not installed")),
        ("log", SystemExit(1)),
        ("alarm", KeyError()),
        ("artifact", ValueError("no")),
        ("finish", ValueError("no")),
    ],
)
def test_a_tracker_that_raises_is_off_and_others_go_on(failing: str, error: BaseException) -> None:
    class Raising(Recorder):
        name = "raising"

    def fail(*_: object) -> None:
        raise error

    said: Said = []
    raising, other = Raising(), Recorder()
    setattr(raising, failing, fail)
    with Trackers([raising, other], said.append) as trackers:
        for update in range(3):
            trackers.log(update, update, {"a": update})
            trackers.alarm(update, "name", "message")
            trackers.artifact(update, [Path("file")])
    what = " ".join(str(error).split()) or type(error).__name__
    off = "" if isinstance(error, Unavailable) else "; it is off for the rest of this run"
    assert said == [f"raising: {what}{off}"]
    rows = [(u, u, {"a": u}) for u in range(3)]
    assert [told for told in other.told if told in rows] == rows
    assert other.told[0] == "start"
    assert other.told[-1] == "finished"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("hanging", ["start", "log", "finish"])
def test_a_tracker_that_hangs_is_left_behind(hanging: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trackers_module, "QUIET_SECONDS", 0.1)
    monkeypatch.setattr(trackers_module, "END_SECONDS", 0.2)
    for_ever = threading.Event()

    class Hanging(Recorder):
        name = "hanging"

    said: Said = []
    tracker, other = Hanging(), Recorder()
    setattr(tracker, hanging, lambda *_: for_ever.wait())
    both = Trackers([tracker, other], said.append)
    both.log(1, 1, {"a": 1.0})
    both.close()
    assert said == [
        "hanging: takes what is left, for 0 s at most",
        "hanging: does not answer, and is left behind",
    ]
    assert other.told == ["start", (1, 1, {"a": 1.0}), "finished"]
    for_ever.set()  # what it says when nobody waits any more is not heard


def test_an_end_that_takes_its_time_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trackers_module, "QUIET_SECONDS", 0.05)

    class Slow(Recorder):
        def finish(self, failed: bool) -> None:
            time.sleep(0.5)
            super().finish(failed)

    said: Said = []
    tracker = Slow()
    with pytest.raises(ZeroDivisionError), Trackers([tracker], said.append):
        raise ZeroDivisionError
    assert tracker.told == ["start", "failed"]
    assert said == ["recorder: takes what is left, for 40 s at most"]


def test_rows_that_a_tracker_cannot_take_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trackers_module, "LIMIT", 3)
    go = threading.Event()

    class Slow(Recorder):
        def start(self, say: Callable[[str], None]) -> None:
            go.wait()

    said: Said = []
    tracker = Slow()
    with Trackers([tracker], said.append) as trackers:
        for update in range(10):
            trackers.log(update, update, {})
        go.set()
        wait_for(lambda: len(tracker.told) == 3)
        trackers.log(10, 10, {})
    assert tracker.told == [(0, 0, {}), (1, 1, {}), (2, 2, {}), (10, 10, {}), "finished"]
    assert said == ["recorder: 3 rows behind; what it can't take is left out"]


def test_a_tracker_starts_with_what_it_is_told_first_or_when_all_are_started() -> None:
    def threads() -> list[str]:
        return [thread.name for thread in threading.enumerate() if "recorder" in thread.name]

    told, started = Recorder(), Recorder()
    with Trackers([told], print) as one, Trackers([started], print) as other:
        assert threads() == []
        one.log(1, 1, {})
        assert len(threads()) == 1
        other.start()
        other.start()
        wait_for(lambda: started.told == ["start"])
    assert told.told == ["start", (1, 1, {}), "finished"]
    assert started.told == ["start", "finished"]


def test_a_tracker_of_ones_own_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Recorder] = []

    class Own(Recorder):
        def __init__(self, run: TrackedRun) -> None:
            super().__init__()
            self.told.append(run.folder.name)
            made.append(self)

    monkeypatch.setitem(fan_out.TRACKERS, "own", Own)
    config = {"tensorboard": False, "wandb": False}
    with Trackers.open(TrackedRun(tmp_path / "run", config), print) as all_of_them:
        all_of_them.log(1, 1, {"a": 1.0})
    Trackers.open(TrackedRun(tmp_path / "run", config | {"own": False}), print).close()
    assert [each.told for each in made] == [["run", "start", (1, 1, {"a": 1.0}), "finished"]]
