"""The fuzz target of the native engine, under the address and undefined-behaviour sanitizers.

`python tests/helpers/native_fuzz.py --seconds 60` feeds it positions full of pieces, and states,
saved positions, words and records that were changed at random, for that long.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hackmatrix.game.native import constants

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "tests/game/native/fuzz.cpp"
ENGINE = REPOSITORY / "hackmatrix/game/native"
FLAGS = (
    *("-std=c++17", "-O1", "-g", "-pthread"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)


def missing(folder: Path) -> str | None:
    """What the target can't be built without on this machine; None if all is there.

    Args:
        folder: where to try the compiler.
    """
    compiler = _compiler()
    if compiler is None:
        return "there is no C++ compiler"
    source = folder / "nothing.cpp"
    source.write_text("int main() {}\n")
    command = [*compiler, *FLAGS, str(source), "-o", str(folder / "nothing")]
    linked = subprocess.run(command, capture_output=True).returncode == 0
    runs = linked and subprocess.run([folder / "nothing"], capture_output=True).returncode == 0
    return None if runs else f"{compiler[0]} has no sanitizers here (libasan, libubsan)"


def build(folder: Path) -> Path:
    """Compiles the target into a folder; the compiler's errors go to stderr."""
    program = folder / "fuzz"
    constants.write(folder)
    includes = [f"-I{ENGINE}", f"-I{folder}"]
    command = [*(_compiler() or []), *FLAGS, *includes, str(SOURCE), "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def fuzz(program: Path, seconds: int, seed: int) -> subprocess.CompletedProcess[str]:
    """Runs the target; stdout counts what it played, stderr says what went wrong."""
    return subprocess.run([program, str(seconds), str(seed)], capture_output=True, text=True)


def _compiler() -> list[str] | None:
    named = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    return shlex.split(named) if named else None


def main() -> int:
    """Builds and runs it; exits with 1 if a sanitizer objects."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="how long (default: 60)")
    parser.add_argument("--seed", type=int, help="of an earlier run; new ones by default")
    options = parser.parse_args()
    seed = time.time_ns() % 2**32 if options.seed is None else options.seed
    with tempfile.TemporaryDirectory() as made:
        if why := missing(Path(made)):
            print(f"fuzz: left out, {why}")
            return 0
        done = fuzz(build(Path(made)), options.seconds, seed)
    print(f"fuzz: seed {seed}: {done.stdout}{done.stderr}".rstrip())
    return 0 if done.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
