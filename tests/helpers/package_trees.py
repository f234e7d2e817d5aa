"""The syntax trees of the package's files, each of which is parsed once."""

import ast
import functools
from pathlib import Path

from paths import ROOT

PACKAGE = ROOT / "hackmatrix"


@functools.cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text())
