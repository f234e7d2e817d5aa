"""Checkpoints of a run: `{run}/checkpoints/{update}/`, each complete or not there.

A checkpoint holds arrays by name (`arrays/`, written by Orbax), facts about them (`facts.json`) and
a manifest of checksums. It is made in a folder of another name and renamed when it is complete, so
a kill at any moment leaves the ones before it as they were.
"""

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hackmatrix.errors import UserError
from hackmatrix.storage.files import sync
from hackmatrix.storage.manifest import DamagedError, check_manifest, write_manifest

FORMAT = 1
FOLDER = "checkpoints"
_PARTIAL = ".saving-"
_SHAPES = "arrays"

Arrays = dict[str, np.ndarray]
Facts = dict[str, Any]


class Checkpoint(NamedTuple):
    """A checkpoint by its place."""

    path: Path
    update: int


def checkpoints_of(run: Path) -> list[Checkpoint]:
    """All checkpoints of a run, by update."""
    folder = run / FOLDER
    if not folder.is_dir():
        return []
    found = [
        Checkpoint(path, int(path.name))
        for path in folder.iterdir()
        if path.name.isdecimal() and not (path / "config.yaml").exists()  # a run may be called 1
    ]
    return sorted(found, key=lambda checkpoint: checkpoint.update)


def save_checkpoint(run: Path, update: int, arrays: Arrays, facts: Mapping[str, Any]) -> Path:
    """Writes a checkpoint of an update that has none yet.

    Args:
        run: the run's folder.
        update: its name.
        arrays: by name, without slashes.
        facts: what JSON can hold.

    Raises:
        OSError: it can't be written; what was there is still there.
    """
    folder = run / FOLDER
    folder.mkdir(exist_ok=True)
    partial = folder / f"{_PARTIAL}{update}-{os.getpid()}"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    shapes = {name: [str(array.dtype), *array.shape] for name, array in arrays.items()}
    try:
        # Orbax refuses arrays without elements; the shape is all there is to know of them.
        _write_arrays(partial / "arrays", {n: a for n, a in arrays.items() if a.size})
        text = json.dumps({"format": FORMAT, "update": update, **facts, _SHAPES: shapes}, indent=1)
        (partial / "facts.json").write_text(text + "\n", encoding="utf-8")
        write_manifest(partial)
        path = folder / str(update)
        partial.rename(path)
        sync(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return path


def remove_partial(run: Path) -> None:
    """Removes what a kill in the middle of a save has left. Nothing else may be saving."""
    for path in (run / FOLDER).glob(f"{_PARTIAL}*"):
        shutil.rmtree(path, ignore_errors=True)


def read_facts(path: Path) -> Facts:
    """The facts of a checkpoint, without its arrays and without a check of its files.

    Raises:
        DamagedError: they can't be read.
        UserError: another version wrote them.
    """
    try:
        facts = json.loads((path / "facts.json").read_text(encoding="utf-8"))
        known = facts["format"] == FORMAT
    except FileNotFoundError:
        raise DamagedError(f"{path} is damaged: the file facts.json is missing") from None
    except (OSError, ValueError, TypeError, KeyError):
        raise DamagedError(f"{path} is damaged: the file facts.json can't be read") from None
    if not known:
        raise UserError(
            f"{path} has the format {facts['format']}; this version reads format {FORMAT}"
        )
    return facts


def load_checkpoint(path: Path) -> tuple[Arrays, Facts]:
    """Arrays by name and facts of a checkpoint, all of whose files are checked first.

    Raises:
        DamagedError: a file is not as it was written; says which.
        UserError: another version wrote it.
    """
    check_manifest(path)
    facts = read_facts(path)
    shapes = {name: (shape, dtype) for name, (dtype, *shape) in facts[_SHAPES].items()}
    arrays = {name: np.zeros(shape, dtype) for name, (shape, dtype) in shapes.items()}
    filled = {name: array for name, array in arrays.items() if array.size}
    return arrays | _read_arrays(path / "arrays", filled), facts


def check_checkpoint(path: Path) -> str | None:
    """What is wrong with a checkpoint's files; None where all is well."""
    try:
        check_manifest(path)
        read_facts(path)
    except UserError as error:
        return str(error)
    return None


def remove_checkpoint(checkpoint: Checkpoint) -> None:
    """Removes a checkpoint at once, also where its many files take a while."""
    doomed = checkpoint.path.with_name(f"{_PARTIAL}doomed-{checkpoint.update}-{os.getpid()}")
    with contextlib.suppress(OSError):
        checkpoint.path.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def _write_arrays(path: Path, arrays: Arrays) -> None:
    import orbax.checkpoint as ocp  # takes two seconds, and only those who save need it

    try:
        with ocp.Checkpointer(ocp.StandardCheckpointHandler()) as checkpointer:
            checkpointer.save(path.absolute(), args=ocp.args.StandardSave(arrays))
    except OSError:
        raise
    except Exception as error:  # it has no exception of its own: a full disk is a ValueError
        raise OSError(errno.EIO, _cause(error)) from error


def _cause(error: Exception) -> str:
    """In one short line: Orbax's messages have kilobytes."""
    text = " ".join(str(error).split())
    return "No space left on device" if "No space left" in text else text[:200]


def _read_arrays(path: Path, target: Arrays) -> Arrays:
    import orbax.checkpoint as ocp

    with ocp.Checkpointer(ocp.StandardCheckpointHandler()) as checkpointer:
        restored = checkpointer.restore(path.absolute(), args=ocp.args.StandardRestore(target))
    return {name: np.asarray(array) for name, array in restored.items()}
