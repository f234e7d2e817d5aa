"""The main loop of the game process: reads requests and writes answers, one JSON object a line."""

from collections.abc import Callable
from typing import BinaryIO

from hackmatrix.bridge.session import Session


def serve(
    requests: BinaryIO, answers: BinaryIO, session: Session, trace: Callable[[str], None] | None
) -> None:
    """Answers each line of `requests` with a line of `answers` before reading the next.

    Args:
        requests: JSON lines.
        answers: JSON lines.
        session: answers them.
        trace: is called with every request and every answer.
    """
    for line in requests:
        answer = session.answer(line)
        if trace:
            trace(f"< {line!r}")
            trace(f"> {answer}")
        answers.write(answer.encode() + b"\n")
        answers.flush()
