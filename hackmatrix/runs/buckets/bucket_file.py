"""bucket.json in a run's folder: which bucket it goes to, and which objects there are its own."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hackmatrix.core.files import write_atomically
from hackmatrix.runs.folder import HOME
from hackmatrix.runs.storage.address import Address

Generations = dict[str, int]  # of objects, by name


def write_home(run: Path, address: Address, own: Mapping[str, int] | None = None) -> None:
    """Records the bucket of a run's folder.

    Args:
        run: the run's folder.
        address: of its folder in the bucket.
        own: generations of the objects there that the folder uploaded or fetched, so that it may
            delete them: of checkpoints and their params, others are never deleted.
    """
    content = {"url": str(address), "own": dict(own or {})}
    write_atomically(run / HOME, (json.dumps(content) + "\n").encode())


def home_of(run: Path) -> Address | None:
    """The address of the bucket that a run's folder goes to; None if it goes to none.

    A copy under another name goes to none: it is another run.
    """
    home = _address(_read(run))
    return home if home is not None and home.name == run.resolve().name else None


def own_objects(run: Path, address: Address) -> Generations:
    """The generations that `write_home` recorded for this address."""
    content = _read(run)
    own = content.get("own")
    if _address(content) != address or not isinstance(own, dict):
        return {}
    return {name: number for name, number in own.items() if type(number) is int}


def _read(run: Path) -> dict[str, Any]:
    try:
        content = json.loads((run / HOME).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _address(content: Mapping[str, Any]) -> Address | None:
    try:
        return Address.of(content["url"])
    except (KeyError, ValueError):
        return None
