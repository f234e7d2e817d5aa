"""The states of the native engine as NumPy sees them: the structs of `state.hpp`, by field."""

import numpy as np

from hackmatrix.game.rules.board import CELLS
from hackmatrix.game.rules.enemies import MAX_ENEMIES
from hackmatrix.game.rules.programs import MAX_SAVED_STATES, PROGRAMS


def _struct(*fields: tuple[str, object] | tuple[str, object, int]) -> np.dtype[np.void]:
    """A struct with the alignment of C."""
    return np.dtype(list(fields), align=True)


def _pieces(piece: np.dtype[np.void], most: int) -> np.dtype[np.void]:
    return _struct(("count", "u1"), ("pieces", piece, most))


PLAYER = _struct(
    ("cell", "u1"),
    ("hp", "u1"),
    *((name, "i2") for name in ("credits", "energy", "siphons", "attack", "score")),
)
CELL_SETS = ("blocks", "data", "questions", "siphons", "siphoned", "center")
CELL_NUMBERS = ("credits", "energy", "value", "spawn")
CELL = _struct(
    *((name, "u8") for name in CELL_SETS),
    *((name, "u1", CELLS) for name in CELL_NUMBERS),
)
ENEMY = _struct(
    ("type", "u1"),
    ("cell", "u1"),
    ("hp", "i1"),
    ("disabled", "u1"),
    ("stunned", "?"),
    ("from_schedule", "?"),
    ("from_siphon", "?"),
    ("last", "u1"),
)
TRANSMISSION = _struct(
    ("turns", "i2"), ("cell", "u1"), ("type", "u1"), ("from_schedule", "?"), ("from_siphon", "?")
)
_POSITION = (
    ("player", PLAYER),
    ("owned", "u4"),
    ("acquired", "u1", len(PROGRAMS)),
    ("atk_uses", "u1"),
    ("turn", "i2"),
    ("show", "?"),
    ("calm", "?"),
    ("cells", CELL),
    ("enemies", _pieces(ENEMY, MAX_ENEMIES)),
    ("transmissions", _pieces(TRANSMISSION, CELLS)),
)
POSITION = _struct(*_POSITION)
DICE = _struct(("stream", "u4"), ("episode", "u4"), ("clock", "u4"))
STATE = _struct(
    ("position", POSITION),
    ("dice", DICE),
    ("interval", "i2"),
    ("next_task", "i2"),
    ("pending", "i2"),
    ("exit", "u1"),
    ("stage", "u1"),
    ("step", "?"),
    ("over", "u1"),
    ("saved", "u1"),
    ("newest_saved", "u1"),
)
ENV_STATE = _struct(("game", STATE), ("episode_return", "i4"), ("episode_length", "i4"))
SAVED_POSITIONS = _struct(("positions", POSITION, MAX_SAVED_STATES))

NAMES: dict[str, tuple[str, ...]] = {  # of the fields of these structs
    "player": PLAYER.names or (),
    "enemy": ENEMY.names or (),
    "transmission": TRANSMISSION.names or (),
    "dice": DICE.names or (),
}
