"""The size of the native engine, which a reader has to read: comments and empty lines too."""

from collections.abc import Iterable
from pathlib import Path

from hackmatrix.game import native

FOLDER = Path(native.__file__).parent
GAME = 1_320  # its rules
FACES = 840  # batches for NumPy and XLA, and to and from the JAX engine
LAYOUTS = 530  # of features
IMAGINED = 200  # games made up from what the player sees
LEGALITY = 150  # what comes from outside
PLAYER = 550  # the scripted one


def lines(names: Iterable[str]) -> int:
    return sum(len((FOLDER / name).read_text().splitlines()) for name in names)


def test_lines() -> None:
    faces = {"batch.hpp", "numpy.cpp", "xla.cpp", "xla.hpp", "jax_state.hpp"}
    layouts = {"record.hpp", "tactical.hpp", "features.hpp"}
    imagined = {"imagined.hpp"}
    legality = {"legality.hpp"}
    player = {"scripted.hpp"}
    files = {path.name for path in (*FOLDER.glob("*.hpp"), *FOLDER.glob("*.cpp"))}
    assert lines(files - faces - layouts - imagined - legality - player) <= GAME
    assert lines(faces) <= FACES
    assert lines(layouts) <= LAYOUTS
    assert lines(imagined) <= IMAGINED
    assert lines(legality) <= LEGALITY
    assert lines(player) <= PLAYER
