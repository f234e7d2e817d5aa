"""A backend of JAX that does not start, in one line. Importing this module imports no JAX."""

import os
import re
import traceback
from collections.abc import Iterable
from pathlib import Path

_FAILED = re.compile(r"Unable to initialize backend '([^']*)': (.*)", re.DOTALL)
_HINT = re.compile(r"\(set JAX_PLATFORMS=.*|\(you may need to uninstall .*", re.DOTALL)
_OF_TPUS = re.compile(r"/dev/(accel|vfio/)\d+")
_MOST = 300  # characters of JAX's reason


def explain(error: RuntimeError | AssertionError) -> str | None:
    """Says which backend does not start, why, and what holds its TPU; None of other errors."""
    chosen = os.environ.get("JAX_PLATFORMS")
    if found := _FAILED.search(str(error)):
        name, reason = found[1], " ".join(_HINT.sub("", found[2]).split()).rstrip(" .")
    elif isinstance(error, AssertionError) and chosen and _is_of_jax(error):
        name, reason = chosen, "JAX finds no such device"
    else:
        return None
    holders = tpu_holders() if name == "tpu" else []
    held = f"; it is held by {', '.join(holders)}" if holders else ""
    how = f"JAX_PLATFORMS={chosen} asks for it, " if chosen else ""
    return (
        f"JAX's backend {name!r:.40} does not start: {reason:.{_MOST}}{held}; "
        f"{how}JAX_PLATFORMS=cpu plays on the CPU"
    )


def _is_of_jax(error: AssertionError) -> bool:
    """Whether JAX itself fails while it looks for backends: with cuda, and no GPU, it does so."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    return any(Path(frame.filename).name == "xla_bridge.py" for frame in last)


def tpu_holders(processes: Path = Path("/proc")) -> list[str]:
    """The other processes that have a TPU open, such as "process 4821 (python)", if they show."""
    return [
        f"process {process.name} ({_command(process)})"
        for process in sorted(processes.glob("[0-9]*"))
        if process.name != str(os.getpid()) and any(map(_OF_TPUS.fullmatch, _open_files(process)))
    ]


def _open_files(process: Path) -> Iterable[str]:
    try:
        return [os.readlink(file) for file in (process / "fd").iterdir()]
    except OSError:  # it has ended, or is another user's
        return []


def _command(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return "of another user"
