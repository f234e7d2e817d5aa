"""The process: reads requests from stdin, writes answers to stdout, and all else to stderr."""

import argparse
import json
import os
import sys
from collections.abc import Callable
from typing import BinaryIO, NoReturn

from hackmatrix.bridge.session import Session
from hackmatrix.errors import UserError

USAGE_ERROR = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells count

_EXAMPLE = """\
Each line on stdin is a request, a JSON object; each gets one line on stdout:

  $ echo '{"action":"getActionSpace"}' | %(prog)s --headless-cli
  {"actionSpaceSize":28}
"""


def game_binary() -> int:
    """`hackmatrix-game`: the file that stands in for the original's binary."""
    prog = "hackmatrix-game"
    try:
        return run(sys.argv[1:], prog)
    except UserError as error:
        print(f"{prog}: error: {error}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        return INTERRUPTED


def run(argv: list[str], prog: str) -> int:
    """Serve stdin until it ends.

    Args:
        argv: the flags.
        prog: how the command is called.

    Raises:
        UserError: there is no such flag.
    """
    options = _parser(prog).parse_args(argv)
    log = _to_stderr if options.info or options.debug else _nowhere
    trace = _to_stderr if options.debug else _nowhere
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer, log, trace)
    except BrokenPipeError:
        # The client has gone, as good an end as any. What is still buffered goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def serve(
    requests: BinaryIO, answers: BinaryIO, log: Callable[[str], None], trace: Callable[[str], None]
) -> None:
    """Answer each line of `requests` by a line of `answers`, at once.

    Args:
        requests: JSON lines.
        answers: JSON lines.
        log: gets a line for every game that begins or ends.
        trace: gets every request and every answer.
    """
    session = Session(log)
    for line in requests:
        trace(f"< {line!r}")
        answer = json.dumps(session.answer(line), separators=(",", ":"))
        trace(f"> {answer}")
        answers.write(answer.encode() + b"\n")
        answers.flush()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(message)


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=prog,
        description="Play HackMatrix over JSON lines on stdin and stdout, as the original does.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--headless-cli", action="store_true", help="what clients start the original with"
    )
    parser.add_argument("--info", action="store_true", help="say on stderr when games begin or end")
    parser.add_argument("--debug", action="store_true", help="also show every request and answer")
    return parser


def _to_stderr(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _nowhere(_: str) -> None:
    pass
