"""The size of the native engine, which a reader has to read: comments and empty lines too."""

from collections.abc import Iterable
from pathlib import Path

from hackmatrix.game import native

FOLDER = Path(native.__file__).parent
GAME = 1_330  # its rules
FACES = 870  # batches for NumPy and XLA, and to and from the JAX engine
GPUS = 680  # the kernels for NVIDIA's GPUs, and what compiles, checks and launches them
LAYOUTS = 530  # of features
IMAGINED = 200  # games made up from what the player sees
LEGALITY = 150  # what comes from outside
PLAYER = 550  # the scripted one
ROWS = 360  # of networks that read what lies where, and their calls


def lines(names: Iterable[str]) -> int:
    return sum(len((FOLDER / name).read_text().splitlines()) for name in names)


def test_lines() -> None:
    faces = {"numpy.cpp", "xla.cpp", "xla.hpp", "jax_state.hpp"}
    faces |= {"batch.hpp", "calls.hpp", "env_step.hpp"}
    gpus = {"cuda.cpp", "cuda_std.hpp", "kernels.cu", "cuda.py", "cuda_check.py"}
    layouts = {"record.hpp", "tactical.hpp", "features.hpp"}
    imagined = {"imagination.hpp"}
    legality = {"legality.hpp"}
    player = {"scripted.hpp"}
    rows = {"rows.hpp", "row_calls.hpp"}  # of the network `player_centred`
    files = {path.name for path in (*FOLDER.glob("*.hpp"), *FOLDER.glob("*.cpp"))}
    assert lines(files - faces - gpus - layouts - imagined - legality - player - rows) <= GAME
    assert lines(faces) <= FACES
    assert lines(gpus) <= GPUS
    assert lines(layouts) <= LAYOUTS
    assert lines(imagined) <= IMAGINED
    assert lines(legality) <= LEGALITY
    assert lines(player) <= PLAYER
    assert lines(rows) <= ROWS
