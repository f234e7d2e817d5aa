"""Reads YAML of settings, strictly and within bounds, and the files that come with the package."""

import difflib
import re
from pathlib import Path
from typing import Any

import yaml

from hackmatrix.core.errors import UserError

_MOST_BYTES = 2**16  # of a file, for which PyYAML needs a second or two
_DEEPEST = 16  # levels of lists and mappings
_LONGEST_NUMBER = 100  # characters; Python itself can't print all numbers of some thousand
_LONGEST = 200  # characters of a reason
CONFIGS = Path(__file__).parents[1] / "configs"
CURRICULA = CONFIGS / "curricula"


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
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        content = parse_yaml(data.decode(errors="surrogateescape"))
    except OSError as error:
        raise UserError(f"{option} {path}: {error.strerror}".strip()) from None
    except ValueError as error:
        raise UserError(f"{path}: is not a YAML file ({error})") from None
    return mapping_of(path, "the file", content)


def parse_yaml(text: str) -> Any:
    """The value that a text stands for.

    Raises:
        ValueError: it is not YAML, is too long, or holds what `_Loader` refuses.
    """
    if len(text.encode(errors="surrogateescape")) > _MOST_BYTES:
        raise ValueError(f"longer than {_MOST_BYTES // 2**10} KB")
    try:
        return yaml.load(text, Loader=_Loader)
    except Exception as error:  # PyYAML raises many kinds on odd input, not only its own
        raise ValueError(" ".join(str(error).split())[:_LONGEST]) from None


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
    gigabytes; lists in lists without end; and numbers that are not decimal: 010 would be 8, and
    1:30 would be 90.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        if self._depth == _DEEPEST:
            raise yaml.YAMLError(f"more than {_DEEPEST} levels deep")
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_number(self, node: yaml.ScalarNode) -> Any:
        if ":" in node.value or re.fullmatch(r"[-+]?0[\d_]+", node.value):
            raise yaml.YAMLError(f"{node.value} is no decimal number; quote it if it is a text")
        if len(node.value) > _LONGEST_NUMBER:
            raise yaml.YAMLError(f"a number of {len(node.value)} characters")
        if node.tag.endswith(":int"):
            return self.construct_yaml_int(node)
        return self.construct_yaml_float(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if (name := self.construct_object(key, deep=True)) in seen:
                raise yaml.YAMLError(f"{name} is given twice")
            seen.add(name)
        return super().construct_mapping(node, deep)


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _Loader.construct_number)


def config_file(path: Path, folder: Path = CONFIGS) -> Path:
    """The file that a user means: by a name one of the package's, else one at this path.

    The path that a file had in the repository, `configs/best.yaml`, means it too, unless there is
    such a file.

    Args:
        path: what the user has given.
        folder: of the package's files.

    Raises:
        UserError: it is a bare word, neither one of the names nor a file.
    """
    names = _files(folder)
    is_word = path.name == str(path) and not path.suffix
    if path.stem in names and (is_word or (path.parent == Path("configs") and not path.exists())):
        return names[path.stem]
    if is_word and not path.exists():
        near = difflib.get_close_matches(str(path), names, n=1)
        hint = f"did you mean {near[0]}? There are" if near else "there are"
        known = ", ".join(names)
        raise UserError(f"{path}: no file, and no settings of this name; {hint} {known}")
    return path


def describe_configs(folder: Path = CONFIGS) -> str:
    """The names, each with the line with which its file begins."""
    width = max(map(len, _files(folder)))
    first = {name: path.read_text().partition("\n")[0] for name, path in _files(folder).items()}
    return "\n".join(f"{name:<{width}}  {line.lstrip('# ')}" for name, line in first.items())


def _files(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}
