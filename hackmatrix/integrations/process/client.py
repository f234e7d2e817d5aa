"""A client of the game process: ours, or the original's binary."""

import json
import os
import select
import shutil
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hackmatrix.core.errors import UserError
from hackmatrix.core.processes import python_module

VARIABLE = "HACKMATRIX_BINARY"  # names the binary where no argument does
TIMEOUT = 30.0  # seconds; an answer takes a millisecond
START_TIMEOUT = 120.0  # seconds; the first answer waits for the start, on a busy machine for long
_MANUAL = b'{"manual":'  # begins a line that answers nothing: a person's move in the window
_LAST_WORDS = 10  # lines of the process's stderr that are kept
_CHUNK = 65_536
_NEED_A_GAME = ("step", "getValidActions", "getInternalState")

Json = dict[str, Any]


class GameProcessError(RuntimeError):
    """The game process died, does not answer, or refuses a request."""


class GameProcess:
    """The game as another process, started at the first request.

    A process that died is started again by the next request that does not need the game that was
    lost with it.
    """

    def __init__(
        self,
        binary: str | Path | None = None,
        *,
        flags: Sequence[str] = (),
        timeout: float = TIMEOUT,
        start_timeout: float = START_TIMEOUT,
        echo: bool = False,
    ) -> None:
        """Finds the binary, and does not start it yet.

        Args:
            binary: path of a binary; None for the one that `HACKMATRIX_BINARY` names, or else ours.
            flags: given to it besides `--headless-cli`.
            timeout: seconds that one answer may take.
            start_timeout: seconds that the first answer of a process may take.
            echo: whether what it says on stderr is shown on stderr here too.

        Raises:
            UserError: there is no such program, or a timeout is not above 0.
        """
        for name, seconds in (("timeout", timeout), ("start_timeout", start_timeout)):
            if not seconds > 0:  # a NaN neither
                raise UserError(f"{name} must be a number of seconds above 0, got {seconds!r}")
        self.command = [*command_of(binary), *flags]
        self.timeout = timeout
        self.start_timeout = start_timeout
        self._echo = echo
        self._process: subprocess.Popen[bytes] | None = None
        self._has_answered = False
        self._read = b""  # read from the process and not yet used
        self._last_lines: deque[str] = deque(maxlen=_LAST_WORDS)
        self._listener: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def ask(self, action: str, **fields: Any) -> Json:
        """Sends a request and returns its answer.

        Args:
            action: the request's name.
            fields: its other fields.

        Raises:
            GameProcessError: the process died or did not answer in time, with its last words; or
                it answered with an error.
        """
        process = self._running(action)
        request = json.dumps({"action": action, **fields}).encode() + b"\n"
        try:
            os.write(process.stdin.fileno(), request)  # type: ignore[union-attr]
            line = self._line(process)
            while line.startswith(_MANUAL):
                line = self._line(process)
        except OSError:
            line = b""
        if not line:
            raise self._end_with_error("has ended")
        return _answer(action, line)

    def close(self) -> None:
        """Ends the process: its input ends, and it has a second to follow."""
        process, self._process, self._read = self._process, None, b""
        if process is None:
            return
        process.stdin.close()  # type: ignore[union-attr]
        try:
            process.wait(1)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._listener is not None:
            self._listener.join(1)
        process.stdout.close()  # type: ignore[union-attr]

    def _running(self, action: str) -> "subprocess.Popen[bytes]":
        """The process, started if it is not running and the request needs no game."""
        if self._process is not None and self._process.poll() is None:
            return self._process
        if self._process is not None and action in _NEED_A_GAME:
            raise self._end_with_error("has ended")
        self.close()
        pipe = subprocess.PIPE
        try:
            # Ctrl+C on the terminal is for who asks; the game ends with its input.
            self._process = subprocess.Popen(
                self.command, stdin=pipe, stdout=pipe, stderr=pipe, process_group=0
            )
        except OSError as error:
            raise UserError(f"{self.command[0]}: can't be started: {error.strerror}") from error
        self._has_answered = False
        self._last_lines.clear()
        self._listener = threading.Thread(target=self._listen, args=(self._process,), daemon=True)
        self._listener.start()
        return self._process

    def _listen(self, process: "subprocess.Popen[bytes]") -> None:
        """Reads what the process says on stderr, so that it never waits for a reader."""
        with process.stderr as stderr:  # type: ignore[union-attr]
            for line in stderr:
                self._last_lines.append(line.decode(errors="replace").rstrip())
                if self._echo:
                    print(self._last_lines[-1], file=sys.stderr)

    def _line(self, process: "subprocess.Popen[bytes]") -> bytes:
        """One line of the process's answers; empty if they end."""
        output = process.stdout.fileno()  # type: ignore[union-attr]
        timeout = self.timeout if self._has_answered else self.start_timeout
        until = time.monotonic() + timeout
        while b"\n" not in self._read:
            left = until - time.monotonic()
            if left <= 0 or not select.select([output], [], [], left)[0]:
                raise self._end_with_error(f"did not answer within {timeout:g} s")
            chunk = os.read(output, _CHUNK)
            if not chunk:
                return b""
            self._read += chunk
        line, _, self._read = self._read.partition(b"\n")
        self._has_answered = True
        return line

    def _end_with_error(self, what: str) -> GameProcessError:
        """Ends the process; the error says what happened, and what the process said last."""
        process, code = self._process, None
        if process is not None:
            try:
                code = process.wait(0.2 if what == "has ended" else 0)
            except subprocess.TimeoutExpired:
                process.kill()
            self.close()
        how = "" if code is None else f" with exit code {code}"
        said = " | ".join(filter(None, self._last_lines))
        last = f"; it said last: {said}" if said else ", and said nothing on stderr"
        return GameProcessError(f"the game process {self.command[0]} {what}{how}{last}")


def command_of(binary: str | Path | None) -> list[str]:
    """The command line of a game process.

    Args:
        binary: see `GameProcess`.

    Raises:
        UserError: there is no such program.
    """
    name, source = (binary, "game binary") if binary else (os.environ.get(VARIABLE), VARIABLE)
    if not name:
        return python_module("hackmatrix", "serve", "--headless-cli", "--exact-breakdown")
    found = shutil.which(str(name))
    if found is None:
        raise UserError(f"{source} {name}: there is no such program, or it can't be run")
    return [found, "--headless-cli"]


def _answer(action: str, line: bytes) -> Json:
    try:
        answer = json.loads(line)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise GameProcessError(f"the game process answers {action} by no JSON object: {line!r:.80}")
    if "error" in answer:
        raise GameProcessError(f"the game process refuses {action}: {answer['error']}")
    return answer
