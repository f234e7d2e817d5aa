"""The table of a terminal, and the command."""

import contextlib
import json
import os
import pty
import runpy
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from monitored_runs import append, row_of, write_run
from paths import ROOT
from rich.console import Console

from hackmatrix.cli.main import main
from hackmatrix.ui.monitor.metric_groups import metric_of
from hackmatrix.ui.monitor.runs import Runs
from hackmatrix.ui.monitor.terminal import duration, screen, sparkline

pytestmark = pytest.mark.thorough

RETURN = "train/mean_episode_return"


def shown(words: Sequence[Path], width: int = 100, height: int | None = None) -> str:
    runs = Runs([str(word) for word in words], Path())
    runs.read_all()
    console = Console(width=width, file=open(os.devnull, "w"), record=True)  # noqa: SIM115
    console.print(screen(runs, width, height))
    console.file.close()
    return console.export_text()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    rows = [
        row_of(10, mean_episode_return=1.0, approx_kl=0.01),
        row_of(20, mean_episode_return=2.5, approx_kl=0.07, alarms=["kl_high"]),
        row_of(20, **{"eval/mean_return": 4.0}),
    ]
    return write_run(tmp_path / "my-run", rows)


def test_a_run_is_a_table_with_sparklines_and_alarms(run: Path) -> None:
    text = shown([run])
    assert "my-run" in text
    assert " 20%  update 20  20,000 of 100,000 steps" in text
    assert "! update 20  kl_high  train/approx_kl 0.0700" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["return", "2.50", "▁█"] in [line[:3] for line in lines]
    assert "Evaluation" in text


def test_several_runs_stand_side_by_side(run: Path) -> None:
    other = write_run(run.parent / "other", [row_of(10, mean_episode_return=191.0)])
    lines = shown([run, other]).splitlines()
    line = next(line for line in lines if line.startswith("return"))
    assert line.split() == ["return", "2.50", "▁█", "191.00", "▁"]
    assert any("Learning" in line and "my-run" in line and "other" in line for line in lines)


def test_columns_tell_runs_apart_whose_long_names_differ_at_their_ends(run: Path) -> None:
    rows = [row_of(10, mean_episode_return=191.0)]
    others = [write_run(run.parent / f"wide-net-lr-0.001-seed-{seed}", rows) for seed in range(2)]
    heads = next(line for line in shown(others, 60).splitlines() if line.startswith("Learning"))
    assert [head[-6:] for head in heads.split()[1:]] == ["seed-0", "seed-1"]


def test_what_has_no_room_is_named(run: Path) -> None:
    assert "not shown: Evaluation" not in shown([run], height=12)
    assert "not shown: Evaluation" in shown([run], width=40, height=10)
    many = [write_run(run.parent / f"run{i}", [row_of(1, entropy=1.0)]) for i in range(9)]
    assert "too narrow for it" in shown(many, width=80)


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal(run: Path, width: int) -> None:
    assert max(map(len, shown([run], width=width).splitlines())) <= width


def test_sparklines_are_medians_over_their_own_range_in_the_colour_of_health() -> None:
    values = np.r_[np.full(10, 0.01), np.full(10, 0.07), np.full(10, 0.09)]
    values[5] = 1e9  # a spike is no median
    text = sparkline(values, 3, metric_of("train/approx_kl"))
    assert text.plain == "▁▇█"
    assert [str(span.style) for span in text.spans] == ["bright_blue", "yellow", "red"]
    assert sparkline(np.array([]), 3, metric_of(RETURN)).plain == ""
    assert sparkline(np.full(9, 2.0), 3, metric_of(RETURN)).plain == "▁▁▁"


def test_durations_are_said_in_two_units() -> None:
    said = [duration(seconds) for seconds in (5, 90, 3700, 50 * 3600)]
    assert said == ["5 s", "2 min", "1 h 2 min", "2 days"]


def test_what_a_run_does_not_have_is_a_dash_or_said(tmp_path: Path) -> None:
    rows = [row_of(10, **{"reward/kills": 1.0}), row_of(5, entropy=0.5)]
    lines = [line.split() for line in shown([write_run(tmp_path / "run", rows)]).splitlines()]
    assert ["kills", "-"] in [line[-2:] for line in lines]
    assert "no rows yet" in shown([write_run(tmp_path / "new")])


