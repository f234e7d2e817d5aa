"""`hackmatrix serve` and `hackmatrix-game`: the game as a process that exchanges JSON lines."""

import sys
from dataclasses import dataclass

from hackmatrix.bridge.serve import serve
from hackmatrix.cli.arguments import parse
from hackmatrix.cli.main import exit_code
from hackmatrix.options import option
from hackmatrix.streams import discard_output


@dataclass(frozen=True)
class ServeOptions:
    """The command's options."""

    headless_cli: bool = option(
        False, "the flag by which clients start the original; it changes nothing"
    )
    info: bool = option(False, "print a line to stderr when a game begins or ends")
    debug: bool = option(False, "print every request and every answer to stderr too")


def main(argv: list[str], command: str = "hackmatrix serve") -> int:
    """Answers requests from stdin until it ends."""
    options = parse(
        ServeOptions,
        argv,
        command=command,
        purpose="Plays HackMatrix over JSON lines: a request on stdin, its answer on stdout.",
        example=f"""\
  $ echo '{{"action":"getActionSpace"}}' | {command} --headless-cli
  {{"actionSpaceSize":28}}""",
    )
    log = _to_stderr if options.info or options.debug else _nowhere
    trace = _to_stderr if options.debug else _nowhere
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer, log, trace)
    except BrokenPipeError:  # the client may leave at any time
        discard_output()
    return 0


def game_binary() -> int:
    """`hackmatrix-game`: a drop-in replacement for the original's binary."""
    command = "hackmatrix-game"
    return exit_code(command, lambda: main(sys.argv[1:], command))


def _to_stderr(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _nowhere(_: str) -> None:
    pass
