"""Commands where packages of extras are missing."""

import importlib
import subprocess
import sys
from collections.abc import Callable

import pytest
from subcommands import subcommands

from hackmatrix.cli.main import main
from hackmatrix.core.errors import UserError
from hackmatrix.core.extras import EXTRAS, missing, need

HELP = """
import contextlib, io, sys
from hackmatrix.core.extras import EXTRAS
sys.modules.update(dict.fromkeys(EXTRAS))  # as if none were installed
from hackmatrix.cli.main import main
for command in {commands!r}:
    with contextlib.redirect_stdout(io.StringIO()) as told:
        try:
            code = main([*command.split(), "--help"])
        except SystemExit as end:
            code = end.code or 0
    print(command, code, "usage: hackmatrix" in told.getvalue())
"""


def test_help_needs_no_extra() -> None:
    commands = subcommands()
    code = HELP.format(commands=commands)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [f"{command} 0 True" for command in commands]


@pytest.mark.parametrize("module", EXTRAS)
def test_a_missing_package_is_one_line(
    module: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def body(_: list[str]) -> int:
        importlib.import_module(f"{module}.inner")
        return 0

    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("hackmatrix.cli.cache.main", body)
    assert main(["cache"]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error == f"hackmatrix cache: error: {missing(module)}\n"
    assert f"pip install 'hackmatrix[{EXTRAS[module]}]'" in error
    with pytest.raises(UserError, match=r"^needs "):
        need("json", module)


def test_other_missing_modules_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    body: Callable[[list[str]], object] = lambda _: importlib.import_module("no_such_module")  # noqa: E731
    monkeypatch.setattr("hackmatrix.cli.cache.main", body)
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        main(["cache"])
