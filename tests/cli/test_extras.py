"""Commands where packages of extras are missing."""

import importlib
import sys
from collections.abc import Callable

import pytest

from hackmatrix.cli.main import main
from hackmatrix.core.errors import UserError
from hackmatrix.core.imports import EXTRAS, missing, need


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
