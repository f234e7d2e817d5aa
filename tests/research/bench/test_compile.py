"""`hackmatrix bench compile`: processes are timed with an empty and a filled cache folder."""

import json
from pathlib import Path

import pytest

from hackmatrix.cli.main import main
from hackmatrix.research.bench import compile as compile_


def test_compile_empties_the_cache_folder_once_for_each(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def seconds(folder: Path) -> float:
        files = len(list(folder.iterdir()))
        (folder / "compiled").touch()
        return files

    monkeypatch.setattr(compile_, "_PROCESSES", {"a": seconds, "b": seconds})
    assert main(["bench", "compile", "--repeats", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["seconds"] == {
        name: {"empty": 0, "filled": 1} for name in "ab"
    }


def test_compile_times_processes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(0.2)\nprint(1)\ntime.sleep(0.5)")
    (tmp_path / "broken.py").write_text("raise SystemExit('no luck')")
    slow = compile_._to_first_output("slow")(tmp_path)
    assert slow > 0.2
    monkeypatch.setattr(compile_, "_PROCESSES", {"it": compile_._to_first_output("broken")})
    assert main(["bench", "compile"]) == 2
    assert capsys.readouterr().err.endswith("`broken` failed: no luck\n")
