"""Sizes of installations: the core, and the core with each extra, from the wheel."""

import os
import platform
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.command import run_command
from hackmatrix.core.options import option
from hackmatrix.research.bench.options import Options

ROOT = Path(__file__).parents[1]
_UNASKED = ("bench", "sb3")  # they bring other libraries and torch


@dataclass(frozen=True)
class SizeOptions(Options):
    """The options of the command."""

    extras: tuple[str, ...] = option(
        (), f"extras to install, each alone; all but {' and '.join(_UNASKED)} unless given"
    )


class Size(NamedTuple):
    """An installation as pip leaves it, without pip itself."""

    megabytes: float  # 10**6 bytes of all files
    bytecode: float  # megabytes of them that pip compiled
    packages: int  # hackmatrix among them
    seconds: float  # for pip to fetch and install them


class Sizes(NamedTuple):
    """The sizes by extra; "" is the core."""

    python: str
    sizes: dict[str, Size]

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        return {"python": self.python, **{n: each._asdict() for n, each in self.sizes.items()}}

    def text(self) -> str:
        """The figures as a table of Markdown."""
        lines = [
            "| `pip install` | MB | of it bytecode | packages | seconds |",
            "|---|---:|---:|---:|---:|",
        ]
        for extra, (megabytes, bytecode, packages, seconds) in self.sizes.items():
            name = _command(extra).removeprefix("pip install ")
            figures = f"{megabytes:.0f} | {bytecode:.0f} | {packages} | {seconds:.0f}"
            lines.append(f"| `{name}` | {figures} |")
        return "\n".join([*lines, "", f"Python {self.python}, {platform.platform()}"])


def measure(options: SizeOptions) -> Sizes:
    """Builds the wheel, and installs it into an environment of its own for each extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    known = [extra for extra in project["optional-dependencies"] if extra not in _UNASKED]
    with tempfile.TemporaryDirectory() as folder:
        _run(*_pip("wheel", "--no-deps", "--no-build-isolation", "-w", folder, ROOT))
        (wheel,) = Path(folder).glob("*.whl")
        sizes = {}
        for extra in ("", *(options.extras or known)):
            print(f"+ {_command(extra)}", file=sys.stderr, flush=True)
            sizes[extra] = _size_of(wheel, extra)
    return Sizes(platform.python_version(), sizes)


def _command(extra: str) -> str:
    name = f"'hackmatrix[{extra}]'" if extra else "hackmatrix"
    return f"pip install {name}"


def _size_of(wheel: Path, extra: str) -> Size:
    with tempfile.TemporaryDirectory() as folder:
        _run(sys.executable, "-m", "venv", "--without-pip", folder)
        wanted = f"{wheel}[{extra}]" if extra else wheel
        began = time.perf_counter()
        _run(*_pip("--python", folder, "install", wanted))
        seconds = time.perf_counter() - began
        (packages,) = Path(folder).glob("lib/python*/site-packages")
        files = [path for path in packages.rglob("*") if path.is_file()]
        compiled = [path for path in files if path.suffix == ".pyc"]
        number = len(list(packages.glob("*.dist-info")))
        return Size(_megabytes(files), _megabytes(compiled), number, seconds)


def _megabytes(files: Sequence[Path]) -> float:
    return sum(path.stat().st_size for path in files) / 1e6


def _pip(*words: str | Path) -> list[str | Path]:
    return [sys.executable, "-m", "pip", "-qq", "--disable-pip-version-check", *words]


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, stdout=sys.stderr, env={**os.environ, "PYTHONPATH": ""})


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "install_sizes",
        measure,
        SizeOptions,
        argv,
        purpose="Installs the wheel with each extra, and says how large that is.",
        example="--extras train film\n      the core, and the core with each of the two",
    )


if __name__ == "__main__":
    sys.exit(main())
