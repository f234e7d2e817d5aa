"""Files of exported params: arrays in an `.npz`, and facts in a `.json` beside it.

`params_10.npz` holds `params.Dense_0.kernel`, `params.Dense_0.bias`, ...; `params_10.json` holds
facts about them. Reading never runs code from the file, and needs only the arrays: files from other
programs have no facts, or only some of them.

A large table may be there as int8[R, C], `params.player`, which is to be multiplied by
`params.player:scale`, float32[R, 1].
"""

import errno
import functools
import io
import json
import logging
import os
import re
import sys
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from hackmatrix.core.errors import UserError
from hackmatrix.core.files import write_pair
from hackmatrix.runs.names import PICKLES
from hackmatrix.runs.pickled import read_pickled_params

FORMAT = 1  # of the JSON file
FINAL = "final_params"
_LONGEST = 200  # characters of a reason, or of an array's name
_DEEPEST = 16  # parts of a name; networks have four
_MOST_ARRAYS = 10_000
_SCALE = ":scale"
_LARGE = 2**16  # numbers of a table that is worth rounding
_FREE_BYTES, _GROWTH = 2**28, 4  # params hardly shrink: a small file that fills memory is a trap

Arrays = dict[str, np.ndarray]


class Exported(NamedTuple):
    """Params read from a file."""

    path: Path  # of the arrays
    params: dict[str, Any]  # nested: {"params": {"Dense_0": {"kernel": ...}}}
    about: dict[str, Any]  # the facts beside it, see `Facts.as_json`; empty if there are none


