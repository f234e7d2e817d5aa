"""The machine, versions and commit that a benchmark or a run used."""

import datetime
import importlib.metadata
import platform
import subprocess
from pathlib import Path
from typing import Any

import jax

from hackmatrix.core.processes import num_cores
from hackmatrix.core.version import __version__


def machine() -> dict[str, Any]:
    """JAX's device, the processor, the cores this process may use, and the date, for `--json`."""
    return {
        "device": jax.devices()[0].device_kind,
        "processor": _processor(),
        "cores": num_cores(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def versions(*packages: str) -> dict[str, str]:
    """Versions of this package, Python, JAX and other installed packages."""
    others = {name: importlib.metadata.version(name) for name in packages}
    python = platform.python_version()
    return {"hackmatrix": __version__, "python": python, "jax": jax.__version__} | others


def commit() -> str | None:
    """The git commit of this package's sources, followed by "+" if files have changed since.

    None if they are not in a git checkout of their own.
    """
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    try:
        found = _git(root, "rev-parse", "HEAD")
        return found + "+" * bool(_git(root, "status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.SubprocessError):
        return None


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=5)
    return result.stdout.strip()


def line(machine: dict[str, Any], versions: dict[str, str]) -> str:
    """Machine and versions as one line of text."""
    packages = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (
        f"{machine['device']} ({machine['processor']}), {machine['cores']} cores, {packages}, "
        f"{machine['date']}"
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for entry in info.read_text().splitlines():
            if entry.startswith("model name"):
                return entry.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
