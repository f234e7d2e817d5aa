"""Checkpoints of a run: `{run}/checkpoints/{update}/`, each complete or absent.

A checkpoint holds arrays by name (`arrays/`, written by Orbax), facts about them (`facts.json`) and
a manifest of checksums. It is written under a temporary name and renamed when complete, so a kill
at any moment leaves earlier checkpoints intact.
"""

import contextlib
import dataclasses
import json
import math
import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from hackmatrix.core.errors import UserError
from hackmatrix.core.files import (
    MANIFEST,
    PARTIAL,
    DamagedError,
    check_manifest,
    sync,
    write_manifest,
)
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.runs.params import Arrays, Shapes, read_arrays, write_arrays

# --- The facts of a checkpoint and of exported params: everything except the arrays ---------------


SCORE = "mean_return"  # score of an evaluation: the checkpoint with the highest is the best
OF_AGENTS = "agents"  # in an evaluation of many agents: the list of each agent's results

Evaluation = dict[str, Any]

_MOST = 2**53  # of a number
_IN_WORDS = {int: "a whole number", str: "a text", dict: "an object"}
_KINDS: dict[str, type] = {
    "update": int,
    "timesteps": int,
    "last_logged": int,
    "environment": str,
    "version": str,
    "config": dict,
}


@dataclass(frozen=True)
class Facts:
    """Facts of a checkpoint or of exported params; the fields are the names in their JSON."""

    update: int  # updates made since the run's start
    timesteps: int  # transitions made since the run's start, of each agent
    last_logged: int  # update of the last row of metrics; later updates are in the sums
    environment: str  # its id
    version: str  # of hackmatrix
    config: dict[str, Any]  # every setting of the run
    evaluation: Evaluation | None = None  # the evaluation of this update, if it was the best so far

    @property
    def score(self) -> float | None:
        """The score of the evaluation; None without one, or if it is not finite."""
        return score_in(self.evaluation)

    @property
    def num_agents(self) -> int:
        """Number of agents that the checkpoint holds."""
        return int(self.config.get("num_seeds", 1))  # older configurations have a single agent

    def of_agent(self, k: int) -> Self:
        """The facts of agent `k` alone, as in a run with only its seed."""
        if self.num_agents == 1:
            return self
        config = self.config | {"seed": self.config.get("seed", 0) + k, "num_seeds": 1}
        own = None if self.evaluation is None else self.evaluation[OF_AGENTS][k]
        return dataclasses.replace(self, config=config, evaluation=own)

    def as_json(self) -> dict[str, Any]:
        """The facts as a JSON object."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, facts: dict[str, Any], where: str) -> Self:
        """Reads the facts from a JSON object, which may have further fields.

        Args:
            facts: the object.
            where: name of the file for error messages.

        Raises:
            UserError: a fact is missing or has the wrong type; the message names it.
        """
        for name in (*_KINDS, "evaluation"):
            if name not in facts:
                raise UserError(f"{where}: holds no {name}; another version of hackmatrix wrote it")
        for name, kind in _KINDS.items():
            value = facts[name]
            if type(value) is not kind or (type(value) is int and not 0 <= value <= _MOST):
                raise UserError(f"{where}: {name} must be {_IN_WORDS[kind]}, got {value!r:.60}")
        _check_agents(facts["config"], where)
        evaluation = facts["evaluation"]
        if evaluation is not None and not _is_evaluation(evaluation):
            raise UserError(f"{where}: evaluation must be null or have a number as {SCORE}")
        result = cls(**{field.name: facts[field.name] for field in dataclasses.fields(cls)})
        if evaluation is not None and result.num_agents > 1:
            agents = evaluation.get(OF_AGENTS)
            if not isinstance(agents, list) or len(agents) != result.num_agents:
                raise UserError(f"{where}: evaluation must list {result.num_agents} {OF_AGENTS}")
            if not all(map(_is_evaluation, agents)):
                raise UserError(f"{where}: each of {OF_AGENTS} must have a number as {SCORE}")
        return result


def _check_agents(config: dict[str, Any], where: str) -> None:
    for name, least in (("num_seeds", 1), ("seed", 0)):
        value = config.get(name, least)
        if type(value) is not int or not least <= value <= _MOST:
            raise UserError(f"{where}: {name} must be {_IN_WORDS[int]}, got {value!r:.60}")


def score_in(evaluation: Any) -> float | None:
    """The score of an evaluation; None if there is none, or none that can be compared."""
    score = evaluation.get(SCORE) if isinstance(evaluation, dict) else None
    return float(score) if isinstance(score, Real) and math.isfinite(score) else None


def plays_hackmatrix(about: Mapping[str, Any]) -> bool:
    """Whether params with these facts play HackMatrix; without facts they are taken to do so."""
    return about.get("environment", ENVIRONMENT_ID) == ENVIRONMENT_ID


def _is_evaluation(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get(SCORE), Real)


# --- Checkpoints of a run: `{run}/checkpoints/{update}/`, each complete or absent -----------------


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
