"""The commands of `benchmarks/`: each has options, help and an example."""

import importlib
from pathlib import Path

import pytest

import benchmarks
from benchmarks.command import run_command
from hackmatrix.research.bench.options import Options
from hackmatrix.research.bench.replayed_games import ReplayError

FOLDER = Path(benchmarks.__file__).parent
COMMANDS = [path.stem for path in sorted(FOLDER.glob("*.py")) if "def main(" in path.read_text()]


def test_every_benchmark_is_a_command() -> None:
    others = {path.stem for path in FOLDER.glob("*.py")} - set(COMMANDS)
    assert others == {"__init__", "command"}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = importlib.import_module(f"benchmarks.{name}")
    with pytest.raises(SystemExit, match="0"):
        module.main(["--help"])
    usage, _, example = capsys.readouterr().out.partition("example:\n")
    assert usage.startswith(f"usage: python -m benchmarks.{name} ")
    assert "--json" in usage
    assert example.startswith(f"  python -m benchmarks.{name} ")
    assert module.main(["--jsno"]) == 2
    assert capsys.readouterr().err == (
        f"python -m benchmarks.{name}: error: unknown argument --jsno, did you mean --json?\n"
    )


def test_games_played_differently_are_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    def measure(_: Options) -> None:
        raise ReplayError("the Python engine plays differently")

    assert run_command("x", measure, Options, [], purpose="", example="") == 1
    assert capsys.readouterr() == ("", "hackmatrix bench: the Python engine plays differently\n")
