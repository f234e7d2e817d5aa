"""Writes `messages.d.ts`, the types of the page's JavaScript, from `messages.json`."""

import json
from pathlib import Path
from typing import Any

MESSAGES = Path(__file__).parents[1] / "hackmatrix" / "ui" / "session" / "messages.json"
Schema = dict[str, Any]


def declare(messages: Schema) -> str:
    """The schema's types as declarations of TypeScript.

    `Request` is any request; `Answer` has the fields of all answers, as each may be an error.
    """
    exchanges, types = messages["exchanges"], messages["$defs"]
    lines = ["// Made from messages.json by scripts/message_types.py.", ""]
    for name, schema in types.items():
        lines += [f"/** {schema['description']} */"] if "description" in schema else []
        lines.append(f"export type {name} = {type_of(schema)};")
    requests = []
    for name, exchange in exchanges.items():
        request = exchange["request"]
        fields = {"do": {"const": name}} | request["properties"]
        requests.append(type_of(request | {"properties": fields}))
    answers = {type_of(exchange["answer"]): None for exchange in exchanges.values()}
    lines += ["", "export type Request =", *[f"  | {request}" for request in requests]]
    lines[-1] += ";"
    joined = " & ".join(f"Partial<{answer}>" for answer in [*answers, "Failure"])
    lines.append(f"export type Answer = {joined} & {{ id?: number }};")
    return "\n".join(lines) + "\n"


def type_of(schema: Schema) -> str:
    """A type of TypeScript."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema or "enum" in schema:
        return " | ".join(map(json.dumps, schema.get("enum", [schema.get("const")])))
    if "anyOf" in schema:
        return " | ".join(map(type_of, schema["anyOf"]))
    if isinstance(schema.get("type"), list):
        return " | ".join(type_of({"type": name}) for name in schema["type"])
    match schema.get("type"):
        case None:
            return "any"
        case "array" if "prefixItems" in schema:
            return f"[{', '.join(map(type_of, schema['prefixItems']))}]"
        case "array":
            item = type_of(schema["items"])
            return f"({item})[]" if "|" in item and item[0] != "[" else f"{item}[]"
        case "object" if "properties" in schema:
            required = {"do", *schema["required"]}
            fields = [
                f"{name}{'' if name in required else '?'}: {type_of(each)}"
                for name, each in schema["properties"].items()
            ]
            return f"{{ {'; '.join(fields)} }}"
        case "object":
            return f"Record<string, {type_of(schema['additionalProperties'])}>"
        case "integer":
            return "number"
        case name:
            return str(name)


if __name__ == "__main__":
    types = MESSAGES.with_suffix(".d.ts")
    types.write_text(declare(json.loads(MESSAGES.read_text())))
    print(types)
