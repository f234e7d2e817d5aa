"""Processes of this package: cores, command lines, and the parent of a training process.

JAX's runtime ends a process from C++ when another one of its job is lost. To the parent, which
needs no JAX, such an end, or one by the system, becomes a line of text and an exit code that says:
start me again. It also ends what is stuck.
"""

import contextlib
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

_PACKAGE = Path(__file__).resolve().parents[1]
_STARTER = _PACKAGE.parent / "hackmatrix_command.py"


def num_cores() -> int:
    """Number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS or Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def python_module(module: str, *arguments: str) -> list[str]:
    """A command like `python -m MODULE ARGUMENT...`, for a module of this package.

    It finds this package whatever `PYTHONPATH` and the current folder hold; see
    `hackmatrix_command.py`. The current folder is not on its `sys.path`.
    """
    return [sys.executable, "-P", str(_STARTER), module, *arguments]


def command_name() -> str:
    """`hackmatrix`, or what stands for it where that name on PATH is missing or another program.

    Quoted for a shell. In a clone that is not installed, the interpreter runs the package's folder.
    """
    own = Path(sysconfig.get_path("scripts")) / "hackmatrix"
    if not own.exists():
        return f"{shlex.quote(_python())} {shlex.quote(_near(_PACKAGE))}"
    found = shutil.which("hackmatrix")
    if found and own.samefile(found):
        return "hackmatrix"
    return shlex.quote(
        _near(own) if os.pardir not in Path(os.path.relpath(own)).parts else str(own)
    )


def _python() -> str:
    """The interpreter, by its name if PATH finds it by that."""
    found = shutil.which(name := Path(sys.executable).name)
    return name if found and Path(found).samefile(sys.executable) else sys.executable


def _near(path: Path) -> str:
    return os.path.relpath(path)


RESTART_ME = 75  # EX_TEMPFAIL: exit code with which a process asks to be started again

_LOOK_SECONDS = 1.0  # between two looks at whether the child still runs
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def supervise(module: str, arguments: Sequence[str], stall_timeout: float) -> int:
    """Runs `module PIPE ARGUMENT...` as a child and returns an exit code.

    The child writes a byte to the pipe, which is given as the number of an open file, whenever it
    gets on. Signals are forwarded to it. Exit codes of its own are passed on; `RESTART_ME` is
    returned if it was ended from outside, or was killed here because it was stuck.

    Args:
        module: the child's module.
        arguments: the child's arguments after the pipe.
        stall_timeout: seconds without a byte after which the child is stuck.
    """
    reader, writer = os.pipe()
    # A process group of its own: a terminal sends Ctrl+C to this process alone, which forwards it.
    with subprocess.Popen(
        python_module(module, str(writer), *arguments),
        pass_fds=(writer,),
        process_group=0,
    ) as child:
        os.close(writer)
        with _forward_signals(child):
            met = _follow(child, reader, stall_timeout)
            if stuck := child.poll() is None:
                child.kill()
            code = child.wait()
    os.close(reader)
    message, code = _meaning(code, met=met, stuck=stuck, stall_timeout=stall_timeout)
    if message:
        with contextlib.suppress(OSError):
            print(f"hackmatrix train: {message} (exit code {code})", file=sys.stderr)
    return code


def _follow(child: "subprocess.Popen[bytes]", reader: int, stall_timeout: float) -> bool:
    """Reads the pipe until the child ends or is stuck; returns whether there was any byte."""
    met, since = False, time.monotonic()
    while child.poll() is None and time.monotonic() - since < stall_timeout:
        readable, _, _ = select.select([reader], [], [], min(_LOOK_SECONDS, stall_timeout))
        if not readable:
            continue
        if not os.read(reader, 4096):  # the child has ended, or wants to be watched no longer
            child.wait()
            return met
        met, since = True, time.monotonic()
    return met


def _meaning(code: int, *, met: bool, stuck: bool, stall_timeout: float) -> tuple[str | None, int]:
    """The message about the child's end, and the exit code to return."""
    again = "start all processes again, with --resume if there is a checkpoint"
    if stuck:
        return f"stuck: no update for {stall_timeout:g} s, so it was killed; {again}", RESTART_ME
    match -code:
        case signal.SIGABRT if met:
            return f"another process was lost, so this one was aborted; {again}", RESTART_ME
        case signal.SIGABRT:
            return f"the other processes could not be met; {again}", RESTART_ME
        case signal.SIGKILL:
            return f"killed, by someone or for want of memory; {again}", RESTART_ME
        case signal.SIGSEGV if not met:  # of JAX's service, where it can't listen
            return "ended by SIGSEGV; is the coordinator's port taken?", 128 + signal.SIGSEGV
        case number if number > 0:
            quiet = number in _FORWARDED
            message = None if quiet else f"ended by {signal.Signals(number).name}"
            return message, 128 + number
    return None, code


@contextlib.contextmanager
def _forward_signals(child: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Sends the signals that reach this process to the child."""

    def forward(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001
        child.send_signal(signum)

    ours = [each for each in _FORWARDED if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, forward) for each in ours}
    try:
        yield
    finally:
        for sig, handler in before.items():
            signal.signal(sig, handler)
