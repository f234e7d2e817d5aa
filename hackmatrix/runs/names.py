"""Names of runs: `{prefix}-{mon}{dd}-{yy}-{n}[-suffix]`, n counted up for each day."""

import re
from collections.abc import Iterable
from datetime import date

from hackmatrix.core.errors import UserError

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=-]{0,99}")

PICKLES = (".pkl", ".pickle")  # of the original; they are read as data, nothing in them runs
_CHECKPOINT = re.compile(r"checkpoint(?:_(?P<update>\d+))?\.(?:pkl|pickle|pt)")


def next_name(existing: Iterable[str], day: date, prefix: str = "hackmatrix-jax") -> str:
    """The first free name of `day`, one above the highest number in `existing` names."""
    prefix = f"{prefix}-{_MONTHS[day.month - 1]}{day.day:02}-{day.year % 100:02}-"
    numbered = re.compile(re.escape(prefix) + r"(\d+)(-.*)?")
    numbers = [int(match[1]) for name in existing if (match := numbered.fullmatch(name))]
    return f"{prefix}{max(numbers, default=0) + 1}"


def check_word(option: str, text: str) -> None:
    """Raises `UserError` if `text` can't be (part of) the name of a folder."""
    if not _WORD.fullmatch(text):
        raise UserError(
            f"{option} must be 1 to 100 letters, digits and . _ + = -, starting with a letter or "
            f"digit, got {text!r}"
        )


def is_checkpoint_name(name: str) -> bool:
    """Whether a file of this name would be a checkpoint of another trainer."""
    return _CHECKPOINT.fullmatch(name) is not None


def update_of_name(name: str) -> int | None:
    """The update in a checkpoint's name; None if it has none, or is another name."""
    match = _CHECKPOINT.fullmatch(name)
    return None if match is None or match["update"] is None else int(match["update"])
