"""The command `hackmatrix` as the user can type it."""

import os
import shutil
import sysconfig
from pathlib import Path


def typed_command() -> str:
    """`hackmatrix`, or its path where that name on PATH is missing or another program."""
    own = Path(sysconfig.get_path("scripts")) / "hackmatrix"
    found = shutil.which("hackmatrix")
    if not own.exists() or (found and own.samefile(found)):
        return "hackmatrix"
    near = os.path.relpath(own)
    return str(own) if near.startswith(os.pardir) else near
