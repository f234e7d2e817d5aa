"""Reads a pickle as data: an interpreter of its opcodes that has no way to call anything.

A pickle is a program for a small stack machine, and Python's own machine imports and calls whatever
the program names. This one builds numbers, texts, bytes and lists; where the program names a class
or a function, it leaves a `Global`, and where it calls one, a `RefusedCall` that says what would
have been called with what. So reading a file from a stranger runs nothing of it.

A `pickle.Unpickler` whose `find_class` returns such records runs nothing either, but that of Python
3.11 has no bounds: its memo is an array as long as the largest number in the file, so that 7 bytes
take 32 GB, and it hashes the keys of dicts, which a tuple of tuples makes endless in 125 bytes.
Here nothing is hashed, compared or printed that a file has nested, and the number of steps is
limited, as is the size of the file. Each step adds at most one value, so that time and memory are
limited too.
"""

import math
import pickletools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hackmatrix.core.errors import UserError

MOST_BYTES = 2**28  # of a file
MOST_STEPS = 1_000_000  # of the program; an array is about ten
_LONGEST_NAME = 200  # characters of a module, or of a name in it


class UnreadableError(ValueError):
    """A pickle that is damaged, or does what no file of arrays needs to do."""


class Global(NamedTuple):
    """A class or function that the pickle names."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(eq=False, repr=False, slots=True)  # both would follow a value into itself
class RefusedCall:
    """The result of a call that was not made: the callee, its arguments, and what was then set.

    A dict is one that nothing was called for. Its entries are pairs: keys are never hashed.
    """

    by: Any = None
    arguments: Any = None
    state: Any = None
    items: list[Any] = field(default_factory=list)
    entries: list[tuple[Any, Any]] = field(default_factory=list)


class _Mark:
    """The place on the stack where a collection begins."""


_MARK = _Mark()
_VALUES = {  # opcodes that push their argument
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE"),
    *("BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
}
_EMPTY: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": list,
    "EMPTY_SET": list,
    "EMPTY_DICT": RefusedCall,
    "MARK": lambda: _MARK,
}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_NOTHING = {"PROTO", "FRAME"}


def read_pickle(data: bytes, allowed: Callable[[Global], bool]) -> Any:
    """The content of a pickle; tuples and sets are lists, dicts are `RefusedCall`.

    Args:
        data: the pickle.
        allowed: whether a class or function may be named at all.

    Raises:
        UnreadableError: it names something that is not allowed, or is too long.
        Exception: of any kind; it is damaged.
    """
    machine = _Machine(allowed)
    for steps, (opcode, argument, _) in enumerate(pickletools.genops(data)):
        if opcode.name == "STOP":
            return machine.pop()
        if steps == MOST_STEPS:
            raise UnreadableError(f"is a pickle of more than {MOST_STEPS:,} steps")
        machine.step(opcode.name, argument)
    raise UnreadableError("is a pickle without an end")


class _Machine:
    """The stack and the memo of a pickle that is being read."""

    def __init__(self, allowed: Callable[[Global], bool]) -> None:
        self._allowed = allowed
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def pop(self) -> Any:
        """The top of the stack, taken off it."""
        value = self._stack.pop()
        if value is _MARK:
            raise UnreadableError("is a damaged pickle (a collection without its end)")
        return value

    def step(self, name: str, argument: Any) -> None:
        """Does what one opcode says."""
        if name in _VALUES:
            self._stack.append(argument)
        elif name in _EMPTY:
            self._stack.append(_EMPTY[name]())
        elif name in _TUPLES:
            self._stack.append([self.pop() for _ in range(_TUPLES[name])][::-1])
        elif name not in _NOTHING:
            handler = _HANDLERS.get(name)
            if handler is None:
                raise UnreadableError(f"is a pickle with the opcode {name}, which no array needs")
            handler(self, argument)

    def _to_mark(self) -> list[Any]:
        values: list[Any] = []
        while (value := self._stack.pop()) is not _MARK:
            values.append(value)
        return values[::-1]

    def drop(self, _: Any) -> None:
        """POP: a value, or a mark."""
        self._stack.pop()

    def drop_to_mark(self, _: Any) -> None:
        """POP_MARK."""
        self._to_mark()

    def duplicate(self, _: Any) -> None:
        """DUP."""
        self._stack.append(self._stack[-1])

    def collect(self, _: Any) -> None:
        """LIST, TUPLE, FROZENSET."""
        self._stack.append(self._to_mark())

    def collect_dict(self, _: Any) -> None:
        """DICT."""
        self._stack.append(RefusedCall(entries=_pairs(self._to_mark())))

    def append(self, _: Any) -> None:
        """APPEND."""
        value = self.pop()
        _extend(self._stack[-1], [value])

    def extend(self, _: Any) -> None:
        """APPENDS, ADDITEMS."""
        values = self._to_mark()
        _extend(self._stack[-1], values)

    def set_item(self, _: Any) -> None:
        """SETITEM."""
        value, key = self.pop(), self.pop()
        _update(self._stack[-1], [key, value])

    def set_items(self, _: Any) -> None:
        """SETITEMS."""
        values = self._to_mark()
        _update(self._stack[-1], values)

    def put(self, argument: Any) -> None:
        """PUT and its like; MEMOIZE, without an argument, takes the next place."""
        place = len(self._memo) if argument is None else argument
        if not 0 <= place <= MOST_STEPS:  # numbers that collide would make a dict slow
            raise UnreadableError("is a damaged pickle (a place in the memo that none needs)")
        self._memo[place] = self._stack[-1]

    def get(self, argument: Any) -> None:
        """GET and its like."""
        self._stack.append(self._memo[argument])

    def name(self, argument: Any) -> None:
        """GLOBAL: the module and the name in one text; STACK_GLOBAL: both on the stack."""
        if argument is None:
            name, module = self.pop(), self.pop()
        else:
            module, _, name = argument.partition(" ")
        if not isinstance(module, str) or not isinstance(name, str):
            raise UnreadableError("is a damaged pickle (a name that is no text)")
        named = Global(module[:_LONGEST_NAME], name[:_LONGEST_NAME])
        if named != (module, name) or not self._allowed(named):
            raise UnreadableError(
                f"names {ascii(str(named))[1:-1]:.80}, which is neither an array nor a container "
                "of arrays; nothing of the file was run"
            )
        self._stack.append(named)

    def call(self, _: Any) -> None:
        """REDUCE, NEWOBJ: what would be called, and its arguments."""
        arguments = self.pop()
        self._stack.append(RefusedCall(self.pop(), arguments))

    def call_with_names(self, _: Any) -> None:
        """NEWOBJ_EX: arguments and named arguments."""
        named, arguments = self.pop(), self.pop()
        self._stack.append(RefusedCall(self.pop(), [arguments, named]))

    def build(self, _: Any) -> None:
        """BUILD: the state of an object."""
        state = self.pop()
        if not isinstance(made := self._stack[-1], RefusedCall):
            raise UnreadableError("is a damaged pickle (a state without its object)")
        made.state = state


def _extend(target: Any, values: list[Any]) -> None:
    target = target.items if isinstance(target, RefusedCall) else target
    if not isinstance(target, list):
        raise UnreadableError("is a damaged pickle (values without their list)")
    target.extend(values)


def _update(target: Any, values: list[Any]) -> None:
    if not isinstance(target, RefusedCall):
        raise UnreadableError("is a damaged pickle (entries without their dict)")
    target.entries.extend(_pairs(values))


def _pairs(values: list[Any]) -> list[tuple[Any, Any]]:
    return list(zip(values[::2], values[1::2], strict=True))


_HANDLERS: dict[str, Callable[[_Machine, Any], None]] = {
    "POP": _Machine.drop,
    "POP_MARK": _Machine.drop_to_mark,
    "DUP": _Machine.duplicate,
    "LIST": _Machine.collect,
    "TUPLE": _Machine.collect,
    "FROZENSET": _Machine.collect,
    "DICT": _Machine.collect_dict,
    "APPEND": _Machine.append,
    "APPENDS": _Machine.extend,
    "ADDITEMS": _Machine.extend,
    "SETITEM": _Machine.set_item,
    "SETITEMS": _Machine.set_items,
    "PUT": _Machine.put,
    "BINPUT": _Machine.put,
    "LONG_BINPUT": _Machine.put,
    "MEMOIZE": _Machine.put,
    "GET": _Machine.get,
    "BINGET": _Machine.get,
    "LONG_BINGET": _Machine.get,
    "GLOBAL": _Machine.name,
    "STACK_GLOBAL": _Machine.name,
    "REDUCE": _Machine.call,
    "NEWOBJ": _Machine.call,
    "NEWOBJ_EX": _Machine.call_with_names,
    "BUILD": _Machine.build,
}


# --- Finds a network's params in a pickle, such as the original's `checkpoint_{step}.pkl` ---------


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