def save_params(path: Path, params: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Writes `params` to `path` and `about` beside it, atomically (see `write_pair`).

    Args:
        path: ends in `.npz`.
        params: nested dicts of arrays.
        about: JSON object with facts; `format` is added.

    Raises:
        OSError: a file can't be written; older ones are left unchanged.
    """
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **dict(flat(params)))
    facts = json.dumps({"format": FORMAT, **about}, indent=2) + "\n"
    write_pair(path, buffer.getvalue(), path.with_suffix(".json"), facts.encode())


def round_tables(params: Mapping[str, Any]) -> dict[str, Any]:
    """Params with large tables as int8 and the scales of their rows, for `save_params`.

    The file is a fourth as large; a number is off by at most half a step of 1/127 of the largest in
    its row.
    """
    rounded: dict[str, Any] = {}
    for name, value in params.items():
        if isinstance(value, Mapping):
            rounded[name] = round_tables(value)
        elif np.ndim(value) == 2 and np.size(value) >= _LARGE:
            scales = np.abs(value).max(axis=1, keepdims=True).astype(np.float32) / 127
            rounded[name] = np.rint(value / np.where(scales == 0, 1, scales)).astype(np.int8)
            rounded[name + _SCALE] = scales
        else:
            rounded[name] = value
    return rounded


def load_params(path: Path) -> Exported:
    """Reads the files of `save_params`, arrays without facts, or a pickle of another trainer.

    Args:
        path: a file, or the folder of a run, from which the newest file is read.

    Raises:
        UserError: the file is missing or damaged, or holds something else.
    """
    if path.is_dir() and (folders := agent_folders(path)):
        raise UserError(f"{path}: has {len(folders)} agents: choose one, such as {folders[0]}")
    if path.is_dir():
        path = newest_params(path) or path / f"{FINAL}.npz"
    if path.suffix in PICKLES:
        return params_from_arrays(path, dict(flat(read_pickled_params(path))), {})
    return params_from_arrays(path, _read_arrays(path), _read_facts(path.with_suffix(".json")))


def params_from_arrays(path: Path, arrays: Mapping[str, np.ndarray], about: Any) -> Exported:
    """Params from arrays by name, such as `params.Dense_0.kernel`.

    Args:
        path: where they are from.
        arrays: by name.
        about: facts about them, as a JSON object; empty if there are none.

    Raises:
        UserError: an array is not of finite floats or has a name that none of ours has, or the
            facts are no object of this format.
    """
    for name, array in arrays.items():
        if len(name) > _LONGEST or name.count(".") >= _DEEPEST or not name.isprintable():
            raise UserError(f"{path}: no network has an array {name!r:.60}")
        if not np.issubdtype(array.dtype, np.floating):
            raise UserError(f"{path}: {name} holds {array.dtype}, not floats")
        if not np.isfinite(array).all():
            raise UserError(f"{path}: {name} holds NaN or infinite values")
    return Exported(path, _nest(path, arrays), _check_facts(path, about) if about else {})


def newest_params(run: Path) -> Path | None:
    """`final_params.npz` in a run's folder, else the file with the highest update, else None."""
    final = run / f"{FINAL}.npz"
    numbered = numbered_params(run)
    if final.exists():
        return final
    return numbered[max(numbered)] if numbered else None


def numbered_params(run: Path) -> dict[int, Path]:
    """The files `params_{update}.npz` of a run's folder, by update."""
    return {
        int(p.stem.removeprefix("params_")): p
        for p in run.glob("params_*.npz")
        if p.stem.removeprefix("params_").isdecimal()
    }


def remove_params(folder: Path, name: str) -> None:
    """Removes `{name}.npz` and `{name}.json`, if they exist."""
    for suffix in (".json", ".npz"):  # never facts without their params
        (folder / f"{name}{suffix}").unlink(missing_ok=True)


def facts_of_params(folder: Path, name: str) -> dict[str, Any]:
    """The facts beside `{name}.npz`; empty if one of the two files is missing or damaged."""
    try:
        return _read_facts(folder / f"{name}.json") if (folder / f"{name}.npz").exists() else {}
    except UserError:
        return {}


def update_of_params(folder: Path, name: str) -> int | None:
    """The update in the facts beside `{name}.npz`; None if it is not known."""
    update = facts_of_params(folder, name).get("update")
    return update if isinstance(update, int) else None


def agent_folders(run: Path) -> list[Path]:
    """The folders `seed_{s}` of a run with many agents, sorted by seed.

    Empty for a single agent.
    """
    numbered = [p for p in run.glob("seed_*") if p.name.removeprefix("seed_").isdecimal()]
    return sorted(numbered, key=seed_of)


def seed_of(folder: Path) -> int:
    """The seed of the agent in this folder."""
    return int(folder.name.removeprefix("seed_"))


def _read_arrays(path: Path) -> Arrays:
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):  # checked first: NumPy's own error advises pickle
                raise UserError(f"{path}: is no .npz file of params, or a damaged one")
            _check_size(path, file)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of old headers
                arrays = np.load(file, allow_pickle=False)
                contents = {name: arrays[name] for name in arrays.files}
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except UserError:  # it is a ValueError too
        raise
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from error
    except Exception as error:  # NumPy, its headers and zip files raise a dozen kinds
        reason = " ".join(str(error).split())[:_LONGEST]
        raise UserError(f"{path}: is no .npz file of params, or a damaged one ({reason})") from None
    for name, array in contents.items():
        if not isinstance(array, np.ndarray):
            raise UserError(f"{path}: {name!r} is no array")
    return _scaled(path, contents)


def _scaled(path: Path, arrays: Arrays) -> Arrays:
    """The arrays with rounded tables as float32."""
    scales = {name.removesuffix(_SCALE): x for name, x in arrays.items() if name.endswith(_SCALE)}
    tables = {name: x for name, x in arrays.items() if not name.endswith(_SCALE)}
    for name, scale in scales.items():
        table = tables.get(name)
        if table is None or table.dtype != np.int8 or scale.shape != (*table.shape[:1], 1):
            raise UserError(f"{path}: {name}{_SCALE} is not the scale of a table of int8")
        tables[name] = table * scale.astype(np.float32)
    return tables


def _check_size(path: Path, file: BinaryIO) -> None:
    """Raises `UserError` if the arrays of an archive would take far more than its own size."""
    size = file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
    file.seek(0)
    most = max(_FREE_BYTES, _GROWTH * size)
    if len(members) > _MOST_ARRAYS or sum(member.file_size for member in members) > most:
        raise UserError(
            f"{path}: holds more than {_MOST_ARRAYS:,} arrays or {most:,} bytes, as no params do"
        )


