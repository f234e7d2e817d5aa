"""What a run shows, on a terminal and piped; how it hears the wish to stop."""

import io
import os
import signal

import pytest

from hackmatrix.training.console import Console, summary
from hackmatrix.training.stop import StopRequest

ROW = {
    "train/steps_per_second": 12_345.6,
    "train/mean_episode_return": -1.234,
    "stats/mean_stage": None,
    "train/entropy": 1.5,
    "train/approx_kl": 0.01234,
    "train/vf_loss": 3.0,
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_line_shows_what_one_looks_at_first() -> None:
    assert summary(ROW) == "steps/s 12,346  return -1.23  stage -  entropy 1.500  KL 0.0123"


def test_piped_there_is_one_plain_line_for_each_row() -> None:
    file = io.StringIO()
    with Console(100, 32_768, file) as console:
        console.say("compiling [not markup] ...")
        console.advance(5)
        console.log(10, ROW)
    lines = file.getvalue().splitlines()
    assert lines[0] == "compiling [not markup] ..."
    assert lines[1] == f"update 10/100  327,680 steps  {summary(ROW)}"
    assert len(lines) == 2


def test_on_a_terminal_there_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    file = Terminal()
    with Console(100, 32_768, file) as console:
        console.say("compiling [not markup] ...")
        console.advance(50)
        console.log(50, ROW)
    shown = file.getvalue()
    assert "compiling [not markup] ..." in shown
    assert "━" in shown
    assert " 50%" in shown
    assert "entropy 1.500" in shown


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
