"""`hackmatrix serve` and `hackmatrix-game`: the game as a process that exchanges JSON lines.

Clients of the original start this process with flags of the original, known here or not, and start
it often. So it reads its command line itself: an unknown flag is a warning, and neither argparse
nor anything else that takes long to import is needed before the first answer.
"""

import gc
import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from hackmatrix.cli.main import exit_code
from hackmatrix.core.errors import UserError
from hackmatrix.core.streams import discard_output

if TYPE_CHECKING:
    from hackmatrix.integrations.process.session import ProcessSession

FLAGS = {
    "--headless-cli": "no effect; clients of the original pass it",
    "--visual-cli": "show the game in a browser; moves made there are written to stdout",
    "--no-open": "with --visual-cli: print the page's address to stderr, and open no browser",
    "--info": "print a line to stderr when a game begins or ends",
    "--debug": "print a line for each step and each refused request too",
    "--exact-breakdown": "omit `stepPenalty`, unknown to the original, from `reward_breakdown`; "
    "always on in hackmatrix-game",
    "--dev-mode": "no effect; clients of the original pass it with --programs",
    "--programs": "NAME,NAME,...: blocks of new stages carry only these programs",
    "--help": "show this and exit",
}


class ServeRequest(NamedTuple):
    """The process's options."""

    flags: set[str]
    programs: tuple[int, ...]  # numbers; empty for all
    unknown: list[str]  # words that are no flag of this process


def main(argv: list[str], command: str = "hackmatrix serve", *, exact: bool = False) -> int:
    """Answers requests from stdin until it ends."""
    call = read_call(argv)
    if "--help" in call.flags:
        print(_help(command))
        return 0
    if call.unknown:
        _to_stderr(f"{command}: warning: not known and ignored: {' '.join(call.unknown)}")
    gc.disable()  # there is nothing to collect while modules are loaded
    from hackmatrix.integrations.process.session import ProcessSession, serve

    gc.freeze()
    gc.enable()
    session = ProcessSession(
        _to_stderr if call.flags & {"--info", "--debug"} else None,
        trace=_to_stderr if "--debug" in call.flags else None,
        exact_breakdown=exact or "--exact-breakdown" in call.flags,
        programs=call.programs,
    )
    try:
        if "--visual-cli" in call.flags:
            _serve_with_page(session, command, opens="--no-open" not in call.flags)
        else:
            serve(sys.stdin.buffer, sys.stdout.buffer, session)
    except BrokenPipeError:  # the client may leave at any time
        discard_output()
    return 0


def _serve_with_page(session: "ProcessSession", command: str, *, opens: bool) -> None:
    import threading

    from hackmatrix.integrations.process.window import Tab, Window
    from hackmatrix.ui.page.server import make_app
    from hackmatrix.ui.web.server import bind, serving

    output = sys.stdout.buffer

    def write(line: str) -> None:
        output.write(line.encode() + b"\n")
        output.flush()

    window, listening = Window(session, write), bind("127.0.0.1", 0)
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
    _to_stderr(f"{command}: the game is shown at {address}")
    if opens:
        threading.Thread(target=_open, args=(address, command), daemon=True).start()
    try:
        with serving(make_app(lambda: Tab(window)), listening):
            window.serve(sys.stdin.buffer)
    finally:
        if not window.lock.acquire(timeout=1):
            # A move waits for a client that reads no more, and Python would wait for its thread.
            os._exit(0)


def _open(address: str, command: str) -> None:
    """Opens a browser, which must neither read what the client writes nor write what it reads."""
    import subprocess

    code = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.argv[1]))"
    nothing = subprocess.DEVNULL
    words = [sys.executable, "-I", "-c", code, address]
    if subprocess.run(words, stdin=nothing, stdout=nothing, stderr=nothing).returncode:
        _to_stderr(f"{command}: warning: found no browser: open {address} to see the game")


def read_call(argv: list[str]) -> ServeRequest:
    """Reads the command line.

    Raises:
        UserError: a value of `--programs` is missing or not the name of a program.
    """
    flags: set[str] = set()
    programs: tuple[int, ...] = ()
    unknown: list[str] = []
    arguments = iter(argv)
    for word in arguments:
        name, given, value = word.partition("=")
        name = "--help" if name == "-h" else name
        if name == "--programs":
            programs = _programs(value if given else next(arguments, ""))
        elif name in FLAGS and not given:
            flags.add(name)
        else:
            unknown.append(word)
    return ServeRequest(flags, programs, unknown)


def _programs(names: str) -> tuple[int, ...]:
    from hackmatrix.integrations.process.set_state import PROGRAM_BY_NAME

    numbers = [PROGRAM_BY_NAME.get(name.strip().lower()) for name in names.split(",")]
    if None in numbers:
        wrong = names.split(",")[numbers.index(None)]
        raise UserError(f"--programs: expected names such as push,pull, got {wrong!r}")
    return tuple(number for number in numbers if number is not None)


def game_binary() -> int:
    """`hackmatrix-game`: a drop-in replacement for the original's binary."""
    command = "hackmatrix-game"
    return exit_code(command, lambda: main(sys.argv[1:], command, exact=True))


def _help(command: str) -> str:
    width = max(map(len, FLAGS))
    return "\n".join(
        [
            f"usage: {command} [--headless-cli] [FLAG ...]",
            "",
            "Plays HackMatrix over JSON lines: a request on stdin, its answer on stdout.",
            "",
            "flags (others are ignored with a warning):",
            *(f"  {name:<{width}}  {meaning}" for name, meaning in FLAGS.items()),
            "",
            "example:",
            f"""  $ echo '{{"action":"getActionSpace"}}' | {command} --headless-cli""",
            '  {"actionSpaceSize":28}',
        ]
    )


def _to_stderr(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
