"""The command `hackmatrix` as the user can type it."""

import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[2]


def command_name() -> str:
    """`hackmatrix`, or what stands for it where that name on PATH is missing or another program.

    Quoted for a shell. In a clone that is not installed, the interpreter runs the package's folder.
    """
    own = Path(sysconfig.get_path("scripts")) / "hackmatrix"
    if not own.exists():
        return f"{shlex.quote(_python())} {shlex.quote(_near(_PACKAGE))}"
    found = shutil.which("hackmatrix")
    if found and own.samefile(found):
        return "hackmatrix"
    return shlex.quote(
        _near(own) if os.pardir not in Path(os.path.relpath(own)).parts else str(own)
    )


def _python() -> str:
    """The interpreter, by its name if PATH finds it by that."""
    found = shutil.which(name := Path(sys.executable).name)
    return name if found and Path(found).samefile(sys.executable) else sys.executable


def _near(path: Path) -> str:
    return os.path.relpath(path)
