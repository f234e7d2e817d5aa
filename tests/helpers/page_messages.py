"""The messages between page and session compared with their schema, `messages.json`."""

import json
from collections.abc import Iterator
from typing import Any

from paths import ROOT

MESSAGES = json.loads((ROOT / "hackmatrix" / "ui" / "session" / "messages.json").read_text())
EXCHANGES = MESSAGES["exchanges"]
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}


def problems(value: Any, schema: dict[str, Any], where: str = "") -> list[str]:
    """The places where a JSON value differs from a schema, by the part of JSON Schema in use."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return problems(value, MESSAGES["$defs"][name], f"{where}:{name}")
    if "anyOf" in schema:
        ways = [problems(value, each, where) for each in schema["anyOf"]]
        return [] if [] in ways else min(ways, key=len)
    allowed = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if allowed is not None:
        return [] if value in allowed else [f"{where}: {value!r:.60} is none of {allowed}"]
    names = schema.get("type", [*_TYPES])
    names = [names] if isinstance(names, str) else names
    types = tuple(each for name in names for each in _TYPES[name])
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        return [f"{where}: {value!r:.60} is not {' or '.join(names)}"]
    return [*_in_object(value, schema, where), *_in_array(value, schema, where)]


def _in_object(value: Any, schema: dict[str, Any], where: str) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    properties, other = schema.get("properties", {}), schema.get("additionalProperties", {})
    yield from (
        f"{where}.{name} is missing" for name in schema.get("required", ()) if name not in value
    )
    for name, item in value.items():
        if name not in properties and other is False:
            yield f"{where}.{name} is unknown"
        else:
            yield from problems(item, properties.get(name, other), f"{where}.{name}")


def _in_array(value: Any, schema: dict[str, Any], where: str) -> Iterator[str]:
    if not isinstance(value, list):
        return
    first, rest = schema.get("prefixItems", []), schema.get("items", {})
    if len(value) < len(first) or (rest is False and len(value) > len(first)):
        yield f"{where}: {len(value)} items, not {len(first)}"
        return
    for i, item in enumerate(value):
        yield from problems(item, first[i] if i < len(first) else rest, f"{where}[{i}]")


def problems_of_request(message: dict[str, Any]) -> list[str]:
    """The places where a request differs from the schema."""
    name = message.get("do")
    if name not in EXCHANGES:
        return [f"do: {name!r} is unknown"]
    fields = {field: value for field, value in message.items() if field not in ("do", "id")}
    return problems(fields, EXCHANGES[name]["request"], str(name))


def problems_of_answer(name: str, answer: dict[str, Any]) -> list[str]:
    """The places where the answer to a request differs from the schema."""
    fields = {field: value for field, value in answer.items() if field != "id"}
    failure = {"$ref": "#/$defs/Failure"}
    return problems(fields, failure if "error" in fields else EXCHANGES[name]["answer"], name)
