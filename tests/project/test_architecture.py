"""The layers: what each package and subpackage is for, and which may import which."""

import ast
import functools
import graphlib
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from package_trees import PACKAGE, tree_of
from paths import DOCS, ROOT

# From the one that everything may import to the one that nothing imports.
PACKAGES = (
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
    for node in ast.walk(tree_of(MODULES[module])):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, f"{module}: a relative import"
            within = [f"{node.module}.{alias.name}" for alias in node.names]
            found = [name if name in MODULES else node.module for name in within]
        else:
            continue
        yield from (name for name in found if name in MODULES and name != module)


def subpackage(module: str) -> tuple[str, ...]:
    """The package and the subpackage of a module; a file right in a package is its own."""
    return tuple(module.split(".")[1:3])


@functools.cache
def imports() -> list[tuple[str, str]]:
    """Each module with each that it imports."""
    return [(module, other) for module in MODULES for other in imported(module)]


def subpackages_of(package: str) -> list[str]:
    """The subpackages as docs/architecture.md lists them: each imports only those to its right."""
    text = (DOCS / "architecture.md").read_text()
    (line,) = re.findall(rf"^{package}/ .*\n((?:  .*\n)?)", text, re.M)
    return line.split()


def test_each_package_imports_only_those_before_it() -> None:
    place = {package: number for number, package in enumerate(PACKAGES)}
    wrong = []
    for module, other in imports():
        ours, theirs = subpackage(module)[:1], subpackage(other)[:1]
        if not ours or ours[0] not in place or ours == theirs:
            continue  # the face of the package, and what starts it
        (package,) = ours
        is_below = bool(theirs) and place.get(theirs[0], 99) < place[package]
        if not is_below and theirs:
            wrong.append(f"{module} imports {other}")
        if theirs and (package, theirs[0]) in APART:
            wrong.append(f"{module} imports {other}")
    assert wrong == []


@pytest.mark.parametrize("package", PACKAGES)
def test_each_subpackage_imports_only_those_listed_after_it(package: str) -> None:
    subpackages = subpackages_of(package)
    folders = {path.parent.name for path in (PACKAGE / package).glob("*/__init__.py")}
    assert set(subpackages) == folders
    place = {(package, name): number for number, name in enumerate(subpackages)}
    wrong = [
        f"{module} imports {other}"
        for module, other in imports()
        if {subpackage(module), subpackage(other)} <= place.keys()
        and place[subpackage(module)] > place[subpackage(other)]
    ]
    assert wrong == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Wherever they import: a circle within functions is one to the reader."""
    graph = defaultdict(set)
    for module, other in imports():
        graph[module].add(other)
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names them


# The engines mirror each other, name by name; `test_mirror.py` in their tests.
MIRRORED = {
    *("Before", "Board", "Dice", "Ending", "Outcome", "Player", "Position", "VisibleState"),
    "State",
    "Step",  # the results of `batch.step`, which both batch engines have
}


def test_a_class_name_stands_for_one_class() -> None:
    files = defaultdict(list)
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.ClassDef):
                files[node.name].append(file.relative_to(PACKAGE).as_posix())
    shared = {name: several for name, several in files.items() if len(several) > 1}
    outside = [each for each in shared.values() if not all(f.startswith("game/") for f in each)]
    assert outside == []
    assert set(shared) == MIRRORED


def purpose(folder: Path) -> str:
    """The first line of the docstring of a package or a subpackage, without its full stop."""
    text = ast.get_docstring(tree_of(folder / "__init__.py"))
    assert text is not None
    return text.splitlines()[0].removesuffix(".")


def test_the_folders_are_the_packages() -> None:
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == set(PACKAGES)


def test_the_tree_of_the_architecture_is_that_of_the_packages() -> None:
    shown = re.search(r"^```\n(cli/.*?)\n```", (DOCS / "architecture.md").read_text(), re.M | re.S)
    assert shown is not None
    lines = [line for line in shown[1].splitlines() if not line.startswith(" ")]
    assert lines == [
        f"{package + '/':<15} {purpose(PACKAGE / package)}" for package in reversed(PACKAGES)
    ]
