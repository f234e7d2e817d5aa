"""Reads YAML files of settings, strictly."""

import re
from pathlib import Path
from typing import Any

import yaml

from hackmatrix.errors import UserError

_LONGEST = 200  # characters of a reason


def read_yaml(path: Path, option: str = "") -> dict[Any, Any]:
    """The mapping that a file holds; an empty one for an empty file.

    Args:
        path: the file.
        option: the option that names it, for error messages.

    Raises:
        UserError: it can't be read, is not YAML, holds what `_Loader` refuses, or something else
            than a mapping.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except OSError as error:
        raise UserError(f"{option} {path}: {error.strerror}".strip()) from None
    except Exception as error:  # PyYAML raises many kinds on odd input, not only its own
        reason = " ".join(str(error).split())[:_LONGEST]
        raise UserError(f"{path}: is not a YAML file ({reason})") from None
    return mapping_of(path, "the file", content)


def mapping_of(path: Path, what: str, content: Any) -> dict[Any, Any]:
    """Checks that a part of a file, called `what` in errors, is a mapping; None is an empty one."""
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise UserError(f"{path}: {what} must hold names with values, got {content!r:.60}")
    return content


class _Loader(yaml.SafeLoader):
    """A YAML loader that refuses what YAML would take for something else than it looks like.

    Duplicate keys, of which it would take the last; aliases, of which a few lines can stand for
    gigabytes; and numbers that are not decimal: 010 would be 8, and 1:30 would be 90.
    """

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)

    def construct_number(self, node: yaml.ScalarNode) -> Any:
        if ":" in node.value or re.fullmatch(r"[-+]?0[\d_]+", node.value):
            raise yaml.YAMLError(f"{node.value} is no decimal number; quote it if it is a text")
        if node.tag.endswith(":int"):
            return self.construct_yaml_int(node)
        return self.construct_yaml_float(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [self.construct_object(key, deep=True) for key, _ in node.value]
        for name in names:
            if names.count(name) > 1:
                raise yaml.YAMLError(f"{name} is given twice")
        return super().construct_mapping(node, deep)


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _Loader.construct_number)
