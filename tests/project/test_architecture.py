"""The house: what each wing and room is for, and which may import which."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from paths import DOCS, ROOT

PACKAGE = ROOT / "hackmatrix"

# From the one that everything may import to the one that nothing imports.
WINGS = (
    "core",
    "runs",
    "game",
    "environments",
    "agents",
    "learning",
    "research",
    "ui",
    "integrations",
    "cloud",
    "cli",
)
APART = {("game", "runs"), ("ui", "research")}  # neither needs the other
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}


def imported(module: str) -> Iterator[str]:
    """The modules of the package that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, f"{module}: a relative import"
            within = [f"{node.module}.{alias.name}" for alias in node.names]
            found = [name if name in MODULES else node.module for name in within]
        else:
            continue
        yield from (name for name in found if name in MODULES and name != module)


def room(module: str) -> tuple[str, ...]:
    """The wing and the room of a module; a file that lies in a wing itself is its own room."""
    return tuple(module.split(".")[1:3])


IMPORTS = [(module, other) for module in MODULES for other in imported(module)]


def rooms_of(wing: str) -> list[str]:
    """The rooms as docs/architecture.md lists them: each imports only those to its right."""
    text = (DOCS / "architecture.md").read_text()
    (line,) = re.findall(rf"^{wing}/ .*\n((?:  .*\n)?)", text, re.M)
    return line.split()


def test_each_wing_imports_only_those_before_it() -> None:
    place = {wing: number for number, wing in enumerate(WINGS)}
    wrong = []
    for module, other in IMPORTS:
        ours, theirs = room(module)[:1], room(other)[:1]
        if not ours or ours[0] not in place or ours == theirs:
            continue  # the face of the package, and what starts it
        (wing,) = ours
        is_below = bool(theirs) and place.get(theirs[0], 99) < place[wing]
        if not is_below and theirs:
            wrong.append(f"{module} imports {other}")
        if theirs and (wing, theirs[0]) in APART:
            wrong.append(f"{module} imports {other}")
    assert wrong == []


@pytest.mark.parametrize("wing", WINGS)
def test_each_room_imports_only_those_listed_after_it(wing: str) -> None:
    rooms = rooms_of(wing)
    folders = {path.parent.name for path in (PACKAGE / wing).glob("*/__init__.py")}
    assert set(rooms) == folders
    place = {(wing, name): number for number, name in enumerate(rooms)}
    wrong = [
        f"{module} imports {other}"
        for module, other in IMPORTS
        if {room(module), room(other)} <= place.keys() and place[room(module)] > place[room(other)]
    ]
    assert wrong == []


def test_no_rooms_import_each_other_in_a_circle() -> None:
    below = defaultdict(set)
    for module, other in IMPORTS:
        if room(module) != room(other) and room(module):
            below[room(module)].add(room(other))
    while leaves := {each for theirs in below.values() for each in theirs} - set(below):
        for theirs in below.values():
            theirs -= leaves
        below = defaultdict(set, {name: theirs for name, theirs in below.items() if theirs})
    assert not below, sorted(below)


def purpose(folder: Path) -> str:
    """The first line of the docstring of a wing or a room, without its full stop."""
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    assert text is not None
    return text.splitlines()[0].removesuffix(".")


def test_the_folders_are_the_wings() -> None:
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == set(WINGS)


def test_each_room_says_what_it_is_for() -> None:
    assert all(purpose(PACKAGE / wing / name) for wing in WINGS for name in rooms_of(wing))


def test_the_tree_of_the_architecture_is_that_of_the_wings() -> None:
    shown = re.search(r"^```\n(cli/.*?)\n```", (DOCS / "architecture.md").read_text(), re.M | re.S)
    assert shown is not None
    lines = [line for line in shown[1].splitlines() if not line.startswith(" ")]
    assert lines == [f"{wing + '/':<15} {purpose(PACKAGE / wing)}" for wing in reversed(WINGS)]
