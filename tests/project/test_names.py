"""The names of the package: words that name nothing, and functions that are participles."""

import ast
from collections.abc import Iterator
from pathlib import Path

from package_trees import PACKAGE, tree_of

# They say that there is something, not what it is: `found` is a list of runs, a match or a path.
NAMELESS = {
    *("asked", "each", "found", "given", "kind", "known", "made", "number", "numbers"),
    *("place", "places", "seen", "taken", "told", "words"),
}
SHORT = 5  # lines in which a local may have such a name
# A function is a verb. Participles that end in -ed need no list.
PARTICIPLES = {
    *("begun", "bought", "built", "chosen", "drawn", "driven", "found", "given", "gone", "held"),
    *("hidden", "kept", "known", "lost", "made", "meant", "met", "paid", "said", "seen", "sent"),
    *("shown", "sold", "spent", "taken", "taught", "thrown", "told", "understood", "written"),
}
NO_PARTICIPLES = {"embed", "feed", "need", "seed", "speed"}

# Names that users of the package know.
PUBLIC = {
    "__init__.py: registered": "`hackmatrix.registered()`",
    "game/engine/events.py: kind": "a key of the events that the page draws",
    "environments/registry.py: registered": "`hackmatrix.registered()`",
}

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def is_nameless(name: str) -> bool:
    return name.strip("_").lower() in NAMELESS


def is_participle(name: str) -> bool:
    ends = name.endswith("ed") and name not in NO_PARTICIPLES
    return "_" not in name and (ends or name in PARTICIPLES)


def names_in_scope(function: ast.AST) -> Iterator[ast.Name]:
    """The names that a function uses itself, outside comprehensions and functions in it."""
    for child in ast.iter_child_nodes(function):
        if isinstance(child, ast.Name):
            yield child
        elif not isinstance(child, SCOPES):
            yield from names_in_scope(child)


def locals_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """The nameless locals that live for more than a few lines."""
    uses: dict[str, list[ast.Name]] = {}
    for name in names_in_scope(function):
        if is_nameless(name.id):
            uses.setdefault(name.id, []).append(name)
    for name, nodes in uses.items():
        lines = [node.lineno for node in nodes]
        is_bound = any(isinstance(node.ctx, ast.Store) for node in nodes)
        if is_bound and max(lines) - min(lines) >= SHORT:
            yield name


def parameters_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    parts = function.args
    return [arg.arg for arg in (*parts.posonlyargs, *parts.args, *parts.kwonlyargs)]


def variables_of(body: ast.Module | ast.ClassDef) -> Iterator[str]:
    """The variables of a module, or the fields of a class."""
    for statement in body.body:
        targets = []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        elif isinstance(statement, ast.Assign):
            targets = statement.targets
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def nameless(tree: ast.Module) -> Iterator[str]:
    """The names in a file that name nothing, and its public functions that are participles."""
    for node in tree.body:
        if isinstance(node, FUNCTIONS) and is_participle(node.name):
            yield node.name
    for node in ast.walk(tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and is_nameless(node.name):
            yield node.name
        if isinstance(node, FUNCTIONS):
            yield from locals_of(node)
            yield from filter(is_nameless, parameters_of(node))
        if isinstance(node, (ast.Module, ast.ClassDef)):
            yield from filter(is_nameless, variables_of(node))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield from [node.attr] * is_nameless(node.attr)


def nameless_of(file: Path) -> set[str]:
    path = file.relative_to(PACKAGE).as_posix()
    return {f"{path}: {name}" for name in nameless(tree_of(file))}


def test_every_name_says_what_it_names() -> None:
    names = {name for file in PACKAGE.rglob("*.py") for name in nameless_of(file)}
    assert names == set(PUBLIC)
