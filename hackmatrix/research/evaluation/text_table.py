"""Tables as lines of text."""

from collections.abc import Sequence
from typing import NamedTuple


class TextTable(NamedTuple):
    """A table of a report."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        """The title, and the columns below it."""
        return f"{self.title}\n{align_columns([self.header, *self.rows])}"


def align_columns(lines: Sequence[Sequence[str]]) -> str:
    """Lines of words as columns."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(f"{text:<{width}}" for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
