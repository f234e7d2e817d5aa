"""The main loop of the game process: reads requests and writes answers, one JSON object a line."""

from typing import BinaryIO

from hackmatrix.integrations.process.session import ProcessSession


def serve(requests: BinaryIO, answers: BinaryIO, session: ProcessSession) -> None:
    """Answers each line of `requests` with a line of `answers` before reading the next.

    Args:
        requests: JSON lines.
        answers: JSON lines.
        session: answers them.
    """
    for line in requests:
        answers.write(session.answer(line).encode() + b"\n")
        answers.flush()
