"""Finds a network's params in a pickle, such as the original's `checkpoint_{step}.pkl`."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hackmatrix.errors import UserError
from hackmatrix.exchange.pickled import Global, Made, UnreadableError, read_pickle

_LAYER = "Dense_0"  # the first layer of the networks of flax
_DEEPEST, _MOST = 32, 20_000  # levels, and values, of a pickle that are looked at
_DTYPE = re.compile(r"[<>=|]?[fiub][1248]")
_NUMPY = ("numpy.core", "numpy._core")
_KNOWN = {
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
    content = read_pickle(data, _is_allowed)
    for tree in _layers(content):
        try:
            return {"params": _arrays_in(tree, [_MOST])}
        except RecursionError:
            raise UnreadableError("nests its params without end") from None
    raise UnreadableError(f"holds no params of a network, {_LAYER} with its kernel and bias")


def _is_allowed(named: Global) -> bool:
    return named in _KNOWN or named.module.partition(".")[0] in _CONTAINERS


def _layers(content: Any) -> Iterator[dict[Any, Any]]:
    """The dicts that hold the first layer, those nearest to the top first, of params before others.

    A state of Adam holds its moments in dicts of the same form, deeper than the params or beside
    them under other names.
    """
    level: list[tuple[bool, Any]] = [(False, content)]
    seen: set[int] = set()
    for _ in range(_DEEPEST):
        found = [(named, each) for named, each in level if _is_layers(each)]
        for _, each in sorted(found, key=lambda pair: not pair[0]):
            yield each
        following = []
        for named, each in level:
            for key, value in _inside(each):
                if id(value) not in seen and isinstance(value, dict | list | Made):
                    seen.add(id(value))
                    following.append((named or key == "params", value))
        if len(seen) > _MOST:
            raise UnreadableError(f"holds more than {_MOST:,} lists and dicts")
        level = following


def _is_layers(value: Any) -> bool:
    entries = dict(_inside(value)) if isinstance(value, dict | Made) else {}
    return isinstance(entries.get(_LAYER), dict | Made)


def _inside(value: Any) -> Iterator[tuple[Any, Any]]:
    """The keys and values of a container; an object's are its arguments, state and items."""
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value)
    elif isinstance(value, Made):
        yield from value.entries.items()
        yield from enumerate([value.arguments, value.state, *value.items])


def _arrays_in(tree: Any, left: list[int]) -> dict[str, Any]:
    """A tree of dicts with NumPy arrays as its leaves; `left` counts down its values.

    A dict may hold another one twice, which holds a third one twice: a short file can describe a
    tree without end.
    """
    arrays: dict[str, Any] = {}
    for key, value in _inside(tree):
        left[0] -= 1
        if left[0] < 0:
            raise UnreadableError(f"holds params of more than {_MOST:,} values")
        if not isinstance(key, str):
            continue  # arguments and state of an object that has entries too
        array = _array(value)
        arrays[key] = _arrays_in(value, left) if array is None else array
    return arrays


def _array(value: Any) -> np.ndarray | None:
    """The array that a call would have returned; None if it would not have returned one."""
    if not isinstance(value, Made) or not isinstance(value.by, Global):
        return None
    arguments = value.arguments if isinstance(value.arguments, list) else []
    match value.by.name, arguments, value.state:
        case "_reconstruct", _, [_, shape, dtype, is_fortran, data]:
            return _made(data, dtype, shape, is_fortran=bool(is_fortran))
        case "_frombuffer", [data, dtype, shape, order], _:
            return _made(data, dtype, shape, is_fortran=order == "F")
        case "scalar", [dtype, data], _:
            return _made(data, dtype, [], is_fortran=False)
        case "_reconstruct_array", [_, _, [_, shape, dtype, is_fortran, data], *_], _:  # of JAX
            return _made(data, dtype, shape, is_fortran=bool(is_fortran))
    return None


def _made(data: Any, dtype: Any, shape: Any, *, is_fortran: bool) -> np.ndarray:
    """An array from its bytes; floats become float32."""
    kind, content = _dtype(dtype), _bytes(data)
    lengths = shape if isinstance(shape, list) else [shape]
    if not all(type(n) is int and n >= 0 for n in lengths):
        raise UnreadableError("holds an array whose shape is no list of lengths")
    if math.prod(lengths) * kind.itemsize != len(content):
        raise UnreadableError("holds an array whose shape does not fit its bytes")
    array = np.frombuffer(content, kind).reshape(lengths, order="F" if is_fortran else "C")
    return array.astype(np.float32 if kind.kind == "f" else kind.newbyteorder("="))


def _dtype(made: Any) -> "np.dtype[Any]":
    name = made.arguments[0] if isinstance(made, Made) and made.by == ("numpy", "dtype") else None
    if not isinstance(name, str) or not _DTYPE.fullmatch(name):
        raise UnreadableError(f"holds an array of {name!r:.40}, which are no numbers")
    order = made.state[1] if isinstance(made.state, list) and len(made.state) > 1 else "="
    return np.dtype((order if order in ("<", ">") else "=") + name[-2:])


def _bytes(data: Any) -> bytes:
    """Bytes, which old protocols write as a call that encodes a text."""
    if isinstance(data, Made) and data.by == ("_codecs", "encode"):
        text, encoding = data.arguments
        if encoding == "latin1" and isinstance(text, str):
            data = text.encode("latin1")
    if not isinstance(data, bytes | bytearray):
        raise UnreadableError("holds an array without its bytes")
    return bytes(data)
