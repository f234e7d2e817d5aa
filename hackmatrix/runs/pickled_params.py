"""Finds a network's params in a pickle, such as the original's `checkpoint_{step}.pkl`."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hackmatrix.core.errors import UserError
from hackmatrix.runs.pickled import (
    MOST_BYTES,
    Global,
    RefusedCall,
    UnreadableError,
    read_pickle,
)

_LAYER = "Dense_0"  # the first layer of the networks of flax
_DEEPEST, _MOST = 32, 20_000  # levels, and values, of a pickle that are looked at
_MOST_DIMENSIONS = 32  # of an array; NumPy's limit before 2.0
_DTYPE = re.compile(r"[<>=|]?[fiub][1248]")
_NAME = re.compile(r"\w{1,100}", re.ASCII)  # of a layer or an array
_NUMPY = ("numpy.core", "numpy._core")
_ALLOWED = {
    Global("numpy", "ndarray"),
    Global("numpy", "dtype"),
    Global("collections", "OrderedDict"),
    Global("_codecs", "encode"),
    *(Global(f"{core}.multiarray", name) for core in _NUMPY for name in ("_reconstruct", "scalar")),
    *(Global(f"{core}.numeric", "_frombuffer") for core in _NUMPY),
}
# Classes of these packages hold states of optimizers and training: they are read as containers.
_CONTAINERS = ("jax", "jaxlib", "flax", "optax", "chex", "hackmatrix", "__main__")


def read_pickled_params(path: Path) -> dict[str, Any]:
    """The params in a pickle, nested: {"params": {"Dense_0": {"kernel": ...}}}.

    Raises:
        UserError: the file can't be read, is no pickle of arrays, or holds no params.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UnreadableError(f"is larger than {MOST_BYTES // 2**20} MB")
        return params_in(path.read_bytes())
    except UnreadableError as error:
        raise UserError(f"{path}: {error}") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None


def params_in(data: bytes) -> dict[str, Any]:
    """The params in a pickle; see `read_pickled_params`.

    Raises:
        UnreadableError: it is no pickle of arrays, or holds no params.
    """
    try:
        layers = _layers(read_pickle(data, _is_allowed))
        return {"params": _Arrays(len(data)).of(layers, 0)}
    except UnreadableError:
        raise
    except Exception as error:  # odd files make pickletools and NumPy raise a dozen kinds
        reason = ascii(str(error))[1:-1][:120] or type(error).__name__
        raise UnreadableError(f"is a damaged pickle ({reason})") from None


def _is_allowed(named: Global) -> bool:
    return named in _ALLOWED or named.module.partition(".")[0] in _CONTAINERS


def _layers(content: Any) -> RefusedCall:
    """The dict that holds the first layer: nearest to the top, in params if several are.

    A state of Adam holds its moments in dicts of the same form, deeper than the params or beside
    them under other names.
    """
    level: list[tuple[bool, Any]] = [(False, content)]
    visited: set[int] = set()
    for _ in range(_DEEPEST):
        found = [(named, each) for named, each in level if _is_layers(each)]
        if found:
            return max(found, key=lambda pair: pair[0])[1]
        following = []
        for named, node in level:
            for key, value in _inside(node):
                if id(value) not in visited and isinstance(value, list | RefusedCall):
                    visited.add(id(value))
                    following.append((named or key == "params", value))
        if len(visited) > _MOST:
            raise UnreadableError(f"holds more than {_MOST:,} lists and dicts")
        level = following
    raise UnreadableError(f"holds no params of a network, {_LAYER} with its kernel and bias")


def _is_layers(value: Any) -> bool:
    entries = value.entries if isinstance(value, RefusedCall) else ()
    return any(key == _LAYER and isinstance(each, RefusedCall) for key, each in entries)


def _inside(value: Any) -> Iterator[tuple[Any, Any]]:
    """The keys and values of a container; an object's are its arguments, state and items."""
    if isinstance(value, list):
        yield from enumerate(value)
    elif isinstance(value, RefusedCall):
        yield from value.entries
        yield from enumerate([value.arguments, value.state, *value.items])


