"""The engines' files, the names that they define, and where two of them differ."""

import ast
from collections.abc import Iterator
from pathlib import Path

import hackmatrix

PACKAGE = Path(hackmatrix.__file__).parent


def public_names(path: Path) -> set[str]:
    """Names without an underscore that a file defines at its top level."""

    def defined() -> Iterator[str]:
        for node in ast.parse(path.read_text()).body:
            match node:
                case ast.FunctionDef() | ast.ClassDef():
                    yield node.name
                case ast.Assign():
                    targets = (name for target in node.targets for name in ast.walk(target))
                    yield from (name.id for name in targets if isinstance(name, ast.Name))
                case ast.AnnAssign(target=ast.Name(id=name)):
                    yield name

    return {name for name in defined() if not name.startswith("_")}


def check_names(
    name: str, ours: set[str], theirs: set[str], tables: dict[str, tuple[str, str]]
) -> None:
    """The names are those of both files but for the table's, of the one and of the other."""
    only_ours, only_theirs = tables.get(name, ("", ""))
    assert ours - theirs == set(only_ours.split())
    assert theirs - ours == set(only_theirs.split())
