"""Imports a module after another one, whichever of the two the user's program imports first."""

import importlib
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec


def import_after(name: str, then: str) -> None:
    """Imports the module `then` after `name`: now if that is imported, else when it is."""
    if name in sys.modules:
        importlib.import_module(then)
    else:
        sys.meta_path.insert(0, _After(name, then))


class _After:
    """Leaves it to the other finders to find a module, and adds to its loader what follows."""

    def __init__(self, name: str, then: str) -> None:
        self._name = name
        self._then = then

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> "ModuleSpec | None":
        """Python's question where a module is."""
        if name != self._name:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        found = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            self._extend(spec.loader)
        return spec

    def _extend(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            importlib.import_module(self._then)

        loader.exec_module = exec_module
