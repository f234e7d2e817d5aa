"""The size of the native engine, which a reader has to read: comments and empty lines too."""

from collections.abc import Iterable
from pathlib import Path

from hackmatrix.game import native

FOLDER = Path(native.__file__).parent
GAME = 1_500  # its rules, and batches of games
FACES = 300  # for NumPy and XLA
TACTICAL = 450  # the layout


def lines(names: Iterable[str]) -> int:
    return sum(len((FOLDER / name).read_text().splitlines()) for name in names)


def test_lines() -> None:
    faces, tactical = {"numpy.cpp", "xla.cpp", "xla.hpp"}, {"tactical.hpp"}
    files = {path.name for path in (*FOLDER.glob("*.hpp"), *FOLDER.glob("*.cpp"))}
    assert lines(files - faces - tactical) <= GAME
    assert lines(faces) <= FACES
    assert lines(tactical) <= TACTICAL