def _read_facts(path: Path) -> dict[str, Any]:
    if path.exists() and not path.is_file():  # a pipe would keep its reader waiting
        raise UserError(f"{path}: is no file")
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: is no JSON file, or a damaged one ({error})") from None
    return _check_facts(path, facts)


def _check_facts(path: Path, facts: Any) -> dict[str, Any]:
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise UserError(f"{path}: is no description of params in format {FORMAT}")
    if not isinstance(facts.get("config", {}), dict):
        raise UserError(f"{path}: config must be an object, got {facts['config']!r:.60}")
    return facts


def flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """The arrays of nested dicts, by their keys joined by dots."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, np.asarray(value)


def _nest(path: Path, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, array in arrays.items():
        *parents, leaf = name.split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
            if not isinstance(node, dict):
                raise UserError(f"{path}: {name} lies inside another array")
        if leaf in node:
            raise UserError(f"{path}: another array lies inside {name}")
        node[leaf] = array
    return tree


# --- Named arrays in a folder, written and read by Orbax ------------------------------------------


Shapes = dict[str, list[Any]]  # by name: [dtype, *shape]


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Writes arrays of at least one element to a new folder.

    Raises:
        OSError: they can't be written; the message is one line. Some files may be there.
    """
    import orbax.checkpoint as ocp  # takes two seconds, and is needed only here

    try:
        with _checkpointer() as checkpointer:
            checkpointer.save(path.absolute(), args=ocp.args.StandardSave(arrays))
    except OSError:
        raise
    except Exception as error:  # Orbax has no exception of its own: a full disk is a ValueError
        raise _cause(error) from error


def read_arrays(path: Path, shapes: Shapes) -> Arrays:
    """Reads arrays.

    Args:
        path: folder of `write_arrays`.
        shapes: of all of them.

    Raises:
        ValueError: the folder holds others; found before room is made for them.
    """
    import orbax.checkpoint as ocp

    with _checkpointer() as checkpointer:
        stored = checkpointer.metadata(path.absolute()).item_metadata.tree
        for name in dict.fromkeys([*shapes, *stored]):
            here = stored.get(name)
            there = None if here is None else [str(np.dtype(here.dtype)), *here.shape]
            if there != shapes.get(name):
                raise ValueError(f"{name} is {there}, not {shapes.get(name)}")
        target = {name: np.zeros(shape, dtype) for name, (dtype, *shape) in shapes.items()}
        restored = checkpointer.restore(path.absolute(), args=ocp.args.StandardRestore(target))
    return {name: np.asarray(array) for name, array in restored.items()}


def _checkpointer() -> Any:
    import orbax.checkpoint as ocp

    _silence_orbax()
    # Of several processes that train together this one alone saves, and waits for no other.
    alone = ocp.options.MultiprocessingOptions(
        primary_host=0, active_processes={0}, barrier_sync_key_prefix="hackmatrix"
    )
    handler = ocp.StandardCheckpointHandler(multiprocessing_options=alone)
    return ocp.Checkpointer(handler, multiprocessing_options=alone)


def _cause(error: Exception) -> OSError:
    """The error of the system behind one of Orbax's, whose messages have kilobytes."""
    text = " ".join(str(error).split())
    if found := re.search(r"os_error_code='(\d+)'", text):
        return OSError(int(found[1]), os.strerror(int(found[1])))
    return OSError(errno.EIO, "No space left on device" if "No space left" in text else text[:200])


@functools.cache  # once in a process
def _silence_orbax() -> None:
    """Keeps what Orbax prints about a failed save off the console: `write_arrays` raises it.

    It logs tracebacks through absl. The other writes of a save that failed end after their event
    loop is closed, each with a traceback from a thread of TensorStore.
    """
    logging.getLogger("absl").addFilter(
        lambda record: "_SignalingThread" not in record.getMessage()
    )
    hook = sys.unraisablehook

    def without_late_writes(unraisable: "sys.UnraisableHookArgs") -> None:
        if str(unraisable.exc_value) != "Event loop is closed" or unraisable.object is not None:
            hook(unraisable)

    sys.unraisablehook = without_late_writes
