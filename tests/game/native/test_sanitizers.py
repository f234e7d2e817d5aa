"""The engine under the address and undefined-behaviour sanitizers."""

import shutil
import subprocess
from pathlib import Path

import pytest

from hackmatrix.game import native

COMPILER = shutil.which("g++") or shutil.which("c++")


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
def test_fuzzed_play_has_no_undefined_behaviour(tmp_path: Path) -> None:
    program, source = tmp_path / "fuzz", Path(__file__).with_name("fuzz.cpp")
    flags = ["-std=c++17", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    folder = str(Path(native.__file__).parent)
    subprocess.run(
        [str(COMPILER), *flags, "-pthread", "-I", folder, str(source), "-o", str(program)],
        check=True,
    )
    found = subprocess.run([program, "20000"], check=True, capture_output=True, text=True).stdout
    steps, wins, _ = (int(word) for word in found.split() if word.isdigit())
    assert steps > 500_000
    assert wins > 10
