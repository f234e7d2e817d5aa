"""Named arrays in a folder, written and read by Orbax."""

import errno
import functools
import logging
import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]
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
