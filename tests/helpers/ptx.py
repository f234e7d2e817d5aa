"""PTX as C++: runs what NVRTC made for a GPU on a CPU, one thread of the GPU after the other.

Only what the kernels of the native engine need is understood; anything else raises `ValueError`.
The semantics are those of NVIDIA's "Parallel Thread Execution ISA".
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

PRELUDE = """
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace {

struct Thread { uint32_t tid_x, ctaid_x, ntid_x; };

template <class T> T& at(uint64_t address) { return *reinterpret_cast<T*>(address); }
template <class T> uint64_t address_of(T& object) { return reinterpret_cast<uint64_t>(&object); }

// Integers wrap around, so that all is computed without sign.
template <class T> T add(T a, T b) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(uint64_t(a) + uint64_t(b));
    else return a + b;
}
template <class T> T sub(T a, T b) {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(uint64_t(a) - uint64_t(b));
    else return a - b;
}
template <class T> T mul_lo(T a, T b) { return static_cast<T>(uint64_t(a) * uint64_t(b)); }
template <class T> T mul_hi(T a, T b) {
    using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<T>(Wide(a) * Wide(b) >> 8 * sizeof(T));
}
template <class T> auto mul_wide(T a, T b) {
    using Signed = std::conditional_t<sizeof(T) == 2, int32_t, int64_t>;
    using Wide = std::conditional_t<std::is_signed_v<T>, Signed, std::make_unsigned_t<Signed>>;
    return static_cast<Wide>(Wide(a) * Wide(b));
}
template <class T> T shl(T a, uint32_t n) { return n < 8 * sizeof(T) ? T(uint64_t(a) << n) : T(0); }
template <class T> T shr(T a, uint32_t n) {
    constexpr uint32_t bits = 8 * sizeof(T);
    return n < bits ? T(a >> n) : std::is_signed_v<T> ? T(a >> (bits - 1)) : T(0);
}
template <class T> T least(T a, T b) { return b < a ? b : a; }
template <class T> T most(T a, T b) { return a < b ? b : a; }
template <class T> uint32_t popc(T a) { return __builtin_popcountll(a); }
template <class T> uint32_t clz(T a) {
    constexpr int bits = 8 * sizeof(T);
    return a ? __builtin_clzll(uint64_t(a)) - (64 - bits) : bits;
}
template <class T> T bfi(T field, T base, uint32_t position, uint32_t length) {
    constexpr uint32_t bits = 8 * sizeof(T);
    position &= 255, length &= 255;
    if (position >= bits || !length) return base;
    if (length > bits - position) length = bits - position;
    T ones = length == bits ? T(~T(0)) : T((T(1) << length) - 1), mask = T(ones << position);
    return T((base & ~mask) | ((field << position) & mask));
}
inline uint32_t prmt(uint32_t low, uint32_t high, uint32_t selector) {
    uint64_t bytes = uint64_t(high) << 32 | low;
    uint32_t made = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t which = selector >> 4 * i & 15;
        uint8_t byte = bytes >> 8 * (which & 7);
        if (which & 8) byte = byte & 128 ? 255 : 0;
        made |= uint32_t(byte) << 8 * i;
    }
    return made;
}
inline uint32_t shf_l_wrap(uint32_t low, uint32_t high, uint32_t n) {
    return uint32_t(((uint64_t(high) << 32 | low) << (n & 31)) >> 32);
}
inline float float_of(uint32_t bits) {
    float number;
    std::memcpy(&number, &bits, sizeof number);
    return number;
}
"""

_TYPES = {
    **{f"{kind}{bits}": f"uint{bits}_t" for kind in "bu" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    "f32": "float",
    "pred": "bool",
}
_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_INFIX = {"and": "&", "or": "|", "xor": "^"}
_CALLED = {
    **{name: name for name in ("add", "sub", "shl", "shr", "popc", "clz", "bfi")},
    "min": "least",
    "max": "most",
}
_SPECIAL = {"%tid.x": "thread.tid_x", "%ctaid.x": "thread.ctaid_x", "%ntid.x": "thread.ntid_x"}


class Parameter(NamedTuple):
    """A parameter of a kernel, in the bytes that it is launched with."""

    name: str
    size: int
    align: int


class Function(NamedTuple):
    """A kernel or a function of a module."""

    name: str
    is_kernel: bool
    parameters: list[Parameter]
    body: str


def cplusplus(ptx: str) -> str:
    """The source in C++ of a module, with a `KERNEL_TABLE` of all that can be launched."""
    text = re.sub(r"//.*", "", ptx)
    functions = list(_functions(text))
    parts = [PRELUDE, *_globals(text), *(f"{_signature(each)};" for each in functions)]
    parts += [_function(each) for each in functions]
    return "\n".join([*parts, _table(functions), "}  // namespace\n"])


def _table(functions: list[Function]) -> str:
    rows = []
    for each in functions:
        if each.is_kernel:
            of = ", ".join(f"{{{offset}, {size}}}" for offset, size in _offsets(each))
            rows.append(f'    {{"{each.name}", {_name(each.name)}, {{{of}}}}},')
    return "\n".join(
        [
            "struct Argument { int offset, size; };",
            "struct Kernel {",
            "    const char* name; void (*run)(const uint8_t*, Thread); Argument arguments[4];",
            "};",
            "const Kernel KERNEL_TABLE[] = {",
            *rows,
            "};",
        ]
    )


def _offsets(kernel: Function) -> Iterator[tuple[int, int]]:
    """Where each parameter begins, and its size, in bytes."""
    offset = 0
    for each in kernel.parameters:
        offset = -(-offset // each.align) * each.align
        yield offset, each.size
        offset += each.size


def _functions(text: str) -> Iterator[Function]:
    pattern = r"\.(entry|func)\s*(?:\([^()]*\))?\s*([\w$.]+)\(([^()]*)\)[^{;]*\{\n(.*?)^\}"
    for kind, name, parameters, body in re.findall(pattern, text, re.S | re.M):
        yield Function(name, kind == "entry", list(_parameters(parameters)), body)


def _parameters(text: str) -> Iterator[Parameter]:
    pattern = r"\.param (?:\.align (\d+) )?\.(\w+) (\w+)(?:\[(\d+)\])?"
    for align, kind, name, count in re.findall(pattern, text):
        size = int(kind[1:]) // 8
        yield Parameter(name, size * int(count or 1), int(align or size))


def _globals(text: str) -> Iterator[str]:
    """Variables; those that hold addresses of others are left out, as nothing reads them."""
    pattern = r"^\.(?:global|const) \.align (\d+) \.(\w+) ([\w$.]+)(?:\[(\d*)\])?(?: = (.*?))?;$"
    for align, kind, name, count, start in re.findall(pattern, text, re.M):
        if "generic" not in start:
            values = start.strip("{}") if count else f"{_TYPES[kind]}({_value(start or '0')})"
            yield f"alignas({align}) {_TYPES[kind]} {_name(name)}[{count or 1}] = {{{values}}};"


def _signature(function: Function) -> str:
    if function.is_kernel:
        return f"void {_name(function.name)}(const uint8_t* parameters, Thread thread)"
    of = ", ".join(f"uint64_t of_{_name(each.name)}" for each in function.parameters)
    return f"uint64_t {_name(function.name)}({of})"


def _function(function: Function) -> str:
    declared, statements = [], []
    if function.is_kernel:
        for each, (offset, _) in zip(function.parameters, _offsets(function), strict=True):
            declared.append(f"const uint8_t* {_name(each.name)} = parameters + {offset};")
    else:
        declared.append("uint64_t func_retval0 = 0;")
        for each in function.parameters:
            declared.append(f"const uint64_t* {_name(each.name)} = &of_{_name(each.name)};")
    text = re.sub(r"call\.uni\s*\((\w+)\),", r"call.uni \1,", function.body)
    text = re.sub(r"^\s*[{}]\s*$", "", text, flags=re.M)  # blocks, around calls
    for statement in re.split(r";|(?<=:)\s*\n", text):
        line = " ".join(statement.split())
        if found := re.fullmatch(r"\.reg \.(\w+) (%\w+)(?:<(\d+)>)?", line):
            kind, name, count = found.groups()
            names = [f"{name}{i}" for i in range(int(count))] if count else [name]
            declared.append(f"{_TYPES[kind]} {', '.join(f'{_name(n)} = 0' for n in names)};")
        elif found := re.fullmatch(r"\.local \.align (\d+) \.b8 (\w+)\[(\d+)\]", line):
            align, name, count = found.groups()
            declared.append(f"alignas({align}) uint8_t {_name(name)}[{count}];")
        elif line.endswith(":"):
            statements.append(f"{_name(line[:-1])}:;")
        elif line and not line.startswith((".reg", ".param", ".pragma")):
            statements.append(_statement(line, function))
    declared = list(dict.fromkeys(declared))
    return "\n".join([f"{_signature(function)} {{", *declared, *_slots(text), *statements, "}"])


def _slots(text: str) -> Iterator[str]:
    """Variables for what is passed in calls."""
    for name in sorted(set(re.findall(r"\.param \.\w+ ((?:param|retval)\d+)", text))):
        yield f"uint64_t {name} = 0;"


def _statement(line: str, function: Function) -> str:
    condition = ""
    if found := re.match(r"@(!?)(%p\d+) ", line):
        condition, line = f"if ({found[1]}{_name(found[2])}) ", line[found.end() :]
    operation, _, rest = line.partition(" ")
    operands = re.split(r", *(?![^{(]*[})])", rest)
    name, *suffixes = operation.split(".")
    if name == "ret":
        return f"{condition}return{'' if function.is_kernel else ' func_retval0'};"
    if name == "bra":
        return f"{condition}goto {_name(operands[0])};"
    if name == "call":
        return _call(operands)
    return condition + _instruction(name, suffixes, operands)


def _call(operands: list[str]) -> str:
    *result, called, passed = operands if len(operands) > 2 else ["", *operands]
    arguments = passed.strip("() ")
    start = f"{result[0]} = " if result and result[0] else ""
    return f"{start}{_name(called)}({arguments});"


def _instruction(name: str, suffixes: list[str], operands: list[str]) -> str:
    kind = _TYPES.get(suffixes[-1], "")
    if name in ("ld", "st"):
        return _access(name, suffixes, operands, kind)
    to, *sources = operands
    if name == "atom" and suffixes[:2] == ["global", "add"]:
        address = _address(sources[0])
        value = _value(sources[1])
        return f"{{ {_name(to)} = at<{kind}>({address}); at<{kind}>({address}) += {value}; }}"
    if name == "mov" and to.startswith("{"):
        parts = [_name(each.strip()) for each in to.strip("{}").split(",")]
        bits = int(suffixes[-1][1:]) // len(parts)
        whole = _value(sources[0])
        return "{" + " ".join(f"{p} = {whole} >> {bits * i};" for i, p in enumerate(parts)) + "}"
    if name == "mov" and sources[0].startswith("{"):
        parts = [_value(each.strip()) for each in sources[0].strip("{}").split(",")]
        bits = int(suffixes[-1][1:]) // len(parts)
        joined = " | ".join(f"{kind}(uint{bits}_t({p})) << {bits * i}" for i, p in enumerate(parts))
        return f"{_name(to)} = {joined};"
    values = [_value(each) for each in sources]
    return f"{_name(to)} = {_expression(name, suffixes, kind, values)};"


def _access(name: str, suffixes: list[str], operands: list[str], kind: str) -> str:
    registers, place = operands if name == "ld" else operands[::-1]
    each_of = [register.strip() for register in registers.strip("{}").split(",")]
    if "param" in suffixes and (found := re.match(r"\[((?:param|retval|func_retval)\d+)", place)):
        slot = found[1]  # of a call, which is one number
        return f"{_name(registers)} = {slot};" if name == "ld" else f"{slot} = {_value(registers)};"
    moved = []
    for i, register in enumerate(each_of):
        where = f"at<{kind}>({_address(place)} + {i} * sizeof({kind}))"
        both = (_name(register), where) if name == "ld" else (where, f"{kind}({_value(register)})")
        moved.append(f"{both[0]} = {both[1]};")
    return "{ " + " ".join(moved) + " }"


def _expression(name: str, suffixes: list[str], kind: str, values: list[str]) -> str:
    typed = [f"{kind}({value})" for value in values]
    if name in ("mov", "cvta"):
        return f"{kind}({values[0]})"
    if name == "cvt":
        to, source = (_TYPES[each] for each in suffixes if each in _TYPES)
        return f"{to}({source}({values[0]}))"
    if name == "setp" and len(suffixes) == 2:
        return f"{typed[0]} {_COMPARED[suffixes[0]]} {typed[1]}"
    if name == "selp":
        return f"{values[2]} ? {typed[0]} : {typed[1]}"
    if name in _INFIX:
        return f"{kind}({typed[0]} {_INFIX[name]} {typed[1]})"
    if name == "not":
        return f"!{values[0]}" if kind == "bool" else f"{kind}(~{typed[0]})"
    if name == "neg":
        return f"sub<{kind}>(0, {values[0]})"
    if name == "abs":
        return f"{typed[0]} < 0 ? sub<{kind}>(0, {values[0]}) : {typed[0]}"
    if name in ("mul", "mad") and suffixes[0] in ("lo", "hi", "wide"):
        product = f"mul_{suffixes[0]}<{kind}>({values[0]}, {values[1]})"
        return product if name == "mul" else f"add<{kind}>({product}, {values[2]})"
    if name == "mul" and suffixes == ["rn", "f32"]:
        return f"{typed[0]} * {typed[1]}"
    if name == "fma" and suffixes == ["rn", "f32"]:
        return f"__builtin_fmaf({', '.join(typed)})"
    if name == "prmt" and suffixes == ["b32"]:
        return f"prmt({', '.join(values)})"
    if name == "shf" and suffixes[:2] == ["l", "wrap"]:
        return f"shf_l_wrap({', '.join(values)})"
    if name in _CALLED:
        return f"{_CALLED[name]}<{kind}>({', '.join(values)})"
    raise ValueError(f"PTX that is not understood: {'.'.join((name, *suffixes))}")


def _name(text: str) -> str:
    """A name of PTX as one of C++."""
    if text in _SPECIAL:
        return _SPECIAL[text]
    return text.replace("%", "").replace("$", "L_").replace(".", "_")


def _value(text: str) -> str:
    if re.fullmatch(r"0f[0-9A-Fa-f]{8}", text):
        return f"float_of(0x{text[2:]}u)"
    if re.fullmatch(r"-?\d+", text):
        number = int(text)
        return f"{number}ull" if number >= 2**63 else f"{number}ll"
    if text.startswith("%"):
        return _name(text)
    found = re.fullmatch(r"([\w$.]+)(?:\+(\d+))?", text)
    if not found:
        raise ValueError(f"an operand of PTX that is not understood: {text}")
    if "_param_" in found[1]:
        return f"(reinterpret_cast<uint64_t>({_name(found[1])}) + {found[2] or 0})"
    return f"(address_of({_name(found[1])}) + {found[2] or 0})"


def _address(text: str) -> str:
    found = re.fullmatch(r"\[([%\w$.]+?)(?:\+(-?\d+))?\]", text)
    if not found:
        raise ValueError(f"an address of PTX that is not understood: {text}")
    start, offset = found[1], found[2] or "0"
    return f"({_value(start)} + ({offset}ll))"
