"""The arrays of the native engine: the structs of `state.hpp` by field, and results of steps."""

from typing import Any, NamedTuple

import numpy as np

from hackmatrix.game.rules.board import CELLS
from hackmatrix.game.rules.enemies import MAX_ENEMIES
from hackmatrix.game.rules.observation import RECORD_SIZE
from hackmatrix.game.rules.programs import MAX_SAVED_STATES, PROGRAMS
from hackmatrix.game.rules.rewards import REWARD_PARTS

Array = np.ndarray[Any, Any]


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
SAVED_POSITIONS = _struct(("positions", POSITION, MAX_SAVED_STATES))

NAMES: dict[str, tuple[str, ...]] = {  # of the fields of these structs
    "player": PLAYER.names or (),
    "enemy": ENEMY.names or (),
    "transmission": TRANSMISSION.names or (),
    "dice": DICE.names or (),
}


class Games(NamedTuple):
    """N games. Only `batch.py` and `conversion.py` write into these arrays."""

    states: Array  # STATE[N]
    saved: Array  # SAVED_POSITIONS[N], positions that UNDO can restore
    episode_return: Array  # int32[N], in units of 0.005
    episode_length: Array  # int32[N], actions taken


class Step(NamedTuple):
    """Results of one step of N games, those of `HackMatrixEnv.step` and the mask."""

    observation: Array  # uint8[N, RECORD_SIZE]
    mask: Array  # uint32[N], the valid actions, bit a for action a
    reward: Array  # float32[N]
    terminated: Array  # bool[N]
    truncated: Array  # bool[N]
    reward_parts: Array  # float32[N, 15]
    final_observation: Array  # uint8[N, RECORD_SIZE], before a restart
    episode_return: Array  # float32[N]
    episode_length: Array  # int32[N]
    episode_done: Array  # bool[N]
    stage: Array  # int32[N]
    score: Array  # int32[N]
    programs_owned: Array  # int32[N]
    won: Array  # bool[N]


def empty_games(num_games: int) -> Games:
    """Room for games."""
    returns, lengths = np.zeros(num_games, np.int32), np.zeros(num_games, np.int32)
    return Games(np.zeros(num_games, STATE), np.zeros(num_games, SAVED_POSITIONS), returns, lengths)


def empty_step(games: int) -> Step:
    """Room for the results of a step, with any values."""

    def array(dtype: type, *shape: int) -> Array:
        return np.empty((games, *shape), dtype)

    return Step(
        observation=array(np.uint8, RECORD_SIZE),
        mask=array(np.uint32),
        reward=array(np.float32),
        terminated=array(np.bool_),
        truncated=array(np.bool_),
        reward_parts=array(np.float32, len(REWARD_PARTS)),
        final_observation=array(np.uint8, RECORD_SIZE),
        episode_return=array(np.float32),
        episode_length=array(np.int32),
        episode_done=array(np.bool_),
        stage=array(np.int32),
        score=array(np.int32),
        programs_owned=array(np.int32),
        won=array(np.bool_),
    )
