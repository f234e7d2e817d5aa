"""A run's console output, on a terminal and piped; the ways to stop it."""

import errno
import io
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hackmatrix.environments.hackmatrix.metric_table import METRICS
from hackmatrix.environments.interface.metric import Metric, Over, Shown
from hackmatrix.game.rules.rewards import REWARD_PARTS
from hackmatrix.learning.reporting.console import Console
from hackmatrix.learning.reporting.metrics import LEARNER_METRICS
from hackmatrix.learning.run.stop import StopRequest

ALL = (*LEARNER_METRICS, *METRICS)
ROW = {
    "train/steps_per_second": 12_345.6,
    "train/mean_episode_return": -1.234,
    "stats/mean_stage": None,
    "train/entropy": 1.5,
    "train/approx_kl": 0.01234,
    "train/vf_loss": 3.0,
}
SUMMARY = "steps/s 12,346  return -1.23  entropy 1.500  KL 0.0123  stage -"

GAME_ROW = dict.fromkeys((metric.name for metric in ALL), 0.0) | {
    "train/mean_episode_return": 1_234.5,
    "train/mean_episode_length": 71.34,
    "train/num_episodes": 1_234_567.0,
    "train/entropy": 1.25,
    "train/approx_kl": 0.0078,
    "train/clip_frac": 0.0895,
    "train/explained_variance": -0.447,
    "train/total_loss": 0.0267,
    "train/pg_loss": -0.0170,
    "train/vf_loss": 0.1015,
    "train/grad_norm": 12_345.6,
    "train/learning_rate": 0.00025,
    "train/mean_reward": 0.01825,
    "train/steps_per_second": 17_337.6,
    "stats/mean_stage": 2.464,
    "stats/highest_stage": 7.0,
    "stats/win_rate": 0.0123,
    "stats/mean_score": 3.5,
    "stats/programs_owned": 4.25,
    "actions/move_frac": 0.91,
    "actions/siphon_frac": 0.055,
    "actions/program_frac": 0.035,
    "actions/program/ATK+": 0.021,
    "actions/program/ANTI-V": 0.009,
    "actions/program/WAIT": 0.004,
    "actions/program/UNDO": 0.001,
    "reward/damage_penalty": -0.0505,
    "reward/stage_completion": 0.0363,
    "reward/distance_shaping": 0.0229,
    "reward/siphon_death_penalty": -0.0001,
}
GAME_VALUES = {
    "steps/s": "17,338",
    "return": "1,234.50",
    "length": "71.3",
    "episodes": "1,234,567",
    "entropy": "1.250",
    "KL": "0.0078",
    "clipped": "8.9%",
    "expl. var.": "-0.447",
    "total loss": "0.0267",
    "policy loss": "-0.0170",
    "value loss": "0.1015",
    "grad norm": "12,345.600",
    "lr": "0.00025",
    "stage": "2.46",
    "highest": "7",
    "win rate": "1.2%",
    "score": "3.50",
    "programs": "4.25",
    "move": "91.0%",
    "siphon": "5.5%",
    "program": "3.5%",
    "ATK+": "2.1%",
    "ANTI-V": "0.9%",
    "WAIT": "0.4%",
    "UNDO": "0.1%",
    "reward": "+0.0182",
    "damage": "-0.0505",
    "stage completion": "+0.0363",
    "distance shaping": "+0.0229",
    "siphon death": "-0.0001",
}


class Terminal(io.StringIO):
    """A terminal of endless height: what was written to it, by whom, and what of that one sees."""

    def __init__(self) -> None:
        super().__init__()
        self.writers: set[threading.Thread] = set()

    def write(self, text: str) -> int:
        self.writers.add(threading.current_thread())
        return super().write(text)

    def isatty(self) -> bool:
        return True

    @property
    def seen(self) -> list[str]:
        return shown_of(self.getvalue())

    def wait_for(self, pattern: str) -> None:
        give_up = time.monotonic() + 60
        while not re.search(pattern, "\n".join(self.seen)):
            assert time.monotonic() < give_up, f"no {pattern!r} in {self.seen}"
            time.sleep(0.01)


def shown_of(text: str) -> list[str]:
    """The lines that one sees, from the first to the cursor's."""
    lines, row = [""], 0
    for piece in re.findall(r"\x1b\[[?\d;]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", text):
        if piece == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif piece == "\x1b[1A":
            row -= 1
        elif piece == "\x1b[2K":
            lines[row] = ""
        elif piece != "\r" and not piece.startswith("\x1b"):
            lines[row] += piece
    while lines and not lines[-1]:
        lines.pop()
    return [line.rstrip() for line in lines]


