"""Standard output and errors: without control characters, closed, or read by nobody any more."""

import contextlib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO, cast

# All of Unicode but new line and tab, and marks that turn the direction of the text around them.
_CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """The text with `?` in place of control characters.

    Names of runs and metrics, and words in files, are those of whoever wrote them; a terminal would
    obey what they hold.
    """
    return _CONTROL.sub("?", text)


class _CleanStream:
    """A text stream that is written to without control characters; else like the one below it."""

    def __init__(self, below: TextIO) -> None:
        self.rich_proxied_file = below  # by this name rich finds where to draw, see `Screen`

    def write(self, text: str) -> int:
        self.rich_proxied_file.write(clean(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


def below(stream: TextIO) -> TextIO:
    """The stream that takes control characters, for what draws on a terminal."""
    return stream.rich_proxied_file if isinstance(stream, _CleanStream) else stream


@contextlib.contextmanager
def clean_output() -> Iterator[None]:
    """Whatever is printed in this context has no control characters, see `clean`."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast(TextIO, _CleanStream(below(stream))) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


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
