"""Builds the native engine beside its sources, for editable installs and wheels.

Hatchling calls it; `python hatch_build.py` does the same by hand. Where no C++ compiler is there,
or it fails, the engine is left out and everything else works. It also makes the description of the
package, which is the README without relative links.
"""

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).parent
SOURCES = ROOT / "hackmatrix" / "game" / "native"
RULES = ROOT / "hackmatrix" / "game" / "rules"
OBJECTS = ROOT / "build" / "native"
MODULE = SOURCES / f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"

FLAGS = (
    *("-std=c++17", "-O3", "-DNDEBUG", "-fPIC", "-pthread", "-fvisibility=hidden"),
    *("-fno-strict-aliasing", "-ffp-contract=off", "-Wall", "-Wextra"),
)
# Processors since 2013; `hackmatrix.game.native` leaves the engine out on older ones.
BASELINE = ["-march=x86-64-v3"] if platform.machine() in ("x86_64", "AMD64") else []


class CustomBuildHook(BuildHookInterface[Any]):
    """Adds the module to the wheel if it could be built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Hatchling's call before it collects the files."""
        del version
        if built():
            build_data["artifacts"].append(str(MODULE.relative_to(ROOT)))
            build_data["pure_python"] = False
            build_data["infer_tag"] = True


class Description(MetadataHookInterface):
    """The README for readers who have no files beside it."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Hatchling's call before it writes the metadata."""
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        text = without_relative_links(text, metadata["urls"]["Repository"], metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def without_relative_links(text: str, repository: str, version: str) -> str:
    """The text with links into the repository, or with their words alone if it is on no host."""
    if ".invalid/" in repository:  # the top-level domain of names that do not exist
        text = re.sub(r'!\[[^]]*]\((?!https?:)[^)]*\)|<img src="(?!https?:)[^>]*>', "", text)
        return re.sub(r"\[([^]]*)]\((?!https?:|#)[^)]*\)", r"\1", text)
    # Pictures before links: both end alike, and what is absolute by then is left alone.
    text = re.sub(r'(!\[[^]]*]\(|src=")(?!https?:)', rf"\1{repository}/raw/v{version}/", text)
    return re.sub(r"(]\()(?!https?:|#)", rf"\1{repository}/blob/v{version}/", text)


def built() -> bool:
    """Whether the module is there and newer than its sources, now or after building it."""
    sources = (*SOURCES.glob("*.?pp"), SOURCES / "constants.py", *RULES.glob("*.py"))
    newest = max(path.stat().st_mtime for path in (Path(__file__), *sources))
    if MODULE.exists() and MODULE.stat().st_mtime > newest:
        return True
    MODULE.unlink(missing_ok=True)
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        return left_out("no C++ compiler on PATH")
    if find_spec("nanobind") is None:
        return left_out("nanobind is not installed")
    return build(shlex.split(compiler))


def build(compiler: list[str]) -> bool:
    """Compiles all parts at once and links them; returns whether it worked."""
    import nanobind

    sys.path.insert(0, str(ROOT))
    from hackmatrix.game.native import constants

    constants.write(OBJECTS)
    nano, python = Path(nanobind.include_dir()).parent, sysconfig.get_path("include")
    includes = [OBJECTS, nano / "include", nano / "ext" / "robin_map" / "include", python]
    parts = [SOURCES / "numpy.cpp", nano / "src" / "nb_combined.cpp"]
    flags = [*FLAGS, *BASELINE]
    if xla := xla_headers():
        includes.append(xla)
        parts += [SOURCES / "xla.cpp", SOURCES / "cuda.cpp"]
        flags.append("-DWITH_XLA")
    flags += [f"-isystem{folder}" for folder in includes]
    flags.append(f'-DSOURCE_DIGEST="{constants.source_digest()}"')
    objects = [OBJECTS / f"{part.stem}{sys.implementation.cache_tag}.o" for part in parts]
    compiling = [
        subprocess.Popen([*compiler, *flags, "-c", part, "-o", to])
        for part, to in zip(parts, objects, strict=True)
    ]
    codes = [process.wait() for process in compiling]
    if any(codes):
        return left_out("the compiler failed")
    shared = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    linked = subprocess.run([*compiler, "-shared", "-pthread", *shared, *objects, "-o", MODULE])
    return linked.returncode == 0 or left_out("the linker failed")


def xla_headers() -> Path | None:
    """The folder of XLA's headers, which come with JAX."""
    found = find_spec("jaxlib")
    folders = found.submodule_search_locations if found is not None else None
    include = Path(folders[0]) / "include" if folders else None
    return include if include and (include / "xla" / "ffi" / "api" / "ffi.h").exists() else None


def left_out(why: str) -> bool:
    """Says why there is no native engine."""
    print(f"hackmatrix: the native engine is left out: {why}", file=sys.stderr)
    return False


if __name__ == "__main__":
    built()