def test_a_pipe_gets_the_table_once(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor", str(run)]) == 0
    assert "kl_high" in capsys.readouterr().out
    assert main(["monitor", "my-run", "--once", "--log-dir", str(run.parent)]) == 0
    assert "kl_high" in capsys.readouterr().out


def test_a_pipe_gets_all_runs(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for i in range(25):
        write_run(run.parent / f"run{i}", [row_of(1, entropy=float(i), approx_kl=None)])
    assert main(["monitor", str(run.parent)]) == 0
    said = capsys.readouterr().out
    assert "24 of 26 runs are shown" in said
    assert "too narrow for it" not in said
    assert main(["monitor", str(run.parent), "--once", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["notice"].startswith("24 of 26 runs are shown")
    assert len(told["runs"]) == 24
    one = next(each for each in told["runs"] if each["name"] == "run7")
    assert one["metrics"] == {"train/approx_kl": None, "train/entropy": 7}
    assert one["update"] == 1
    assert [alarm["name"] for alarm in one["alarms"]] == ["not_finite"]


@pytest.mark.parametrize("has_logs", [False, True])
def test_the_script_of_other_trainers_is_understood(
    has_logs: bool, run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if has_logs:  # as a run of --output-dir
        (run / "logs").mkdir()
    monkeypatch.setattr(sys, "path", list(sys.path))
    words = ["monitor_training.py", "--log-dir", str(run / "logs"), "--refresh-interval", "5"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "scripts" / "monitor_training.py"), run_name="__main__")
    assert ended.value.code == 0
    assert "my-run" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nothing"], "nothing: no such run"),
        (["--log-dir", "nothing"], "no such folder of runs"),
        (["--refresh-interval", "0"], "--refresh-interval: must be at least 0.2"),
        (["--page", "--once"], "only one of --page and --once"),
        (["--page", "--json"], "only one of --page and --once, or --json"),
        (["--refresh", "5"], "did you mean"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_2(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["monitor", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert told in error


def test_neither_the_table_nor_the_page_imports_jax(run: Path) -> None:
    code = (
        "import sys\nfrom hackmatrix.cli.main import main\nimport hackmatrix.ui.monitor.server\n"
        "main(['monitor', sys.argv[1]])\nassert not {'jax', 'scipy', 'orbax'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, run], check=True, capture_output=True)


def read_until(handle: int, wanted: bytes, seconds: float = 60) -> bytes:
    """Reads a terminal until it shows a text."""
    seen, ends = b"", time.monotonic() + seconds
    while wanted not in seen:
        assert time.monotonic() < ends, seen[-2000:]
        if select.select([handle], [], [], 0.1)[0]:
            seen += os.read(handle, 65536)
    return seen


MARKS = "\x1b\x07\x9b\u202e"
HOSTILE = "\x1b]0;mine\x07\x9b31m\u202e"


def test_names_do_not_steer_the_terminal(tmp_path: Path) -> None:
    rows = [row_of(1, **{f"odd{HOSTILE}/key{HOSTILE}": 1.0, "entropy": 0.5})]
    rows[0]["alarms"] = [f"alarm{HOSTILE}"]
    run = write_run(tmp_path / f"run{HOSTILE}\nb\tc", rows)
    other = write_run(tmp_path / f"other{HOSTILE}", rows)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "hackmatrix", "monitor", str(run), str(other), "--once"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200", "PYTHONUTF8": "1"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, env=environment) as process:
        os.close(theirs)
        seen = b""
        with contextlib.suppress(OSError):  # raised when the process has ended
            while piece := os.read(ours, 65536):
                seen += piece
        assert process.wait(60) == 0
    os.close(ours)
    text = seen.decode()
    assert "\x1b[" in text  # the colours are ours
    for name in ("run", "other", "key", "alarm"):
        assert f"{name}?]0;mine" in text
    assert "?b?c" in text
    for mark in ("\x1b]", *MARKS[1:]):
        assert mark not in text


@pytest.mark.parametrize(
    "words",
    [
        ["monitor", "NAME"],
        ["evaluate", "NAME.npz"],
        ["watch", "NAME.npz", "--no-open"],
        ["checkpoint", "verify", "RUN", "--no-evaluate"],
        ["checkpoint", "list", "RUN"],
        ["NAME"],
    ],
)
def test_nothing_that_is_printed_steers_the_terminal(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / f"run{HOSTILE}", [row_of(1)])
    (run / f"params{HOSTILE}.npz").write_bytes(b"")
    names = {"NAME": f"x{HOSTILE}", "NAME.npz": f"x{HOSTILE}.npz", "RUN": str(run)}
    main([names.get(word, word) for word in words])
    said = capsys.readouterr()
    assert "?]0;mine??31m?" in said.out + said.err
    assert not set(MARKS) & set(said.out + said.err)


def test_a_terminal_follows_the_run_until_ctrl_c(run: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "hackmatrix", "monitor", str(run), "--refresh-interval", "0.2"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
    # A suite started in the background ignores SIGINT, and the process would inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, env=environment)
    signal.signal(signal.SIGINT, before)
    with process:
        os.close(theirs)
        read_until(ours, b"2.50")
        append(run, row_of(30, mean_episode_return=7.25))
        read_until(ours, b"7.25")
        process.send_signal(signal.SIGINT)
        read_until(ours, b"7.25")  # the last table stays on the terminal
        assert process.wait(60) == 0
    os.close(ours)
