"""Runs gcloud, prints each line before it runs, and says what its errors mean."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

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


# --- The meaning of gcloud's errors, and their remedies -------------------------------------------


class ErrorType(Enum):
    """A kind of error."""

    NO_GCLOUD = "gcloud is not installed"
    AUTH = "your login has expired"
    SSH_KEY = "your ssh key is not in the ssh agent"
    SSH = "ssh does not reach the TPU"
    EXISTS = "it is there already"
    NOT_FOUND = "it is not there"
    NO_BUCKET = "there is no such bucket"
    NO_QUOTA = "the project has no quota for this type in this zone"
    QUOTA = "the quota is used up"
    CAPACITY = "the zone has no free TPU of this type"
    PERMISSION = "you may not do this"
    INVALID = "gcloud does not accept this"
    NETWORK = "the network or Google's service did not answer"
    SETUP = "a host can't be set up"
    UNKNOWN = "gcloud failed"


class Trouble(NamedTuple):
    """An error: its kind, and gcloud's own last words."""

    error_type: ErrorType
    message: str

    def __str__(self) -> str:
        return (
            f"{self.error_type.value} ({self.message})" if self.message else self.error_type.value
        )


# The first that matches counts: what is special stands before what is general.
_SIGNS = (
    (ErrorType.SSH_KEY, r"not present in the SSH agent"),
    (
        ErrorType.AUTH,
        r"gcloud auth (application-default )?login|auth tokens|invalid_grant|[Rr]eauthenticat"
        r"|active account selected|UNAUTHENTICATED",
    ),
    (ErrorType.NO_QUOTA, r"Limit: 0(\.0)?\b"),
    (
        ErrorType.CAPACITY,
        r"no more capacity|RESOURCE_POOL_EXHAUSTED|enough resources"
        r"|[Ii]nsufficient (reserved )?capacity",
    ),
    (ErrorType.QUOTA, r"[Qq]uota.*exceeded|QUOTA_EXCEEDED|RESOURCE_EXHAUSTED"),
    (ErrorType.EXISTS, r"ALREADY_EXISTS|already exists|already own it"),
    (
        ErrorType.PERMISSION,
        r"PERMISSION_DENIED|not have permission|SERVICE_DISABLED|has not been used in project"
        r"|\b403\b|AccessDenied",
    ),
    (ErrorType.NOT_FOUND, r"NOT_FOUND|matched no objects|not found|\b404\b"),
    (
        ErrorType.INVALID,
        r"INVALID_ARGUMENT|FAILED_PRECONDITION|unrecognized arguments|Invalid value"
        r"|Invalid choice|must be specified|\b400\b",
    ),
    (
        ErrorType.NETWORK,
        r"[Tt]imed? ?out|[Cc]onnection|[Uu]nable to find the server|unreachable|TransportError"
        r"|Max retries|name resolution|UNAVAILABLE|INTERNAL|DEADLINE_EXCEEDED|ABORTED|\b50[0234]\b",
    ),
)
_WHAT_TO_DO = {
    ErrorType.NO_GCLOUD: "install the Google Cloud CLI "
    "(https://cloud.google.com/sdk/docs/install), then run `gcloud init`",
    ErrorType.AUTH: "run `gcloud auth login`",
    ErrorType.SSH_KEY: "several hosts need it there: `eval $(ssh-agent)`, then "
    "`ssh-add ~/.ssh/google_compute_engine`",
    ErrorType.SSH: "look with `hackmatrix tpu ssh FILE`; a firewall may lack a rule for port 22: "
    "`gcloud compute firewall-rules list`",
    ErrorType.NO_BUCKET: "`hackmatrix tpu init FILE` makes it",
    ErrorType.NO_QUOTA: "see `hackmatrix tpu quota FILE`; a grant of TPU Research Cloud holds for "
    "the zones and types in its letter alone, spot and on-demand apart",
    ErrorType.QUOTA: "what was preempted, suspended or failed counts until it is deleted: "
    "`hackmatrix tpu list FILE`",
    ErrorType.CAPACITY: "others have them; another zone or a smaller type may be free",
    ErrorType.PERMISSION: "check project, zone and type, then that its services are on "
    "(`hackmatrix tpu init FILE`) and its quota (`hackmatrix tpu quota FILE`)",
    ErrorType.INVALID: "see `hackmatrix tpu images FILE` for the types and runtimes of the zone",
}


def what_to_do(error_type: ErrorType) -> str:
    """A piece of advice, or nothing."""
    return _WHAT_TO_DO.get(error_type, "")


def trouble_of(text: str) -> Trouble:
    """Reads what gcloud wrote to stderr."""
    kind = next((kind for kind, sign in _SIGNS if re.search(sign, text)), ErrorType.UNKNOWN)
    return Trouble(kind, last_words(text))


def trouble_of_ssh(code: int, text: str) -> Trouble:
    """Reads what gcloud wrote when a command on the hosts failed.

    The exit code 255 is ssh's own; another one is that of the command.
    """
    trouble = trouble_of(text)
    if trouble.error_type in (ErrorType.AUTH, ErrorType.SSH_KEY, ErrorType.NO_GCLOUD):
        return trouble
    connection = re.search(r"code \[255\]|Permission denied \(publickey|port 22\b", text)
    if code in (255, TIMED_OUT) or connection or ("cannot be" in text and "TPU has" in text):
        return Trouble(ErrorType.SSH, trouble.message)
    return Trouble(ErrorType.SETUP, trouble.message)


TIMED_OUT = 124  # exit code of a command that was ended here, as of timeout(1)


def last_words(text: str) -> str:
    """The last line that says something, at most 300 characters."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    errors = [line for line in lines if re.match(r"(ERROR|fatal|error)\b", line)]
    said = errors[-1:] or [line for line in lines if line][-1:]
    return said[0][:300] if said else ""