class _Arrays:
    """Makes trees of arrays, as many as a file of this size can hold.

    A dict may hold another one twice, which holds a third one twice, and many arrays may be of the
    same bytes: a short file can describe a tree without end.
    """

    def __init__(self, size: int) -> None:
        self._bytes_left = size
        self._values_left = _MOST

    def of(self, tree: RefusedCall, depth: int) -> dict[str, Any]:
        """A tree of dicts with NumPy arrays as its leaves."""
        if depth > _DEEPEST:
            raise UnreadableError(f"nests its params more than {_DEEPEST} levels deep")
        arrays: dict[str, Any] = {}
        for key, value in tree.entries:
            self._values_left -= 1
            if self._values_left < 0:
                raise UnreadableError(f"holds params of more than {_MOST:,} values")
            if not isinstance(key, str) or not _NAME.fullmatch(key):
                raise UnreadableError("holds params with a name that is no word")
            if not isinstance(value, RefusedCall):
                raise UnreadableError(f"holds params with {key}, which is no array")
            array = self._array(value)
            arrays[key] = self.of(value, depth + 1) if array is None else array
        return arrays

    def _array(self, value: RefusedCall) -> np.ndarray | None:
        """The array that a call would have returned; None if it would not have returned one."""
        if not isinstance(value.by, Global):
            return None
        arguments = value.arguments if isinstance(value.arguments, list) else []
        match value.by.name, arguments, value.state:
            case "_reconstruct", _, [_, shape, dtype, is_fortran, data]:
                return self._to_array(data, dtype, shape, is_fortran=bool(is_fortran))
            case "_frombuffer", [data, dtype, shape, order], _:
                return self._to_array(data, dtype, shape, is_fortran=order == "F")
            case "scalar", [dtype, data], _:
                return self._to_array(data, dtype, [], is_fortran=False)
            case "_reconstruct_array", [_, _, [_, shape, dtype, is_fortran, data], *_], _:  # JAX
                return self._to_array(data, dtype, shape, is_fortran=bool(is_fortran))
        return None

    def _to_array(self, data: Any, dtype: Any, shape: Any, *, is_fortran: bool) -> np.ndarray:
        """An array from its bytes; floats become float32."""
        element_type, content = _dtype(dtype), _bytes(data)
        lengths = shape if isinstance(shape, list) else [shape]
        if len(lengths) > _MOST_DIMENSIONS or not all(
            type(n) is int and 0 <= n <= MOST_BYTES for n in lengths
        ):
            raise UnreadableError("holds an array whose shape is no list of lengths")
        if math.prod(lengths) * element_type.itemsize != len(content):
            raise UnreadableError("holds an array whose shape does not fit its bytes")
        self._bytes_left -= len(content)
        if self._bytes_left < 0:
            raise UnreadableError("holds arrays that are larger than the file")
        array = np.frombuffer(content, element_type).reshape(
            lengths, order="F" if is_fortran else "C"
        )
        with np.errstate(over="ignore"):  # a double beyond float32 becomes infinite
            return array.astype(
                np.float32 if element_type.kind == "f" else element_type.newbyteorder("=")
            )


def _dtype(call: Any) -> "np.dtype[Any]":
    name = (
        call.arguments[0]
        if isinstance(call, RefusedCall) and call.by == ("numpy", "dtype")
        else None
    )
    if not isinstance(name, str) or not _DTYPE.fullmatch(name):
        said = ascii(name[:40]) if isinstance(name, str) else "odd values"
        raise UnreadableError(f"holds an array of {said}, which are no numbers")
    order = call.state[1] if isinstance(call.state, list) and len(call.state) > 1 else "="
    return np.dtype((order if order in ("<", ">") else "=") + name[-2:])


def _bytes(data: Any) -> bytes:
    """Bytes, which old protocols write as a call that encodes a text."""
    if isinstance(data, RefusedCall) and data.by == ("_codecs", "encode"):
        text, encoding = data.arguments
        if encoding == "latin1" and isinstance(text, str):
            data = text.encode("latin1")
    if not isinstance(data, bytes | bytearray):
        raise UnreadableError("holds an array without its bytes")
    return bytes(data)