@pytest.fixture(autouse=True)
def _in_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    return Terminal()


def train(console: Console, row: Mapping[str, float | None]) -> None:
    """Half of a run."""
    console.begin("first-run", ALL, 100, 32_768)
    console.advance(50)
    console.log(50, row)


def speak(console: Console) -> None:
    console.say("settings [not markup] ...")
    with console:
        with console.waiting("compiling for cpu ..."):
            pass
        console.begin("first-run", ALL, 306, 32_768)
        console.advance(10)
        console.log(10, ROW)
        console.note("checkpoint", "update 10 saved")
        console.warn("entropy is low")
        console.note("checkpoint", "update 20 saved")


PLAIN = f"""\
settings [not markup] ...
compiling for cpu ...
update 10/306  327,680 steps  {SUMMARY}
checkpoint: update 10 saved
warning: entropy is low
checkpoint: update 20 saved
"""


def test_piped_there_are_plain_lines() -> None:
    file = io.StringIO()
    speak(Console(file))
    assert file.getvalue() == PLAIN


@pytest.mark.parametrize("term", ["dumb", ""])
def test_so_there_are_on_a_terminal_that_can_do_no_more(
    term: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    speak(Console(terminal))
    assert terminal.getvalue() == PLAIN


def test_so_there_are_on_a_terminal_without_the_signs() -> None:
    class Latin(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    bytes_written = io.BytesIO()
    with Console(Latin(bytes_written, encoding="iso-8859-1")) as console:
        console.say("größer → smaller")
        assert bytes_written.getvalue() == "größer ? smaller\n".encode("iso-8859-1")


def test_on_a_terminal_of_80_columns_the_whole_row_is_seen(terminal: Terminal) -> None:
    with Console(terminal) as console:
        train(console, GAME_ROW)
        console.note("checkpoint", "update 40 saved")
        console.note("evaluation", "stage 2.4")
        console.note("checkpoint", "update 50 saved")
    assert all(len(line) <= 80 for line in terminal.seen)
    assert len(terminal.seen) < 24
    assert terminal.seen[0] == "first-run  update 50/100  1,638,400 steps"
    assert re.match(r"━+╺━+ +50% 0:00:\d\d elapsed +-:--:-- left$", terminal.seen[1])
    titles = re.split("   +", terminal.seen[3].strip())
    assert titles == ["LEARNING", "GAME", "ACTIONS", "REWARD PER ACTION"]
    body = "\n".join(terminal.seen)
    for label, value in GAME_VALUES.items():
        assert re.search(rf"(^| ){re.escape(label)} +{re.escape(value)}( |$)", body, re.M), label
    assert terminal.seen[-2:] == ["checkpoint  update 50 saved", "evaluation  stage 2.4"]


def test_of_ranked_metrics_the_largest_few_are_seen(terminal: Terminal) -> None:
    parts = {f"reward/{part}": -0.01 * i for i, part in enumerate(REWARD_PARTS)}
    with Console(terminal) as console:
        train(console, parts)
    names = [line.rsplit(" ", 1)[0].strip() for line in terminal.seen[4:]]
    shown = [part.removesuffix("_penalty").replace("_", " ") for part in REWARD_PARTS[:-7:-1]]
    assert names == shown
    assert "step " not in "\n".join(terminal.seen)  # 0


def test_metrics_of_ones_own_environment_are_seen_like_others(terminal: Terminal) -> None:
    jumps = Metric("frog/jumps", Over.EPISODES, "", shown=Shown("FROG", "jumps", ".1f"))
    with Console(terminal) as console:
        console.begin("frogs", (*LEARNER_METRICS, jumps), 10, 8)
        console.log(1, ROW | {"frog/jumps": 3.25})
    assert terminal.seen[3].split() == ["LEARNING", "FROG"]  # what it does not tell has no room
    assert re.search(r"jumps +3\.2$", terminal.seen[4])
    body = "\n".join(terminal.seen)
    assert re.search(r"return +-1.23\b", body)
    assert re.search(r"length +-( |$)", body, re.M)


def test_where_there_is_no_room_groups_go_under_the_others(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    with Console(terminal) as console:
        train(console, GAME_ROW)
        console.note("checkpoint", "update 50 saved to " + 12 * "0123456789")
    assert all(len(line) <= 60 for line in terminal.seen)
    assert terminal.seen[3].split() == ["LEARNING", "GAME", "ACTIONS"]
    assert "REWARD PER ACTION" in terminal.seen
    assert terminal.seen[-1].startswith("checkpoint  update 50 saved to 0123456789")


def test_a_table_that_is_too_tall_is_cut(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINES", "10")
    with Console(terminal) as console:
        train(console, GAME_ROW)
        terminal.wait_for("LEARNING")
        assert len(terminal.seen) == 10
    assert len(terminal.seen) > 10  # at the end there is room for all


def test_the_time_that_is_left_comes_from_the_updates_of_this_process(terminal: Terminal) -> None:
    now = 1_000.0
    console = Console(terminal)
    console._table._progress.get_time = lambda: now
    with console:
        console.begin("resumed", ALL, 1_000, 100, first_update=900, first_steps=90_000)
        console.advance(900)
        now += 60
        console.advance(901)
        now += 60
        console.advance(902)
        terminal.wait_for("resumed  update 902/1,000  90,200 steps")
    assert terminal.seen[1].split("90%")[1].split() == ["0:02:00", "elapsed", "1:38:00", "left"]


def test_lines_stand_above_the_table_and_stay(terminal: Terminal) -> None:
    with Console(terminal) as console:
        console.say("before [not markup]")
        train(console, GAME_ROW)
        terminal.wait_for("LEARNING")
        console.say("in between " + 12 * "0123456789")
        console.warn("entropy is low")
        console.log(60, GAME_ROW)
    console.say("after")
    assert terminal.seen[:4] == [
        "before [not markup]",
        "in between " + 12 * "0123456789",
        "warning: entropy is low",
        "first-run  update 50/100  1,638,400 steps",
    ]
    assert terminal.seen[-1] == "after"
    assert sum("LEARNING" in line for line in terminal.seen) == 1
    assert "\x1b[33mwarning: entropy is low" in terminal.getvalue()


def test_colours_say_what_is_not_healthy_unless_there_are_to_be_none(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    sick = {"train/entropy_frac": 0.03, "train/approx_kl": 0.09, "train/grad_norm": float("nan")}
    with Console(terminal) as console:
        train(console, ROW | {"train/clip_frac": 0.2} | sick)
    text = terminal.getvalue()
    assert re.search(r"\x1b\[33m *3.0%", text)
    assert re.search(r"\x1b\[31m *0.0900", text)
    assert re.search(r"\x1b\[1;31m *nan", text)
    assert not re.search(r"\x1b\[3\dm *20.0%", text)
    monkeypatch.setenv("NO_COLOR", "1")
    with Console(plain := Terminal()) as console:
        console.warn("entropy is low")
        train(console, GAME_ROW)
    assert "LEARNING" in plain.getvalue()
    assert not re.search(r"\x1b\[[\d;]*3\dm", plain.getvalue())


def test_an_interruption_leaves_the_cursor_visible(terminal: Terminal) -> None:
    def interrupted() -> None:
        with Console(terminal) as console:
            train(console, GAME_ROW)
            terminal.wait_for("LEARNING")
            assert "\x1b[?25l" in terminal.getvalue()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    text = terminal.getvalue()
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")
    assert any("LEARNING" in line for line in terminal.seen)


def test_waiting_shows_the_seconds_and_leaves_nothing(terminal: Terminal) -> None:
    with Console(terminal) as console:
        with console.waiting("compiling for [cpu] ..."):
            terminal.wait_for(r"^\S compiling for \[cpu\] ... 0:00:01$")
        console.say("compiled")
        train(console, GAME_ROW)
        with console.waiting("evaluating"):
            terminal.wait_for(r"\n\S evaluating 0:00:\d\d$")
    assert terminal.seen[0] == "compiled"
    assert terminal.seen[1].startswith("first-run")
    assert not any("compiling" in line or "evaluating" in line for line in terminal.seen)


@pytest.mark.parametrize("on_terminal", [False, True])
def test_the_log_keeps_what_was_shown(
    on_terminal: bool, terminal: Terminal, tmp_path: Path
) -> None:
    path = tmp_path / "log.txt"
    path.write_text("an earlier session\n")
    with Console(terminal if on_terminal else io.StringIO()) as console:
        console.say("before the folder is known")
        with console.waiting("compiling ..."):
            console.keep_log(path)
        console.warn("two\nlines")
        train(console, ROW)
        console.note("checkpoint", "update 50 saved")
    first, *lines = path.read_text().splitlines()
    assert first == "an earlier session"
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  ", line) for line in lines)
    assert [line[21:] for line in lines] == [
        "before the folder is known",
        "compiling ...",
        "warning: two",
        "lines",
        f"update 50/100  1,638,400 steps  {SUMMARY}",
        "checkpoint: update 50 saved",
    ]


@pytest.mark.parametrize("path", ["/dev/full", "/nowhere/log.txt"])
def test_a_log_that_cant_be_written_is_told_once(path: str) -> None:
    file = io.StringIO()
    with Console(file) as console:
        console.say("before")
        console.keep_log(Path(path))
        console.say("one")
        console.say("two")
    before, warning, *after = file.getvalue().splitlines()
    assert before == "before"
    assert re.fullmatch(f"warning: can't write {path}: .+; the run goes on", warning)
    assert after == ["one", "two"]


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
@pytest.mark.parametrize(
    "error", [BrokenPipeError(errno.EPIPE, "closed"), ValueError("I/O on closed file")]
)
def test_whatever_happens_to_the_output_ends_nothing(
    kind: type[io.StringIO], error: Exception, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Failing(kind):  # type: ignore[valid-type, misc]
        def write(self, text: str) -> int:
            raise error

    with Console(Failing()) as console:
        console.keep_log(tmp_path / "log.txt")
        train(console, GAME_ROW)
        console.say("to nobody")
        time.sleep(0.6)  # the table is drawn, too
        console.log(60, GAME_ROW)
    assert len((tmp_path / "log.txt").read_text().splitlines()) == 3
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_a_signal_may_speak_while_a_line_is_written(kind: type[io.StringIO]) -> None:
    class Interrupted(kind):  # type: ignore[valid-type, misc]
        inside = False

        def write(self, text: str) -> int:
            assert not self.inside  # as real files demand
            if "first" in text and threading.current_thread() is threading.main_thread():
                self.inside = True
                console.say("from the handler")
                self.inside = False
            return int(super().write(text))

    file = Interrupted()
    with Console(file) as console:
        console.say("first")
        console.say("last")
    assert shown_of(file.getvalue())[:3] == ["first", "from the handler", "last"]


def test_threads_may_speak_at_once(terminal: Terminal) -> None:
    lines = [f"thread line {i}" for i in range(40)]
    with Console(terminal) as console, ThreadPoolExecutor(4) as threads:
        train(console, GAME_ROW)
        list(threads.map(console.say, lines))
    assert sorted(line for line in terminal.seen if line.startswith("thread")) == sorted(lines)


# A run as a process: what others print, then an error.
PROCESS = """
import sys, warnings
from hackmatrix.environments.interface.metric import Metric, Over, Shown
from hackmatrix.learning.reporting.console import Console
assert "jax" not in sys.modules
with Console() as console:
    metric = Metric("train/entropy", Over.UPDATES, "", shown=Shown("LEARNING", "entropy", ".3f"))
    console.begin("first-run", [metric], 100, 32_768)
    console.log(1, {"train/entropy": 1.5})
    print("printed", end=" ")
    print("by others")
    warnings.warn("a warning of others")
    print("unfinished", end="")
    raise ValueError("the end")
"""


def test_what_others_print_goes_above_the_table_and_an_error_below() -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", PROCESS], stdout=theirs, stderr=theirs)
    os.close(theirs)
    received = b""
    try:
        while part := os.read(ours, 4096):
            received += part
    except OSError:  # so ends a terminal on Linux
        pass
    assert process.wait(60) == 1
    text = received.decode()
    seen = shown_of(text)
    places = [
        next(i for i, line in enumerate(seen) if text in line)
        for text in ("printed by others", "a warning of", "unfinished", "LEARNING", "the end")
    ]
    assert places == sorted(places)
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def test_the_trainer_draws_nothing_for_its_progress(terminal: Terminal) -> None:
    with Console(terminal) as console:
        train(console, GAME_ROW)
        terminal.writers.clear()
        for update in range(1_000):
            console.advance(update)
        terminal.wait_for("999")
        assert terminal.writers
        assert threading.current_thread() not in terminal.writers


def test_a_signal_that_comes_by_two_ways_is_one() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs
    try:
        with StopRequest(lambda: None, lambda: None, same_within=0.5) as stop:
            stop.signal = signal.SIGTERM  # another process has told of it
            for _ in range(2):  # from the system, and from the parent
                os.kill(os.getpid(), signal.SIGINT)
            assert stop.signal == signal.SIGTERM
            time.sleep(0.6)
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_asks_and_the_second_interrupts(number: signal.Signals) -> None:
    heard: list[str] = []
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    with StopRequest(lambda: heard.append("stop"), lambda: heard.append("gone")) as stop:
        assert not stop.is_requested
        os.kill(os.getpid(), number)
        assert stop.is_requested
        assert heard == ["stop"]
        assert {n: signal.getsignal(n) for n in before} == before
    assert {n: signal.getsignal(n) for n in before} == before
