"""Optional members of an environment: found in one place, with defaults for what it lacks."""

import ast
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from paths import ROOT

from hackmatrix.environments.interface.environment import OptionalMembers, optional_members

PACKAGE = ROOT / "hackmatrix"

# Where members are looked up by name: the interfaces, their check, and the wrappers, which hand on
# whatever the wrapped environment has.
DOORS = {
    "environments/interface/environment.py",
    "environments/check.py",
    "environments/wrappers.py",
    "agents/networks/network.py",
}


def test_an_environment_with_the_required_members_alone_has_the_defaults() -> None:
    bare: Any = SimpleNamespace()
    assert optional_members(bare) == OptionalMembers(id="SimpleNamespace")


def looked_up(source: str) -> Iterator[str]:
    """The objects whose members are looked up by name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr"):
            yield ast.unparse(node.args[0])


@pytest.mark.thorough
@pytest.mark.parametrize("what", ["env", "network"])
def test_nobody_else_looks_for_members(what: str) -> None:
    found = {
        str(path.relative_to(PACKAGE)): each
        for path in PACKAGE.rglob("*.py")
        for each in looked_up(path.read_text())
        if what == each.split(".")[-1].removeprefix("_")
    }
    assert found.keys() <= DOORS, found
