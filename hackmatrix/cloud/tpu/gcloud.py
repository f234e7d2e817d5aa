"""Runs gcloud, and prints each line before it runs."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from hackmatrix.cloud.tpu.gcloud_errors import TIMED_OUT
from hackmatrix.cloud.tpu.gcloud_lines import Argv

MINUTE = 60.0


class CommandResult(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


NO_GCLOUD = CommandResult(127, "", "gcloud: not found")


def shell_line(argv: Argv) -> str:
    """A command line as a shell reads it."""
    return f"$ {shlex.join(argv)}"


@dataclass
class Gcloud:
    """Runs command lines of gcloud.

    Attributes:
        say: prints a line.
        dry_run: print them, and run nothing.
    """

    say: Callable[[str], None]
    dry_run: bool = False
    _printed_once: set[str] = field(default_factory=set)

    def run(
        self, argv: Argv, *, timeout: float = 15 * MINUTE, quiet: bool = False
    ) -> CommandResult:
        """Runs a command and returns what it printed.

        Args:
            argv: the command line.
            timeout: seconds after which it and what it has started are ended: ssh to a machine that
                is gone can hang.
            quiet: a command that only looks, over and over: print it the first time alone.
        """
        self._print(argv, once=quiet)
        if self.dry_run:
            return CommandResult(0, "", "")
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,  # a group of its own, which can be ended as a whole
            )
        except FileNotFoundError:
            return NO_GCLOUD
        with process:
            try:
                out, err = process.communicate(timeout=timeout)
            except BaseException as error:
                started = _descendants(process.pid)  # gcloud's ssh is in a session of its own
                with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                    os.killpg(process.pid, signal.SIGKILL)
                for pid in started:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                process.wait()
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                return CommandResult(TIMED_OUT, "", f"ERROR: timed out after {timeout:g} s")
        return CommandResult(process.returncode, out, err)

    def show(self, argv: Argv, *, terminal: bool = False) -> CommandResult:
        """Runs a command whose output the user sees as it comes.

        Args:
            argv: the command line.
            terminal: it talks with the user, so its errors are not read here.
        """
        self._print(argv, once=False)
        if self.dry_run:
            return CommandResult(0, "", "")
        try:
            process = subprocess.Popen(
                argv, stderr=None if terminal else subprocess.PIPE, text=True, errors="replace"
            )
        except FileNotFoundError:
            return NO_GCLOUD
        errors: list[str] = []
        try:
            for line in process.stderr or ():
                errors.append(line)
                sys.stderr.write(line)
            return CommandResult(process.wait(), "", "".join(errors))
        except KeyboardInterrupt:  # it reached the command too, which ends in its own time
            process.wait()
            raise
        finally:
            if process.stderr is not None:
                process.stderr.close()

    def _print(self, argv: Argv, *, once: bool) -> None:
        kind = " ".join(argv[:5])
        if not (once and kind in self._printed_once):
            self.say(shell_line(argv))
        if once:
            self._printed_once.add(kind)


def _descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have, in any session."""
    try:
        words = ["ps", "-A", "-o", "pid=,ppid="]
        table = subprocess.run(words, capture_output=True, text=True).stdout
    except FileNotFoundError:
        return []
    children: dict[int, list[int]] = {}
    for line in table.splitlines():
        child, parent = map(int, line.split())
        children.setdefault(parent, []).append(child)
    found = list(children.get(pid, []))
    for each in found:  # grows as it goes
        found += children.get(each, [])
    return found
