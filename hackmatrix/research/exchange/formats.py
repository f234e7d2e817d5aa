"""Reads and writes params by the ending of a file's name."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from hackmatrix.core.errors import UserError
from hackmatrix.research.exchange.onnx_file import read_onnx, write_onnx
from hackmatrix.research.exchange.safetensors_file import read_safetensors, write_safetensors
from hackmatrix.runs.names import PICKLES
from hackmatrix.runs.params import FORMAT, Exported, load_params, save_params

Write = Callable[[Path, dict[str, Any], dict[str, Any]], None]


class Format(NamedTuple):
    """The reader and the writer, if there is one, of files with an ending."""

    read: Callable[[Path], Exported]
    write: Write | None


FORMATS = {
    ".npz": Format(load_params, save_params),
    ".safetensors": Format(read_safetensors, write_safetensors),
    ".onnx": Format(read_onnx, write_onnx),
    **dict.fromkeys(PICKLES, Format(load_params, None)),
}
WRITTEN = [ending for ending, each in FORMATS.items() if each.write is not None]


def read_params(path: Path) -> Exported:
    """Reads a file of params.

    Raises:
        UserError: it can't be read, is damaged, or has an unknown ending.
    """
    if path.suffix not in FORMATS:
        raise UserError(f"{path}: is read if it ends in {', '.join(FORMATS)}")
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    return FORMATS[path.suffix].read(path)


def write_params(path: Path, params: dict[str, Any], about: dict[str, Any]) -> None:
    """Writes a new file of params with their facts.

    Raises:
        UserError: there is such a file already, its ending is not written, or the network can't be
            written in this format.
    """
    check_new(path)
    write = FORMATS[path.suffix].write
    assert write is not None
    write(path, params, {"format": FORMAT, **about})


def check_new(path: Path) -> None:
    """Raises `UserError` if a file of params can't be written there."""
    if path.suffix not in WRITTEN:
        raise UserError(f"{path}: is written if it ends in {', '.join(WRITTEN)}")
    beside = [path.with_suffix(".json")] if path.suffix == ".npz" else []
    for file in (path, *beside):
        if os.path.lexists(file):
            raise UserError(f"{file}: exists already: choose another name")
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"{path}: no file can be written into {path.parent}")
