"""In the process of somebody else: other settings of JAX, and outside the main thread.

`host_program.py` uses the package in each of its ways and prints checksums; under no setting may
one of them be another.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import host_program
import pytest
from host_program import STRICT
from paths import ROOT

pytestmark = pytest.mark.thorough

QUICK = ["environments", "agents", "evaluations", "training"]
IN_A_THREAD = {"HOST_THREAD": "1"}
SETTINGS = {
    "64 bits, strict, in a thread": {"JAX_ENABLE_X64": "1"} | STRICT | IN_A_THREAD,
    "without jit": {"JAX_DISABLE_JIT": "1"},
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[str]]:
    def run(ways: list[str], settings: dict[str, str]) -> list[str]:
        folder: Path = tmp_path_factory.mktemp("runs")
        paths = {"PYTHONPATH": str(ROOT / "examples")}  # where the frog is
        process = subprocess.run(
            [sys.executable, host_program.__file__, folder, *ways],
            env=os.environ | paths | settings,
            capture_output=True,
            text=True,
        )
        assert process.returncode == 0, process.stderr
        return [line for line in process.stdout.splitlines() if line.split()[0] in ways]

    return run


@pytest.fixture(scope="module")
def by_default(results: Callable[..., list[str]]) -> list[str]:
    return results(QUICK, {})


@pytest.mark.parametrize(
    "setting",
    [
        "64 bits, strict, in a thread",
        pytest.param("without jit", marks=pytest.mark.slow),
    ],
)
def test_results_are_those_of_the_defaults(
    results: Callable[..., list[str]], by_default: list[str], setting: str
) -> None:
    assert len(by_default) > len(QUICK)
    assert results(QUICK, SETTINGS[setting]) == by_default


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("way", ["clients", "more_trainings"])
def test_results_of_what_compiles_for_long(results: Callable[..., list[str]], way: str) -> None:
    by_default = results([way], {})
    for name, settings in SETTINGS.items():
        assert results([way], settings) == by_default, name
