"""The size of the native engine: lines of code, without comments and empty lines."""

import re
from pathlib import Path

from hackmatrix.game import native

LINES = 1_500


def test_lines() -> None:
    folder = Path(native.__file__).parent
    files = [*folder.glob("*.hpp"), *folder.glob("*.cpp")]
    code = [re.findall(r"^\s*(?!//)\S", path.read_text(), re.M) for path in files]
    assert sum(map(len, code)) <= LINES
