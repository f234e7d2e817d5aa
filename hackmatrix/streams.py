"""Standard output and errors that are closed, or that nobody reads any more."""

import contextlib
import os
import sys


def open_closed_streams() -> None:
    """Opens what the caller closed of standard input, output and errors (`>&-`) as /dev/null.

    Otherwise the next file that is opened, such as a checkpoint's, would get their number, and what
    libraries print would go into it.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # takes the lowest free number: this one
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def discard_output() -> None:
    """Discards what is printed from now on, and what is buffered: nobody reads it any more.

    Otherwise the interpreter would fail to flush it when it shuts down.
    """
    with contextlib.suppress(OSError, ValueError):  # standard output may be no file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
