"""Params as a `.safetensors` file, with their facts as a text in its metadata."""

import json
from pathlib import Path
from typing import Any

from hackmatrix.core.errors import UserError
from hackmatrix.core.extras import need
from hackmatrix.core.files import write_atomically
from hackmatrix.runs.params import Exported, flat, params_from_arrays

_FACTS = "hackmatrix"  # the key of the facts


def read_safetensors(path: Path) -> Exported:
    """Reads a file of `write_safetensors`, or arrays of the same names from another program.

    Raises:
        UserError: it can't be read, or holds something else.
    """
    need("safetensors")
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            about = json.loads((file.metadata() or {}).get(_FACTS, "{}"))
    except (SafetensorError, OSError, ValueError, TypeError, RecursionError) as error:
        reason = " ".join(str(error).split())[:120]
        raise UserError(f"{path}: is no .safetensors file, or a damaged one ({reason})") from None
    return params_from_arrays(path, arrays, about)


def write_safetensors(path: Path, params: dict[str, Any], about: dict[str, Any]) -> None:
    """Writes params and their facts; see `hackmatrix.runs.params.save_params`."""
    need("safetensors")
    from safetensors.numpy import save

    write_atomically(path, save(dict(flat(params)), metadata={_FACTS: json.dumps(about)}))
