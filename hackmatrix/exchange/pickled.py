"""Reads a pickle as data: an interpreter of its opcodes that has no way to call anything.

A pickle is a program for a small stack machine, and Python's own machine imports and calls whatever
the program names. This one builds numbers, texts, bytes, lists and dicts; where the program names a
class or a function, it leaves a `Global`, and where it calls one, a `Made` that says what would
have been called with what. So reading a file from a stranger runs nothing of it.
"""

import pickletools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Key = str | int | float | bytes | bool | None


class UnreadableError(ValueError):
    """A pickle that is damaged, or does what no file of arrays needs to do."""


class Global(NamedTuple):
    """A class or function that the pickle names."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass
class Made:
    """What a call would have returned: what was called, with what, and what was then set on it."""

    by: Any
    arguments: Any
    state: Any = None
    items: list[Any] = field(default_factory=list)
    entries: dict[Any, Any] = field(default_factory=dict)


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
    "EMPTY_DICT": dict,
    "MARK": lambda: _MARK,
}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_NOTHING = {"PROTO", "FRAME"}


def read_pickle(data: bytes, allowed: Callable[[Global], bool]) -> Any:
    """What a pickle describes; tuples and sets are lists.

    Args:
        data: the pickle.
        allowed: whether a class or function may be named at all.

    Raises:
        UnreadableError: it is damaged, or names something that is not allowed.
    """
    machine = _Machine(allowed)
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "STOP":
                return machine.pop()
            machine.step(opcode.name, argument)
    except UnreadableError:
        raise
    except Exception as error:  # pickletools raises many kinds on damaged files
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise UnreadableError(f"is a damaged pickle ({reason})") from None
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
        self._stack.append(_pairs(self._to_mark()))

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
        self._memo[len(self._memo) if argument is None else argument] = self._stack[-1]

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
        named = Global(module, name)
        if not self._allowed(named):
            raise UnreadableError(
                f"names {named!s:.80}, which is neither an array nor a container of arrays; "
                "nothing of the file was run"
            )
        self._stack.append(named)

    def call(self, _: Any) -> None:
        """REDUCE, NEWOBJ: what would be called, and its arguments."""
        arguments = self.pop()
        self._stack.append(Made(self.pop(), arguments))

    def call_with_names(self, _: Any) -> None:
        """NEWOBJ_EX: arguments and named arguments."""
        named, arguments = self.pop(), self.pop()
        self._stack.append(Made(self.pop(), [arguments, named]))

    def build(self, _: Any) -> None:
        """BUILD: the state of an object."""
        state = self.pop()
        if not isinstance(made := self._stack[-1], Made):
            raise UnreadableError("is a damaged pickle (a state without its object)")
        made.state = state


def _extend(target: Any, values: list[Any]) -> None:
    target = target.items if isinstance(target, Made) else target
    if not isinstance(target, list):
        raise UnreadableError("is a damaged pickle (values without their list)")
    target.extend(values)


def _update(target: Any, values: list[Any]) -> None:
    target = target.entries if isinstance(target, Made) else target
    if not isinstance(target, dict):
        raise UnreadableError("is a damaged pickle (entries without their dict)")
    target.update(_pairs(values))


def _pairs(values: list[Any]) -> dict[Key, Any]:
    keys = values[::2]
    if len(values) % 2 or not all(key is None or type(key) in _KEYS for key in keys):
        raise UnreadableError("is a pickle with keys that are neither texts nor numbers")
    return dict(zip(keys, values[1::2], strict=True))


_KEYS = (str, int, float, bytes, bool)
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
