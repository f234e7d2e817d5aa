"""The game in C++ for CPUs: the files of `engine/`, without JAX or compile time.

`docs/native-engine.md` says how it is laid out. It is left out where no C++ compiler was there at
the installation, and on processors older than those it is built for: `available` tells.
"""

import platform
import warnings
from importlib.util import find_spec
from pathlib import Path

_NEEDED = {"avx2", "bmi2", "fma"}  # of x86-64-v3, for which `hatch_build.py` compiles
_PROCESSOR = Path("/proc/cpuinfo")
_IN_CLONE = (Path(__file__).parents[3] / "hatch_build.py").exists()


def _processor_will_do() -> bool:
    """Whether the processor has all that the module may use."""
    if platform.machine() not in ("x86_64", "AMD64") or not _PROCESSOR.exists():
        return True
    with _PROCESSOR.open() as facts:
        flags = next((line for line in facts if line.startswith("flags")), "")
    return set(flags.split()) >= _NEEDED


def missing_note() -> str | None:
    """A line for users where the module is missing; None if it is there."""
    if available:
        return None
    how = "`make setup` builds it" if _IN_CLONE else "docs/native-engine.md says how to get it"
    return f"the native engine is missing, so games run some ten times slower: {how}"


available = find_spec("hackmatrix.game.native._native") is not None and _processor_will_do()


def warn_if_stale() -> None:
    """Warns if the module was built from other sources than those beside it."""
    from hackmatrix.game.native import _native, constants

    if constants.source_digest() != _native.SOURCE_DIGEST:
        warnings.warn(
            "the native engine was built from other sources than those here: "
            "`make setup` builds it anew",
            RuntimeWarning,
            stacklevel=2,
        )


if available and _IN_CLONE:
    warn_if_stale()
