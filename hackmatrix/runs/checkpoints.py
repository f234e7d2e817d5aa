"""Checkpoints of a run: `{run}/checkpoints/{update}/`, each complete or absent.

A checkpoint holds arrays by name (`arrays/`, written by Orbax), facts about them (`facts.json`) and
a manifest of checksums. It is written under a temporary name and renamed when complete, so a kill
at any moment leaves earlier checkpoints intact.
"""

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hackmatrix.core.errors import UserError
from hackmatrix.core.files import PARTIAL, sync
from hackmatrix.core.manifest import NAME as MANIFEST
from hackmatrix.core.manifest import DamagedError, check_manifest, write_manifest
from hackmatrix.runs.arrays import Arrays, Shapes, read_arrays, write_arrays
from hackmatrix.runs.facts import Facts

FORMAT = 1
FOLDER = "checkpoints"
FACTS = "facts.json"


class Checkpoint(NamedTuple):
    """The path and update of a checkpoint; nothing of it has been read."""

    path: Path
    update: int


@dataclass(frozen=True)
class CheckedCheckpoint:
    """A checkpoint whose files have all been compared with its manifest."""

    path: Path
    facts: Facts
    _shapes: Shapes

    def read_arrays(self) -> Arrays:
        """The arrays by name. The files are not checked again.

        Raises:
            DamagedError: they are not what the facts say.
        """
        empty = {name: shape for name, shape in self._shapes.items() if 0 in shape[1:]}
        filled = {name: shape for name, shape in self._shapes.items() if name not in empty}
        arrays = {name: np.zeros(shape, dtype) for name, (dtype, *shape) in empty.items()}
        try:
            return arrays | read_arrays(self.path / "arrays", filled)
        except Exception as error:  # Orbax and TensorStore have no exception of their own
            reason = " ".join(str(error).split())[:200]
            raise DamagedError(f"{self.path} is damaged: arrays can't be read ({reason})") from None


def checkpoints_of(run: Path) -> list[Checkpoint]:
    """All checkpoints of a run, by update."""
    folder = run / FOLDER
    if not folder.is_dir():
        return []
    found = [Checkpoint(path, int(path.name)) for path in folder.iterdir() if _is_one(path)]
    return sorted(found, key=lambda checkpoint: checkpoint.update)


def _is_one(path: Path) -> bool:
    """Whether a path is a checkpoint, whole or damaged; a stray file or folder is none."""
    is_number = path.name.isdecimal() and path.name == str(int(path.name))
    is_run = (path / "config.yaml").exists()  # a run may be called 1
    return is_number and not is_run and any((path / name).is_file() for name in (FACTS, MANIFEST))


def best_checkpoint(run: Path) -> Checkpoint | None:
    """The checkpoint with the highest score, the oldest on a tie; None if none has a score."""
    scores = [(score_of(checkpoint), checkpoint) for checkpoint in checkpoints_of(run)]
    evaluated = [(score, checkpoint) for score, checkpoint in scores if score is not None]
    return max(evaluated, key=lambda pair: pair[0])[1] if evaluated else None


def score_of(checkpoint: Checkpoint) -> float | None:
    """The score of a checkpoint's evaluation; None if there is none or it can't be read."""
    try:
        return read_facts(checkpoint.path).score
    except UserError:  # a damaged checkpoint is reported when it is used
        return None


