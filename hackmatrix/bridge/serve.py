"""The main loop of the game process: reads requests and writes answers, one JSON object a line."""

import json
from collections.abc import Callable
from typing import BinaryIO

from hackmatrix.bridge.session import Session


def serve(
    requests: BinaryIO, answers: BinaryIO, log: Callable[[str], None], trace: Callable[[str], None]
) -> None:
    """Answers each line of `requests` with a line of `answers` before reading the next.

    Args:
        requests: JSON lines.
        answers: JSON lines.
        log: is called with a line for every game that begins or ends.
        trace: is called with every request and every answer.
    """
    session = Session(log)
    for line in requests:
        trace(f"< {line!r}")
        answer = json.dumps(session.answer(line), separators=(",", ":"))
        trace(f"> {answer}")
        answers.write(answer.encode() + b"\n")
        answers.flush()
