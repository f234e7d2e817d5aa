"""The client of the game process, against ours and against binaries that misbehave."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from hackmatrix.core.errors import UserError
from hackmatrix.integrations.process.client import GameProcess, GameProcessError, command_of

OURS = Path(sys.executable).with_name("hackmatrix-game")
pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def no_binary_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HACKMATRIX_BINARY", raising=False)


def binary(folder: Path, *lines: str) -> Path:
    """A binary of these lines of a shell script."""
    path = folder / "binary"
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    path.chmod(0o755)
    return path


def test_plays_ours() -> None:
    process = GameProcess()
    process.close()
    with process:
        first = process.ask("reset", seed=5)
        assert first["observation"]["stage"] == 1
        with pytest.raises(GameProcessError, match="refuses step: actionIndex: expected 0"):
            process.ask("step", actionIndex=28)
        action = process.ask("getValidActions")["validActions"][0]
        parts = process.ask("step", actionIndex=action)["info"]["reward_breakdown"]
        assert (len(parts), "stepPenalty" in parts) == (14, False)
        assert process.ask("reset", seed=5) == first
        # Ctrl+C reaches all of a group; the game goes on answering until its client is done.
        assert process._process is not None
        assert os.getpgid(process._process.pid) != os.getpgid(0)
    process.close()


def test_finds_the_binary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = binary(tmp_path, "exit 0")
    assert command_of(OURS) == [str(OURS), "--headless-cli"]
    assert command_of(None)[0] == sys.executable
    monkeypatch.setenv("HACKMATRIX_BINARY", str(other))
    assert command_of(None) == [str(other), "--headless-cli"]
    assert command_of(OURS) == [str(OURS), "--headless-cli"]
    monkeypatch.setenv("HACKMATRIX_BINARY", "/no/such")
    with pytest.raises(UserError, match=r"^HACKMATRIX_BINARY /no/such: there is no such program"):
        GameProcess()


def test_a_dead_process_is_told_with_its_last_words_and_started_again(tmp_path: Path) -> None:
    log = tmp_path / "started"
    lines = (
        f"echo x >> {log}",
        "read line",
        "echo '{}'",
        "read line",
        "echo overheated >&2",
        "exit 7",
    )
    with GameProcess(binary(tmp_path, *lines)) as process:
        assert process.ask("reset") == {}
        with pytest.raises(
            GameProcessError, match="has ended with exit code 7; it said last: over"
        ):
            process.ask("step", actionIndex=1)
        assert process.ask("reset") == {}
    assert log.read_text() == "x\nx\n"


def test_a_game_that_is_lost_is_not_played_on() -> None:
    with GameProcess(OURS) as process:
        process.ask("reset", seed=1)
        assert process._process is not None
        os.kill(process._process.pid, signal.SIGKILL)
        process._process.wait()
        with pytest.raises(GameProcessError, match="has ended with exit code -9, and said nothing"):
            process.ask("getValidActions")
        assert "observation" in process.ask("reset", seed=1)


@pytest.mark.timeout(120)  # it would sleep longer
def test_a_process_that_does_not_answer_is_ended(tmp_path: Path) -> None:
    with GameProcess(
        binary(tmp_path, "echo thinking >&2", "exec sleep 600"), start_timeout=0.5
    ) as process:
        with pytest.raises(
            GameProcessError, match=r"did not answer within 0.5 s; it said last: thi"
        ):
            process.ask("reset")
        assert process._process is None


def test_the_first_answer_may_take_longer(tmp_path: Path) -> None:
    """It waits for the start; so does the first one of a process that was started again."""
    slow = binary(tmp_path, "sleep 1", "read line", "echo '{}'", "read line", "exec sleep 60")
    with GameProcess(slow, timeout=0.5, start_timeout=30) as process:
        for _ in range(2):
            assert process.ask("reset") == {}
            with pytest.raises(GameProcessError, match=r"did not answer within 0.5 s"):
                process.ask("step", actionIndex=1)


@pytest.mark.parametrize(("name", "seconds"), [("timeout", 0), ("start_timeout", float("nan"))])
def test_a_timeout_is_above_0(name: str, seconds: float) -> None:
    wrong: dict[str, Any] = {name: seconds}
    with pytest.raises(UserError, match=f"^{name} must be a number of seconds above 0, got"):
        GameProcess(OURS, **wrong)


def test_much_on_stderr_does_not_block(tmp_path: Path) -> None:
    lines = ("read line", "head -c 300000 /dev/zero | tr '\\0' x >&2", "echo '{}'", "read line")
    with GameProcess(binary(tmp_path, *lines)) as process:
        assert process.ask("reset") == {}


def test_what_it_says_is_shown_if_asked(capsys: pytest.CaptureFixture[str]) -> None:
    for echo, said in ((False, ""), (True, "reset: stream 7 episode 0\n")):
        with GameProcess(OURS, flags=["--info"], echo=echo) as process:
            process.ask("reset", seed=7)
        assert capsys.readouterr().err == said


def test_an_answer_in_pieces(tmp_path: Path) -> None:
    lines = (
        "read line",
        "printf '{\"a\"'",
        "sleep 0.2",
        "printf ':1}\\n{\"b\":2}\\n'",
        "read line",
    )
    with GameProcess(binary(tmp_path, *lines)) as process:
        assert process.ask("reset") == {"a": 1}
        assert process.ask("reset") == {"b": 2}


@pytest.mark.parametrize("said", ["nonsense", "[]"])
def test_an_answer_that_is_no_object(tmp_path: Path, said: str) -> None:
    with (
        GameProcess(binary(tmp_path, "read line", f"echo '{said}'", "read line")) as process,
        pytest.raises(GameProcessError, match="answers reset by no JSON object"),
    ):
        process.ask("reset")
