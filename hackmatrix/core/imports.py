"""Imports of packages that may be missing, and of modules in a certain order.

Code imports packages of extras where it needs them. The command line turns the error of a missing
one into a line on how to get it; `need` raises it before something is begun that could not be
finished.
"""

import importlib
import shlex
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hackmatrix.core.errors import UserError

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

# The extra that brings a module; `pyproject.toml` has the packages.
EXTRAS = {
    **dict.fromkeys(("jax", "jaxlib", "flax", "optax", "orbax", "tensorboardX"), "train"),
    **dict.fromkeys(("google", "google_crc32c"), "bucket"),
    **dict.fromkeys(("gymnax", "six"), "classic"),
    **dict.fromkeys(("onnx", "safetensors"), "exchange"),
    **dict.fromkeys(("sb3_contrib", "stable_baselines3", "torch"), "sb3"),
    **dict.fromkeys(("jax_plugins", "libtpu"), "targets"),
    **dict.fromkeys(("rich", "textual"), "terminal"),
    "PIL": "film",
    "imageio_ffmpeg": "mp4",
    "matplotlib": "plots",
    "minari": "minari",
    "optuna": "tune",
    "wandb": "wandb",
}
_NAMES = {
    "google": "google-cloud-storage",
    "imageio_ffmpeg": "imageio-ffmpeg",
    "jax_plugins": "jax-cuda12-plugin",
    "PIL": "pillow",
}
_NOTES = {"sb3": " (before it, `pip install torch==2.13.0` where there is only a CPU)"}


def missing(module: str | None) -> str | None:
    """How to install the package that has a module; None if no extra of ours brings it."""
    top = (module or "").partition(".")[0]
    extra = EXTRAS.get(top)
    if extra is None:
        return None
    name = _NAMES.get(top, top)
    return f"needs {name}: {install_command(extra)}{_NOTES.get(extra, '')}"


def install_command(extra: str) -> str:
    """The command that installs an extra, also in a clone that was never installed itself."""
    try:
        distribution("hackmatrix")
    except PackageNotFoundError:
        return f"pip install {shlex.quote(f'{Path(__file__).parents[2]}[{extra}]')}"
    return f"pip install 'hackmatrix[{extra}]'"


def are_installed(*modules: str) -> bool:
    """Whether all of these modules are installed."""
    return all(find_spec(module) is not None for module in modules)


def need(*modules: str) -> None:
    """Raises `UserError` if one of these modules of extras is not installed."""
    for module in modules:
        if not are_installed(module):
            raise UserError(missing(module) or f"needs {module}")


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
