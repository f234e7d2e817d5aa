"""`hackmatrix serve` and `hackmatrix-game`: the game as a process that exchanges JSON lines.

Clients of the original start this process with flags of the original, known here or not, and start
it often. So it reads its command line itself: an unknown flag is a warning, and neither argparse
nor anything else that takes long to import is needed before the first answer.
"""

import gc
import sys
from typing import NamedTuple

from hackmatrix.cli.main import exit_code
from hackmatrix.core.errors import UserError
from hackmatrix.core.streams import discard_output

FLAGS = {
    "--headless-cli": "no effect; clients of the original pass it",
    "--visual-cli": "the same for clients that expect a window; none is opened",
    "--info": "print a line to stderr when a game begins or ends",
    "--debug": "print a line for each step and each refused request too",
    "--exact-breakdown": "omit `stepPenalty`, unknown to the original, from `reward_breakdown`; "
    "always on in hackmatrix-game",
    "--dev-mode": "no effect; clients of the original pass it with --programs",
    "--programs": "NAME,NAME,...: blocks of new stages carry only these programs",
    "--help": "show this and exit",
}


class Call(NamedTuple):
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
    if "--visual-cli" in call.flags:
        _to_stderr(f"{command}: warning: --visual-cli opens no window here, it only serves")
    gc.disable()  # there is nothing to collect while modules are loaded
    from hackmatrix.integrations.process.serve import serve
    from hackmatrix.integrations.process.session import Session

    gc.freeze()
    gc.enable()
    session = Session(
        _to_stderr if call.flags & {"--info", "--debug"} else None,
        trace=_to_stderr if "--debug" in call.flags else None,
        exact_breakdown=exact or "--exact-breakdown" in call.flags,
        programs=call.programs,
    )
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer, session)
    except BrokenPipeError:  # the client may leave at any time
        discard_output()
    return 0


def read_call(argv: list[str]) -> Call:
    """Reads the command line.

    Raises:
        UserError: a value of `--programs` is missing or not the name of a program.
    """
    flags: set[str] = set()
    programs: tuple[int, ...] = ()
    unknown: list[str] = []
    words = iter(argv)
    for word in words:
        name, given, value = word.partition("=")
        name = "--help" if name == "-h" else name
        if name == "--programs":
            programs = _programs(value if given else next(words, ""))
        elif name in FLAGS and not given:
            flags.add(name)
        else:
            unknown.append(word)
    return Call(flags, programs, unknown)


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
