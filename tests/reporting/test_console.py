"""What a run shows, on a terminal and piped; how it hears the wish to stop."""

import errno
import fcntl
import io
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from hackmatrix.reporting import console as console_module
from hackmatrix.reporting.console import Console, summary
from hackmatrix.reporting.metrics import METRICS
from hackmatrix.training.stop import StopRequest

ROW = {
    "train/steps_per_second": 12_345.6,
    "train/mean_episode_return": -1.234,
    "stats/mean_stage": None,
    "train/entropy": 1.5,
    "train/approx_kl": 0.01234,
    "train/vf_loss": 3.0,
}
SUMMARY = "steps/s 12,346  return -1.23  stage -  entropy 1.500  KL 0.0123"

GAME_ROW = dict.fromkeys((metric.name for metric in METRICS), 0.0) | {
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
    "return": "1.234k",
    "length": "71.3",
    "episodes": "1.235M",
    "entropy": "1.250",
    "KL": "0.0078",
    "clipped": "8.9%",
    "expl. var.": "-0.447",
    "total loss": "0.0267",
    "policy loss": "-0.0170",
    "value loss": "0.1015",
    "grad norm": "12.35k",
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
    "total": "+0.0182",
    "damage": "-0.0505",
    "stage completion": "+0.0363",
    "distance shaping": "+0.0229",
    "siphon death": "-0.0001",
}


class Window:
    """A terminal's window: what a file writes to it, and what of that one sees."""

    def __init__(self, columns: int, lines: int) -> None:
        self._master, self.slave = pty.openpty()
        self.resize(columns, lines)
        self.file = os.fdopen(os.dup(self.slave), "w", encoding="utf-8")
        self._received = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def _read(self) -> None:
        try:
            while some := os.read(self._master, 65_536):
                self._received += some
        except OSError:  # Linux's way to say that nobody has it open any more
            pass

    @property
    def text(self) -> str:
        return self._received.decode(errors="ignore")

    @property
    def seen(self) -> list[str]:
        return shown_of(self.text)

    def wait_for(self, pattern: str) -> None:
        give_up = time.monotonic() + 20
        while not re.search(pattern, "\n".join(self.seen)):
            assert time.monotonic() < give_up, f"no {pattern!r} in {self.seen}"
            time.sleep(0.01)

    def close(self) -> None:
        """From now on `text` and `seen` are complete."""
        if not self.file.closed:
            self.file.close()
            os.close(self.slave)
            self._reader.join()
            os.close(self._master)


def shown_of(text: str) -> list[str]:
    """The lines on a window of endless height, top of its scrollback to the cursor."""
    lines, row = [""], 0
    for piece in re.findall(r"\x1b\[[?\d;]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", text):
        if piece == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif piece.startswith("\x1b["):
            if piece.endswith("A"):
                row -= int(piece[2:-1])
            elif piece.endswith("H"):
                row = 0
            elif piece.endswith("J"):
                del lines[row + 1 :]
                lines[row] = ""
        elif piece != "\r":
            lines[row] += piece
    return lines[:-1] if lines[-1] == "" else lines


@pytest.fixture(autouse=True)
def _in_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """Of the console: it stands still but for what is added to `now`."""
    clock = SimpleNamespace(now=1_000.0, strftime=time.strftime)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(console_module, "time", clock)
    return clock


@pytest.fixture
def window() -> Iterator[Window]:
    window = Window(80, 24)
    yield window
    window.close()


def train(console: Console, row: Mapping[str, float | None]) -> None:
    """Half of a run."""
    console.begin("first-run", 100, 32_768)
    console.advance(50)
    console.log(50, row)


def test_the_line_shows_what_one_looks_at_first() -> None:
    assert summary(ROW) == SUMMARY


def speak(console: Console) -> None:
    console.say("settings [not markup] ...")
    with console, console.waiting("compiling for cpu ..."):
        pass
    with console:
        console.begin("first-run", 306, 32_768)
        console.advance(10)
        console.log(10, ROW)
        console.note("checkpoint", "update 10 saved")
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


