"""The `hackmatrix` command: a table of subcommands, each imported only when it runs.

So `hackmatrix --help` is fast, and the game in plain Python never waits for JAX.
"""

import contextlib
import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from hackmatrix.core.devices.failed_backend import explain
from hackmatrix.core.errors import UserError, in_words
from hackmatrix.core.imports import missing
from hackmatrix.core.jax_defaults import drop_from_environment
from hackmatrix.core.streams import clean_output, discard_output, open_closed_streams
from hackmatrix.core.version import __version__

USAGE_ERROR = 2
FAILED = 1
SIGNALLED = 128  # plus the signal's number, as in shells
INTERRUPTED = 130  # 128 + SIGINT, as shells count
PIPE_CLOSED = 141  # 128 + SIGPIPE


class Command(NamedTuple):
    """A subcommand: a module of this package with `main(argv: list[str]) -> int`, and its help."""

    module: str
    help: str


COMMANDS = {
    "play": Command("play", "play the game in a browser"),
    "watch": Command("watch", "watch an agent play, and think along"),
    "replay": Command("replay", "show a saved game, or write it as a film"),
    "puzzles": Command("puzzles", "find puzzles in games of the packaged agent"),
    "page": Command("page", "write the page as files for any web server"),
    "train": Command("train", "train an agent"),
    "monitor": Command("monitor", "show the metrics of runs, live"),
    "evaluate": Command("evaluate", "measure how well an agent plays, on fixed seeds"),
    "tune": Command("tune", "search for training settings"),
    "compare": Command("compare", "compare runs over their seeds"),
    "reproduce": Command("reproduce", "train a run again, and compare the two bit for bit"),
    "data": Command("data", "record, verify and export games of agents"),
    "clone": Command("clone", "train a network on recorded games"),
    "checkpoint": Command("checkpoint", "list, verify and convert checkpoints"),
    "sb3": Command("sb3", "train and watch an agent of Stable-Baselines3"),
    "analyse": Command("analyse", "show how a network and a search evaluate a position"),
    "conformance": Command("conformance", "check the engine against recorded games"),
    "bench": Command("bench", "measure speed and memory"),
    "cache": Command("cache", "show or empty the programs kept on disk"),
    "serve": Command("serve", "run the game as a process that speaks JSON lines"),
    "tpu": Command("tpu", "train on cloud TPUs"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (default: that of the process) and returns its exit code."""
    name, *rest = list(sys.argv[1:] if argv is None else argv) or [""]
    return exit_code(f"hackmatrix {name}", lambda: _run(name, rest))


def exit_code(command: str, work: Callable[[], int]) -> int:
    """Runs a command and returns its exit code.

    A `UserError`, a missing package of an extra, a backend of JAX that does not start and an error
    of the file system become one line on stderr; Ctrl+C and a closed pipe end the command quietly.
    No control characters are printed but by what draws.
    """
    drop_from_environment()
    open_closed_streams()
    with clean_output():
        return _exit_code(command, work)


def _exit_code(command: str, work: Callable[[], int]) -> int:
    try:
        code = work()
        sys.stdout.flush()  # a closed pipe must raise here, not when the interpreter shuts down
        return code
    except UserError as error:
        _complain(command, str(error))
        return USAGE_ERROR
    except ModuleNotFoundError as error:
        if (how := missing(error.name)) is None:
            raise
        _complain(command, how)
        return USAGE_ERROR
    except (RuntimeError, AssertionError) as error:
        if (why := explain(error)) is None:
            raise
        _complain(command, why)
        return USAGE_ERROR
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        discard_output()
        return PIPE_CLOSED
    except OSError as error:  # a full disk, a folder that was deleted, a limit of file sizes
        _complain(command, in_words(error))
        return FAILED


def _complain(command: str, text: str) -> None:
    with contextlib.suppress(OSError):  # the terminal may be gone
        print(f"{command}: error: {text}", file=sys.stderr)


def _run(name: str, rest: list[str]) -> int:
    if name in COMMANDS:
        module = importlib.import_module(f"hackmatrix.cli.{COMMANDS[name].module}")
        code: int = module.main(rest)
        return code
    if name in ("", "-h", "--help"):
        print(_help())
        return 0 if name else USAGE_ERROR
    if name == "--version":
        print(f"hackmatrix {__version__}")
        return 0
    print(f"hackmatrix: error: {_unknown(name)}", file=sys.stderr)
    return USAGE_ERROR


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {command.help}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: hackmatrix [--help] [--version] COMMAND ...",
            "",
            "HackMatrix, a roguelike: play it, learn it, measure it.",
            "",
            "commands:",
            *lines,
            "",
            "`hackmatrix COMMAND --help` explains a command and shows an example.",
            f"Documents that it names, such as docs/networks.md, lie in {_documents()}",
        ]
    )


def _documents() -> Path:
    """The folder of the documents: in the installed package, or beside it in a clone."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "docs"
    return installed if installed.is_dir() else package.parent / "docs"


def _unknown(name: str) -> str:
    import difflib

    kind = "option" if name.startswith("-") else "command"
    near = difflib.get_close_matches(name, ["--help", "--version", *COMMANDS], n=1)
    hint = f"did you mean '{near[0]}'?" if near else "see 'hackmatrix --help'"
    return f"unknown {kind} '{name}', {hint}"
