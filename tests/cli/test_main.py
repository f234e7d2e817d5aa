"""The command line's shell: help, exit codes and errors, with stand-ins for the subcommands."""

import subprocess
import sys
from collections.abc import Callable
from types import ModuleType

import pytest

from hackmatrix import __version__
from hackmatrix.cli.main import COMMANDS, Command, main
from hackmatrix.core.errors import UserError

Body = Callable[[list[str]], int]


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[Body], None]:
    """Registers a function as the subcommand `stand-in`."""

    def register(body: Body) -> None:
        module = ModuleType("hackmatrix.cli.stand_in")
        module.main = body
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(COMMANDS, "stand-in", Command("stand_in", "a stand-in"))

    return register


def raising(error: BaseException) -> Body:
    def body(_: list[str]) -> int:
        raise error

    return body


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_every_command(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([flag]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out and command.help in out for name, command in COMMANDS.items())
    assert max(map(len, out.splitlines())) <= 100


def test_no_arguments_print_the_help_and_fail(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert capsys.readouterr().out.startswith("usage: hackmatrix")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"hackmatrix {__version__}\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("trian", "unknown command 'trian', did you mean 'train'?"),
        ("Evaluate", "unknown command 'Evaluate', did you mean 'evaluate'?"),
        ("xyzzy", "unknown command 'xyzzy', see 'hackmatrix --help'"),
        ("--verison", "unknown option '--verison', did you mean '--version'?"),
    ],
)
def test_unknown_name(name: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name]) == 2
    assert capsys.readouterr() == ("", f"hackmatrix: error: {message}\n")


def test_command_gets_its_arguments_and_gives_the_exit_code(
    stand_in: Callable[[Body], None],
) -> None:
    seen: list[list[str]] = []

    def body(argv: list[str]) -> int:
        seen.append(argv)
        return 1

    stand_in(body)
    assert main(["stand-in", "--help", "file"]) == 1
    assert seen == [["--help", "file"]]


def test_user_error_is_one_line(
    stand_in: Callable[[Body], None], capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(raising(UserError("seed: must be 0 or more, not -1")))
    assert main(["stand-in"]) == 2
    message = "hackmatrix stand-in: error: seed: must be 0 or more, not -1\n"
    assert capsys.readouterr() == ("", message)


def test_interrupt(stand_in: Callable[[Body], None], capsys: pytest.CaptureFixture[str]) -> None:
    stand_in(raising(KeyboardInterrupt()))
    assert main(["stand-in"]) == 130
    assert capsys.readouterr() == ("", "")


def test_other_errors_are_not_hidden(stand_in: Callable[[Body], None]) -> None:
    stand_in(raising(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        main(["stand-in"])


def test_closed_pipe_is_quiet() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "hackmatrix", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr as stderr:
        assert stderr.read() == b""
    assert process.wait() == 141


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from hackmatrix.cli.main import main\n"
        "code = main(['--help'])\n"
        "heavy = {'jax', 'numpy', 'flax', 'tyro', 'rich', 'yaml'} & set(sys.modules)\n"
        "code = code or main(['bench', '--help'])\n"
        "heavy |= {'jax', 'numpy', 'flax'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else code)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("usage: hackmatrix")