@pytest.mark.parametrize("term", ["dumb", "unknown", ""])
def test_so_there_are_on_a_terminal_that_can_do_no_more(
    term: str, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    speak(Console(window.file))
    window.close()
    assert window.text == PLAIN.replace("\n", "\r\n")


def test_so_there_are_on_a_terminal_without_the_signs() -> None:
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    bytes_written = io.BytesIO()
    with Console(Terminal(bytes_written, encoding="iso-8859-1")) as console:
        console.say("größer → smaller")
        assert bytes_written.getvalue() == "größer ? smaller\n".encode("iso-8859-1")


def test_numbers_come_after_the_beginning() -> None:
    with Console(io.StringIO()) as console:
        with pytest.raises(RuntimeError, match="begin"):
            console.advance(1)
        with pytest.raises(RuntimeError, match="begin"):
            console.log(1, ROW)


def test_on_a_terminal_nothing_of_a_row_is_lost_at_80_columns(window: Window) -> None:
    with Console(window.file) as console:
        train(console, GAME_ROW)
        console.note("checkpoint", "update 40 saved")
        console.note("evaluation", "stage 2.4")
        console.note("checkpoint", "update 50 saved")
    window.close()
    assert all(len(line) <= 80 for line in window.seen)
    assert len(window.seen) < 24
    assert re.match(r"first-run +50.0% ━+─+$", window.seen[0])
    assert window.seen[1].startswith("50/100 updates   1,638,400 steps   17,338 steps/s   ")
    titles = re.split("   +", window.seen[3].strip())
    assert titles == ["LEARNING", "GAME", "ACTIONS", "REWARD PER ACTION"]
    body = "\n".join(window.seen)
    for label, value in GAME_VALUES.items():
        assert re.search(rf"(^| ){re.escape(label)} +{re.escape(value)}( |$)", body, re.M), label
    assert "UNDO" not in body
    assert "victory" not in body
    sizes = [line[-7:] for line in window.seen[5:9]]
    assert sizes == ["-0.0505", "+0.0363", "+0.0229", "-0.0001"]
    assert window.seen[-2:] == ["checkpoint  update 50 saved", "evaluation  stage 2.4"]


def test_the_largest_numbers_fit_80_columns(window: Window) -> None:
    row = dict.fromkeys(GAME_ROW, -9.87654321e10)
    with Console(window.file) as console:
        train(console, row)
    window.close()
    assert all(len(line) <= 80 for line in window.seen)
    assert "REWARD PER ACTION" in window.seen[3]
    assert not any("…" in line for line in window.seen)


def test_a_wide_window_shows_trends() -> None:
    window = Window(120, 40)
    with Console(window.file) as console:
        console.begin("first-run", 100, 32_768)
        for update in range(1, 8):
            console.log(update, GAME_ROW | {"train/entropy": float(update)})
    window.close()
    (entropy,) = (line for line in window.seen if line.startswith("entropy"))
    assert re.match(r"entropy +▁▂▃▄▅▆▇ +7.000 ", entropy)


def test_what_an_environment_does_not_tell_takes_no_room(window: Window) -> None:
    with Console(window.file) as console:
        train(console, ROW)
    window.close()
    assert window.seen[3].strip() == "LEARNING"
    body = "\n".join(window.seen)
    assert re.search(r"return .* -1.23\n", body)
    assert re.search(r"length +-\n", body)


@pytest.mark.parametrize(("columns", "lines"), [(80, 23), (59, 40), (30, 10), (20, 3), (5, 1)])
def test_a_small_window_shows_the_first_lines(columns: int, lines: int) -> None:
    window = Window(columns, lines)
    with Console(window.file) as console:
        train(console, GAME_ROW)
        console.note("checkpoint", "update 40 saved")
    window.close()
    starts = ["first", "50/100", "steps/s"][: lines - 1]
    assert len(window.seen) == len(starts)
    for line, start in zip(window.seen, starts, strict=True):
        assert line.startswith(start)
        assert len(line) <= columns


def test_the_time_that_is_left_comes_from_the_updates_of_this_process(
    window: Window, clock: SimpleNamespace
) -> None:
    with Console(window.file) as console:
        console.begin("resumed", 1_000, 100, first_update=900)
        window.wait_for(r"900/1,000 updates   90,000 steps   - steps/s   - left   0:00 elapsed")
        clock.now += 3_600
        console.advance(950)
        clock.now += 65
        window.wait_for(
            "950/1,000 updates   95,000 steps   1 steps/s   58:55 left   1:01:05 elapsed"
        )
        clock.now += 3 * 86_400
        window.wait_for("0:00 left   3d 01h elapsed")


def test_lines_stand_above_the_table_and_stay(window: Window) -> None:
    with Console(window.file) as console:
        console.say("before [not markup]")
        train(console, GAME_ROW)
        window.wait_for("LEARNING")
        console.say("in between " + 12 * "0123456789")
        console.warn("entropy is low")
        console.log(60, GAME_ROW)
    console.say("after")
    window.close()
    assert window.seen[:4] == [
        "before [not markup]",
        "in between " + 12 * "0123456789",
        "warning: entropy is low",
        window.seen[3],
    ]
    assert window.seen[3].startswith("first-run")
    assert window.seen[-1] == "after"
    assert sum("LEARNING" in line for line in window.seen) == 1
    assert "\x1b[33mwarning: entropy is low" in window.text


def test_a_window_that_became_too_small_is_drawn_anew() -> None:
    window = Window(120, 40)
    with Console(window.file) as console:
        for i in range(30):
            console.say(f"line {i}")
        train(console, GAME_ROW)
        window.wait_for("LEARNING")
        window.resize(70, 20)
        window.wait_for("steps/s 17,338  return")
    window.close()
    # From the top of the window on: all that fits, the newest lines over the table.
    assert window.seen[:-3] == [f"line {i}" for i in range(14, 30)]
    assert window.seen[-3].startswith("first-run")


def test_colours_say_what_is_not_healthy(window: Window) -> None:
    sick = {"train/entropy_frac": 0.08, "train/approx_kl": 0.09, "train/grad_norm": float("nan")}
    with Console(window.file) as console:
        train(console, ROW | {"train/clip_frac": 0.2} | sick)
    window.close()
    assert re.search(r"\x1b\[33m +8.0%", window.text)
    assert re.search(r"\x1b\[31m *0.0900", window.text)
    assert re.search(r"\x1b\[1;31m +nan", window.text)
    assert not re.search(r"\x1b\[3\dm +20.0%", window.text)


def test_no_color_is_heard(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with Console(window.file) as console:
        console.warn("entropy is low")
        train(console, GAME_ROW)
    window.close()
    assert "LEARNING" in window.text
    assert not re.search(r"\x1b\[[\d;]*3\dm", window.text)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_cursor_visible(error: type[BaseException], window: Window) -> None:
    def fail() -> None:
        with Console(window.file) as console:
            train(console, GAME_ROW)
            window.wait_for("LEARNING")
            assert "\x1b[?25l" in window.text
            raise error

    with pytest.raises(error):
        fail()
    window.close()
    assert window.text.rindex("\x1b[?25h") > window.text.rindex("\x1b[?25l")
    assert any("LEARNING" in line for line in window.seen)


def test_waiting_shows_the_seconds_and_leaves_nothing(
    window: Window, clock: SimpleNamespace
) -> None:
    with Console(window.file) as console:
        with console.waiting("compiling for cpu ..."):
            window.wait_for(r"^\S compiling for cpu ... 0 s$")
            clock.now += 12
            window.wait_for(r"^\S compiling for cpu ... 12 s$")
        console.say("compiled")
        train(console, GAME_ROW)
        with console.waiting("evaluating"):
            window.wait_for("\n\\S evaluating 0 s$")
    window.close()
    assert window.seen[0] == "compiled"
    assert window.seen[1].startswith("first-run")
    assert not any("compiling" in line or "evaluating" in line for line in window.seen)


@pytest.mark.parametrize("on_terminal", [False, True])
def test_the_log_keeps_what_was_shown(on_terminal: bool, window: Window, tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("an earlier session\n")
    with Console(window.file if on_terminal else io.StringIO()) as console:
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


class Failing(io.StringIO):
    def __init__(self, error: OSError) -> None:
        super().__init__()
        self._error = error

    def write(self, text: str) -> int:
        raise self._error


def test_a_full_disk_ends_nothing() -> None:
    with Console(Failing(OSError(errno.ENOSPC, "no space"))) as console:
        console.say("lost")


def test_a_closed_pipe_is_known_so_that_the_run_can_end() -> None:
    with Console(Failing(BrokenPipeError(errno.EPIPE, "closed"))) as console:
        assert not console.closed
        console.say("to nobody")
        assert console.closed


def test_a_signal_may_speak_while_a_line_is_written() -> None:
    class Interrupted(io.StringIO):
        def write(self, text: str) -> int:
            if text == "first\n":
                console.say("from the handler")
            return super().write(text)

    file = Interrupted()
    with Console(file) as console:
        console.say("first")
        console.say("last")
    assert file.getvalue() == "first\nfrom the handler\nlast\n"


# A run as a process: what others print, then an error.
PROCESS = """
import sys, warnings
from hackmatrix.reporting.console import Console
assert "jax" not in sys.modules and "rich" not in sys.modules
with Console() as console:
    console.begin("first-run", 100, 32_768)
    console.log(1, {"train/entropy": 1.5})
    print("printed", end=" ")
    print("by others")
    warnings.warn("a warning of others")
    print("unfinished", end="")
    raise ValueError("the end")
"""


def test_what_others_print_goes_above_the_table_and_an_error_below(window: Window) -> None:
    with window.file as out:
        code = subprocess.run([sys.executable, "-c", PROCESS], stdout=out, stderr=out).returncode
        assert code == 1
        window.wait_for("the end")
    seen = window.seen
    places = [
        next(i for i, line in enumerate(seen) if text in line)
        for text in (
            "printed by others",
            "a warning of others",
            "unfinished",
            "LEARNING",
            "the end",
        )
    ]
    assert places == sorted(places)
    assert window.text.rindex("\x1b[?25h") > window.text.rindex("\x1b[?25l")


def test_progress_costs_the_training_next_to_nothing(window: Window) -> None:
    with Console(window.file) as console:
        train(console, GAME_ROW)
        began = time.perf_counter()
        for update in range(1_000):
            console.advance(update)
        assert time.perf_counter() - began < 0.5


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_and_the_second_interrupts(number: signal.Signals) -> None:
    heard: list[str] = []
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    with StopRequest(lambda: heard.append("stop")) as stop:
        assert not stop.requested
        os.kill(os.getpid(), number)
        assert stop.requested
        assert heard == ["stop"]
        assert {n: signal.getsignal(n) for n in before} == before
    assert {n: signal.getsignal(n) for n in before} == before
