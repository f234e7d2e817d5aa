"""Reads a compiled program as XLA prints it: which kernels it runs, and how often.

A kernel is an instruction that the device starts by itself: a fusion, a copy, a product. Parts of a
fusion are none, nor is what only names or regroups values, what XLA does to a single number beside
them, or a copy between memories that runs beside kernels. A choice is a condition that the program
waits for: of another round of a loop, or of a branch.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple

_COMPUTATION = re.compile(r"(ENTRY )?%?([\w.-]+) \(.*\) -> .* \{$")
_INSTRUCTION = re.compile(r"\s+(ROOT )?%?([\w.-]+) = (\(.*?\)|\S+) ([a-z][\w-]*)\((.*)")
_ARRAY = re.compile(r"[a-z]+(\d*)\w*\[([\d,]*)\]")
_NAME = re.compile(r'op_name="([^"]*)"')
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_CALLED = re.compile(
    r"(calls|to_apply|condition|body|true_computation|false_computation)=%?([\w.-]+)"
)
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_CONSTANT = re.compile(r"s32\[\]\S* constant\((\d+)\)")

_NO_KERNELS = {
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "partition-id"),
    *("copy-start", "copy-done", "slice-start", "slice-done", "after-all", "opt-barrier"),
    *("async-start", "async-done", "all-reduce-done"),
}
_REGROUPS = ("AllocateBuffer", "ConcatBitcast", "AssumeGatherIndicesInBound")
_ALL_REDUCES = ("all-reduce", "all-reduce-start")
_BY_INDEX = {"gather", "scatter"}
_IS_PRODUCT = re.compile(r"__cublas\$")  # its result is a tuple of the product and a workspace
_COUNTS = {"parameter", "get-tuple-element", "constant", "compare"}  # conditions of these alone


class Instruction(NamedTuple):
    """A line of a computation."""

    name: str
    is_root: bool  # whether its result is that of the computation
    opcode: str
    operands: tuple[str, ...]  # their names
    elements: int  # of the largest array of its result
    size: int  # bytes of its result, without the workspace of a product
    path: str  # names of the functions around it, divided by "/"
    cycles: int | None  # the compiler's estimate, where it makes one
    trips: int | None  # of a loop, where the compiler says it
    called: Mapping[str, str]  # the computations that it runs, by their part in it
    branches: tuple[str, ...]
    target: str  # of a custom call


class HloProgram(NamedTuple):
    """A compiled program: its computations by name, each with its instructions in order."""

    entry: str
    computations: Mapping[str, list[Instruction]]
    bounds: Mapping[str, int]  # the number that a computation compares with, if it is the only one


class HloEvent(NamedTuple):
    """A kernel, an all-reduce or a choice, and how often a run of the program comes to it."""

    category: Literal["kernel", "all-reduce", "choice"]
    opcode: str
    path: str
    times: float
    cycles: int | None = None  # of one kernel, where the compiler estimates them
    by_index: bool = False  # whether it gathers or scatters by indices
    size: int = 0  # bytes that it writes: all of its result, or what it replaces in place


def read(text: str) -> HloProgram:
    """Reads the text of a compiled program, as `jax.stages.Compiled.as_text` returns it."""
    computations: dict[str, list[Instruction]] = {}
    constants: dict[str, list[int]] = {}
    entry = name = ""
    for line in text.splitlines():
        if start := _COMPUTATION.match(line):
            name = start[2]
            entry = name if start[1] else entry
            computations[name], constants[name] = [], []
        elif name and (match := _INSTRUCTION.match(line)):
            computations[name].append(_instruction(*match.groups("")))
            constants[name] += [int(constant) for constant in _CONSTANT.findall(line)]
    bounds = {name: found[0] for name, found in constants.items() if len(found) == 1}
    return HloProgram(entry, computations, bounds)


def _instruction(root: str, name: str, result: str, opcode: str, rest: str) -> Instruction:
    path, cycles, trips = (pattern.search(rest) for pattern in (_NAME, _CYCLES, _TRIPS))
    branches = _BRANCHES.search(rest)
    target = re.search(r'custom_call_target="([^"]*)"', rest)
    arrays = [_sizes(*array) for array in _ARRAY.findall(result)]
    if target and _IS_PRODUCT.match(target[1]):
        arrays = arrays[:1]
    return Instruction(
        name=name,
        is_root=bool(root),
        opcode=opcode,
        operands=tuple(re.findall(r"%([\w.-]+)", rest.partition(")")[0])),
        elements=max((elements for elements, _ in arrays), default=0),
        size=sum(size for _, size in arrays),
        path=path[1] if path else "",
        cycles=int(cycles[1]) if cycles else None,
        trips=int(trips[1]) if trips else None,
        called=dict(_CALLED.findall(rest)),
        branches=tuple(re.findall(r"[\w.-]+", branches[1])) if branches else (),
        target=target[1] if target else "",
    )


def _sizes(bits: str, dimensions: str) -> tuple[int, int]:
    elements = 1
    for size in filter(None, dimensions.split(",")):
        elements *= int(size)
    return elements, elements * max(1, int(bits or 8) // 8)


def events(program: HloProgram, trips: Callable[[str], float]) -> list[HloEvent]:
    """The events of a run of the program; of a branch, those of its longer side.

    Args:
        program: what `read` returned.
        trips: how often a loop runs that the compiler can't count, by its path.
    """
    return list(_HloWalk(program, trips).of(program.entry, 1.0, ""))


class _HloWalk(NamedTuple):
    program: HloProgram
    trips: Callable[[str], float]

    def of(self, computation: str, times: float, around: str) -> Iterator[HloEvent]:
        """The events of a computation.

        What the compiler made has no path, or a short one: it gets that of the loop around it.
        """
        for instruction in self.program.computations[computation]:
            path = max(instruction.path, around, key=lambda path: path.count("/"))
            if instruction.opcode == "while":
                yield from self._loop(instruction, times, path)
            elif instruction.opcode == "conditional":
                yield HloEvent("choice", instruction.opcode, path, times)
                names = instruction.branches or [
                    instruction.called[side] for side in ("true_computation", "false_computation")
                ]
                sides = [list(self.of(name, times, path)) for name in names]
                yield from max(sides, key=lambda side: sum(event.times for event in side))
            elif instruction.opcode == "call":
                yield from self.of(instruction.called["to_apply"], times, path)
            elif instruction.opcode in _ALL_REDUCES:
                yield HloEvent("all-reduce", instruction.opcode, path, times, size=instruction.size)
            elif _is_kernel(instruction):
                parts = self.program.computations.get(instruction.called.get("calls", ""), [])
                by_index = bool(_BY_INDEX & {instruction.opcode, *(part.opcode for part in parts)})
                size = self.written(instruction, computation)
                yield HloEvent(
                    "kernel", instruction.opcode, path, times, instruction.cycles, by_index, size
                )

    def written(self, instruction: Instruction, computation: str) -> int:
        """Bytes that an instruction of a computation writes.

        What ends with the replacement of a part of an array is done in place.
        """
        if instruction.opcode == "fusion":
            called = instruction.called["calls"]
            (root,) = (part for part in self.program.computations[called] if part.is_root)
            return self.written(root, called)
        if instruction.opcode in ("dynamic-update-slice", "tuple", "bitcast"):
            named = {other.name: other for other in self.program.computations[computation]}
            operands = [named[name] for name in instruction.operands if name in named]
            if instruction.opcode == "dynamic-update-slice":
                return operands[1].size
            return sum(self.written(operand, computation) for operand in operands)
        return instruction.size

    def _loop(self, loop: Instruction, times: float, path: str) -> Iterator[HloEvent]:
        rounds = _rounds(self.program, loop)
        if rounds is None:
            rounds = self.trips(path)
            yield HloEvent("choice", loop.opcode, path, times * (rounds + 1))
        yield from self.of(loop.called["body"], times * rounds, path)
        yield from self.of(loop.called["condition"], times * (rounds + 1), path)


def _rounds(program: HloProgram, loop: Instruction) -> float | None:
    """How often a loop runs; None if that depends on the data."""
    if loop.trips is not None:
        return loop.trips
    condition = loop.called["condition"]
    opcodes = {instruction.opcode for instruction in program.computations[condition]}
    if condition in program.bounds and opcodes <= _COUNTS:
        return program.bounds[condition]  # JAX counts from 0
    return None


def _is_kernel(instruction: Instruction) -> bool:
    if instruction.opcode in _NO_KERNELS or instruction.target in _REGROUPS:
        return False
    if instruction.opcode == "fusion" or instruction.cycles is not None:
        return True
    return instruction.elements > 1
