"""The transfers after which a bucket holds what a run's folder holds, in order.

A run is many objects, and a kill may come between any two of them. So some files seal others: a
checkpoint counts if its manifest is there, facts belong to the params beside them. A seal is
written after what it seals, and deleted before that changes.
"""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from hackmatrix.core.files import MANIFEST, write_atomically
from hackmatrix.runs.bucket import Address
from hackmatrix.runs.buckets import lease
from hackmatrix.runs.checkpoints import FOLDER
from hackmatrix.runs.folder import CONFIG, HOME, STARTS
from hackmatrix.runs.metrics_file import METRICS_FILE

_OF_WANDB = "wandb"  # folder of what Weights & Biases uploads itself
_CHECKPOINT = re.compile(rf"{FOLDER}/(\d+)/.+")
_PARAMS = re.compile(r"(?:seed_\d+/)?params_(\d+)\.(?:npz|json)")


class TransferStep(NamedTuple):
    """One step: an object to write, or to delete."""

    verb: str  # "write" or "delete"
    name: str


def checkpoint_of(name: str) -> int | None:
    """The update of the checkpoint that a file belongs to, by its name in the run's folder."""
    found = _CHECKPOINT.fullmatch(name)
    return int(found[1]) if found else None


def whole_checkpoints(names: Iterable[str]) -> list[int]:
    """The updates of the checkpoints whose manifests are there, in order."""
    found = (PurePosixPath(name) for name in names)
    return sorted(
        int(path.parts[1])
        for path in found
        if len(path.parts) == 3 and path.name == MANIFEST and checkpoint_of(str(path)) is not None
    )


def half_checkpoints(names: Iterable[str]) -> list[int]:
    """The updates of the checkpoints whose manifests are missing, in order."""
    names = list(names)
    begun = {update for name in names if (update := checkpoint_of(name)) is not None}
    return sorted(begun.difference(whole_checkpoints(names)))


def params_update(name: str) -> int | None:
    """The update of a file of numbered params, by its name in the run's folder."""
    found = _PARAMS.fullmatch(name)
    return int(found[1]) if found else None


def is_mirrored(name: str) -> bool:
    """Whether a file of a run's folder belongs in the bucket: none that is hidden or half saved."""
    parts = name.split("/")
    is_own = name in (lease.NAME, HOME) or parts[0] == _OF_WANDB
    return not is_own and not any(part.startswith(".") for part in parts)


def is_growing(name: str) -> bool:
    """Whether a file changes all the time while a run trains: rows, the log, events."""
    return rank(name) == _ROWS or rank(name) == _REST


def prunable(name: str) -> bool:
    """Whether a run removes such files while it trains: older checkpoints and their params."""
    return checkpoint_of(name) is not None or params_update(name) is not None


def steps(
    local: Mapping[str, str], remote: Mapping[str, str], doomed: Iterable[str]
) -> list[TransferStep]:
    """The steps from what a bucket holds to what a folder holds.

    Args:
        local: checksums of the folder's files, by name.
        remote: checksums of the bucket's objects, by name.
        doomed: objects to delete; done last, when the newest checkpoint is whole in the bucket.
    """
    changed = {name for name, crc in local.items() if remote.get(name) != crc}
    begun = {update for name in changed if (update := checkpoint_of(name)) is not None}
    strays = [n for n in remote if n not in local and checkpoint_of(n) in begun]
    changing = [*strays, *changed]
    seals = {seal for name in changing if (seal := _seal(name)) is not None and seal != name}
    broken = seals & remote.keys()
    found = [TransferStep("delete", name) for name in sorted({*strays, *broken}, key=_seals_first)]
    writes = sorted(changed | (broken & local.keys()), key=_order)
    found += [TransferStep("write", name) for name in writes]
    return found + [TransferStep("delete", name) for name in sorted(doomed, key=_seals_first)]


def rank(name: str) -> int:
    """The place of a file in the order of writing, smaller first."""
    if name == CONFIG:
        return 0
    if name in (METRICS_FILE, STARTS):
        return _ROWS  # a resumed run does not make again what is before its checkpoint
    if checkpoint_of(name) is not None:
        return 2
    return 3 if name.endswith((".npz", ".json")) else _REST


_ROWS, _REST = 1, 4


def _order(name: str) -> tuple[int, int, str, bool, str]:
    """Newest checkpoint first, seals after what they seal."""
    seal = _seal(name)
    return rank(name), -(checkpoint_of(name) or 0), seal or name, name == seal, name


def _seals_first(name: str) -> tuple[bool, str]:
    return _seal(name) != name, name


def _seal(name: str) -> str | None:
    """The file that seals a file; that file itself for a seal; None if nothing does."""
    if (update := checkpoint_of(name)) is not None:
        return f"{FOLDER}/{update}/{MANIFEST}"
    path = PurePosixPath(name)
    return str(path.with_suffix(".json")) if path.suffix in (".npz", ".json") else None


# --- bucket.json in a run's folder: which bucket it goes to, and which objects there are its own --


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