def save_checkpoint(
    run: Path, arrays: Arrays, facts: Facts, check: Callable[[], None] = lambda: None
) -> Path:
    """Writes the checkpoint of an update that has none yet.

    Args:
        run: the run's folder.
        arrays: by name, without slashes.
        facts: about them; `facts.update` names the checkpoint.
        check: raises an OSError if the folder is no longer the run's; called before the
            checkpoint gets its name.

    Returns:
        The checkpoint's folder.

    Raises:
        OSError: it can't be written; earlier checkpoints are left unchanged.
    """
    folder = run / FOLDER
    folder.mkdir(exist_ok=True)
    partial = folder / f"{PARTIAL}{facts.update}-{os.getpid()}"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    shapes: Shapes = {name: [str(array.dtype), *array.shape] for name, array in arrays.items()}
    try:
        # Orbax refuses empty arrays; their shape is enough to restore them.
        write_arrays(partial / "arrays", {n: a for n, a in arrays.items() if a.size})
        check()
        text = json.dumps({"format": FORMAT, **facts.as_json(), "arrays": shapes}, indent=1)
        (partial / FACTS).write_text(text + "\n", encoding="utf-8")
        write_manifest(partial)
        path = folder / str(facts.update)
        if path.exists() and not _is_one(path):
            path.rename(folder / f"{path.name}.stray")
        check()
        partial.rename(path)
        sync(folder)
    except OSError:
        _remove_with_late_writes(partial)
        with contextlib.suppress(OSError):  # Orbax makes a folder anew that was moved away
            folder.rmdir()
            run.rmdir()
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return path


def _remove_with_late_writes(partial: Path) -> None:
    """Removes what a failed save wrote; TensorStore's threads write on, and make folders anew."""
    for _ in range(10):
        shutil.rmtree(partial, ignore_errors=True)
        time.sleep(0.05)
    shutil.rmtree(partial, ignore_errors=True)


def remove_partial(run: Path) -> None:
    """Removes the checkpoints whose saving was killed. No other process may be saving."""
    for path in (run / FOLDER).glob(f"{PARTIAL}*"):
        shutil.rmtree(path, ignore_errors=True)


def remove_checkpoint(checkpoint: Checkpoint) -> None:
    """Removes a checkpoint: renames it first, which is atomic, then deletes its files.

    Raises:
        OSError: it can't be renamed. What can't be deleted later is left for `remove_partial`.
    """
    doomed = checkpoint.path.with_name(f"{PARTIAL}doomed-{checkpoint.update}-{os.getpid()}")
    checkpoint.path.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def read_facts(path: Path) -> Facts:
    """Reads the facts of a checkpoint; does not read its arrays or check its files.

    Raises:
        DamagedError: they can't be read.
        UserError: another version wrote them.
    """
    return _facts(path, _read_json(path))


def check_checkpoint(path: Path) -> CheckedCheckpoint:
    """Reads all files of a checkpoint once and compares them with its manifest.

    Raises:
        DamagedError: a file was changed; the message names it.
        UserError: another version wrote it.
    """
    check_manifest(path)
    content = _read_json(path)
    facts, shapes = _facts(path, content), content.get("arrays")
    if not isinstance(shapes, dict) or not all(map(_is_shape, shapes.values())):
        raise DamagedError(f"{path} is damaged: the file {FACTS} does not list the arrays")
    return CheckedCheckpoint(path, facts, shapes)


def load_checkpoint(path: Path) -> tuple[Arrays, Facts]:
    """Checks the files of a checkpoint and reads its arrays by name and its facts.

    Raises:
        DamagedError: a file was changed; the message names it.
        UserError: another version wrote it.
    """
    checkpoint = check_checkpoint(path)
    return checkpoint.read_arrays(), checkpoint.facts


def is_whole(path: Path) -> bool:
    """Whether a checkpoint can be loaded, judged by its manifest and its facts."""
    try:
        check_checkpoint(path)
    except UserError:
        return False
    return True


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads((path / FACTS).read_text(encoding="utf-8"))
        is_supported = content["format"] == FORMAT
    except FileNotFoundError:
        raise DamagedError(f"{path} is damaged: the file {FACTS} is missing") from None
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        raise DamagedError(f"{path} is damaged: the file {FACTS} can't be read") from None
    if not is_supported:
        raise UserError(
            f"{path} has the format {content['format']!r:.60}; this version reads format {FORMAT}"
        )
    return content


def _is_shape(shape: Any) -> bool:
    """Whether it is the name of a type of numbers, followed by lengths."""
    try:
        dtype, *lengths = shape
        is_number = isinstance(dtype, str) and not np.dtype(dtype).hasobject
    except (TypeError, ValueError):
        return False
    return is_number and all(type(n) is int and 0 <= n < 2**31 for n in lengths)


def _facts(path: Path, content: dict[str, Any]) -> Facts:
    return Facts.from_json(content, str(path / FACTS))
