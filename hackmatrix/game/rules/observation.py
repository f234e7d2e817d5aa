"""Section 12: the layout of the compact record and of the float features made from it.

Only these tables define which bits mean what: both engines encode and decode by them, and
`docs/environment.md` shows them. A record is `RECORD_SIZE` bytes: six planes, each with a byte for
every cell, then the scalars of the game.
"""

from itertools import accumulate
from typing import Any, NamedTuple

from hackmatrix.game.rules.board import CELLS, MAX_POINTS, MAX_RESOURCE, MAX_SPAWN, SIZE
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.programs import MAX_ATK_USES, MAX_SAVED_STATES, PROGRAMS
from hackmatrix.game.rules.stages import FIRST_INTERVAL, LAST_STAGE, MAX_HP
from hackmatrix.game.rules.tactical import TACTICAL_SIZE

MAX_TURNS = 4  # maximum of a transmission's turns as observed
MAX_SEEN = 3  # maximum number of enemies counted on one cell
MAX_DISTANCE = 10  # maximum distance from the exit


class Field(NamedTuple):
    """Consecutive bits of a byte that hold one value."""

    name: str
    byte: str  # name of the plane, or `flags`
    first: int  # the lowest bit
    width: int  # how many bits
    largest: int  # largest value that occurs
    meaning: str

    def of(self, byte: Any) -> Any:
        """Extracts the field from a byte: an int, or an integer array of any shape."""
        # On arrays, a shift by 0 or a mask that keeps all bits would cost an operation for nothing.
        value = byte >> self.first if self.first else byte
        return value if self.first + self.width == 8 else value & ((1 << self.width) - 1)

    def put(self, value: Any) -> Any:
        """The byte with this value (integers or booleans of any shape) and zeros elsewhere."""
        return value * (1 << self.first) if self.first else value


FIELDS = (
    Field("enemy_type", "enemy", 0, 3, len(EnemyType), "1 + type of the enemy seen, 0 for none"),
    Field("enemy_hp", "enemy", 3, 2, 3, "its hp"),
    Field("stunned", "enemy", 5, 1, 1, "it is stunned"),
    Field("from_siphon", "enemy", 6, 1, 1, "it came from siphoning a block"),
    Field("last_seen", "enemy", 7, 1, 1, "a hidden cryptog was last seen here"),
    Field("transmission", "transmission", 0, 1, 1, "there is a transmission"),
    Field("turns", "transmission", 1, 3, MAX_TURNS, f"its turns left, at most {MAX_TURNS}"),
    Field("coming_type", "transmission", 4, 3, len(EnemyType), "1 + its type after SHOW, else 0"),
    Field("in_fire", "transmission", 7, 1, 1, "the cell is in the player's line of fire"),
    Field("block", "cell", 0, 2, 3, "1 data, 2 program, 3 question block, 0 for none"),
    Field("siphoned", "cell", 2, 1, 1, "the cell is siphoned"),
    Field("center", "cell", 3, 1, 1, "the player stood here when siphoning"),
    Field("data_siphon", "cell", 4, 1, 1, "there is a data siphon to pick up"),
    Field("exit", "cell", 5, 1, 1, "the cell is the exit"),
    Field("enemies_seen", "cell", 6, 2, MAX_SEEN, f"enemies seen here, at most {MAX_SEEN}"),
    Field("credits", "resource", 0, 2, MAX_RESOURCE, "credits; 0 under an unsiphoned block"),
    Field("energy", "resource", 2, 2, MAX_RESOURCE, "energy; 0 under an unsiphoned block"),
    Field(
        "exit_distance",
        "resource",
        4,
        4,
        MAX_DISTANCE,
        "steps from the exit; no path counts as 10",
    ),
    Field("value", "value", 0, 8, len(PROGRAMS) - 1, "points of data, or number of the program"),
    Field("spawn", "spawn", 0, 8, MAX_SPAWN, "spawn count of a data or program block"),
    Field("show", "flags", 0, 1, 1, "SHOW is on"),
    Field("calm", "flags", 1, 1, 1, "CALM is on"),
    Field("step", "flags", 2, 1, 1, "STEP is on: the next enemy turn is left out"),
)
FIELD = {field.name: field for field in FIELDS}


class CellBytes(NamedTuple):
    """One byte of each plane: ints for one cell, or integer arrays of one shape for many."""

    enemy: Any = 0
    transmission: Any = 0
    cell: Any = 0
    resource: Any = 0
    value: Any = 0
    spawn: Any = 0

    @classmethod
    def of(cls, records: Any) -> "CellBytes":
        """Splits records [..., RECORD_SIZE] into the six planes, arrays [..., 36]."""
        return cls(*(records[..., start : start + CELLS] for start in PLANE.values()))

    @classmethod
    def holding(cls, values: dict[str, int]) -> "CellBytes":
        """The bytes of a cell with these values in the named fields and zeros elsewhere."""
        byte_of = dict.fromkeys(PLANE, 0)
        for name, value in values.items():
            if value:  # most are 0
                field = FIELD[name]
                byte_of[field.byte] += field.put(value)
        return cls(*byte_of.values())

    def field(self, name: str) -> Any:
        """The values of a field: an int or an array, like the bytes."""
        field = FIELD[name]
        return field.of(getattr(self, field.byte))


PLANE = {name: i * CELLS for i, name in enumerate(CellBytes._fields)}  # first byte of each
ENEMY, TRANSMISSION, CELL, RESOURCE, VALUE, SPAWN = PLANE.values()


class Scalar(NamedTuple):
    """A scalar of the game, stored in one or more bytes, little-endian."""

    name: str
    size: int  # bytes
    meaning: str


SCALARS = (
    Scalar("cell", 1, "cell of the player"),
    Scalar("hp", 1, "hp of the player"),
    Scalar("stage", 1, f"stage, 1 to {LAST_STAGE}"),
    Scalar("flags", 1, "`show`, `calm` and `step`, a bit each"),
    Scalar("atk_uses", 1, "uses of ATK+ in this stage"),
    Scalar("saved", 1, "states saved for UNDO"),
    Scalar("credits", 2, "credits of the player"),
    Scalar("energy", 2, "energy of the player"),
    Scalar("siphons", 2, "data siphons held"),
    Scalar("attack", 2, "damage of one hit"),
    Scalar("score", 2, "score"),
    Scalar("turn", 2, "enemy turns in this stage"),
    Scalar("next_task", 2, "turn of the next scheduled spawn"),
    Scalar("interval", 2, "turns from one scheduled spawn to the next"),
    Scalar("pending", 2, "spawns owed by siphoning"),
    Scalar("owned", -(-len(PROGRAMS) // 8), "owned programs: bit n for program n"),
)
SCALAR = {value.name: value for value in SCALARS}
*_STARTS, _END = accumulate((value.size for value in SCALARS), initial=len(PLANE) * CELLS)
BYTE = dict(zip(SCALAR, _STARTS, strict=True))  # first byte of each
RECORD_SIZE = -(-_END // 4) * 4  # padded with zeros to a multiple of 4 bytes


def number_of(record: Any, name: str) -> Any:
    """Reads a scalar of the game, or a flag by its field's name.

    Args:
        record: `bytes`, which give an int, or an integer array [..., RECORD_SIZE], which gives
            int32[...].
        name: the name of a row of `SCALARS`, or of a field of `flags`.
    """
    if name not in SCALAR:
        return FIELD[name].of(number_of(record, FIELD[name].byte))
    start, size = BYTE[name], SCALAR[name].size
    if isinstance(record, bytes):
        return int.from_bytes(record[start : start + size], "little")
    value = record[..., start].astype("int32")
    for i in range(1, size):
        value = value | record[..., start + i].astype("int32") << 8 * i
    return value


class Channel(NamedTuple):
    """A rule that makes one or more float features of a number.

    With `size` 1 the feature is `(number - zero) / scale`, clipped to `low` and `high`. A larger
    `size` makes it a one-hot vector: feature i is 1 if the number is i + 1, so 0 gives all zeros.
    """

    name: str
    scale: int = 1
    zero: int = 0
    low: int | None = None
    high: int | None = None
    size: int = 1
    meaning: str = ""  # empty where a field or number of the same name has one


def _share(name: str) -> Channel:
    """A channel that divides a field by its largest value."""
    return Channel(name, scale=FIELD[name].largest)


def _one_hot(name: str) -> Channel:
    """A channel that one-hot encodes a field's values from 1 to its largest."""
    return Channel(name, size=FIELD[name].largest)


PLAYER_CHANNELS = (
    Channel("row", scale=SIZE - 1, meaning="row of the player"),
    Channel("col", scale=SIZE - 1, meaning="column of the player"),
    Channel("hp", scale=MAX_HP),
    Channel("credits", scale=50, high=1),
    Channel("energy", scale=50, high=1),
    Channel("stage", zero=1, scale=LAST_STAGE - 1),
    Channel("siphons", scale=10),
    Channel("attack", zero=1, scale=2),
    Channel("show"),
    Channel("calm"),
)
CELL_CHANNELS = (
    _one_hot("enemy_type"),
    _share("enemy_hp"),
    _share("stunned"),
    _share("from_siphon"),
    _one_hot("block"),
    Channel("points", scale=MAX_POINTS, meaning="points of a data block"),
    Channel("siphoned_block", meaning="1 on a siphoned block"),
    Channel("program", size=len(PROGRAMS), meaning="1 + program of a program block"),
    Channel("spawn", scale=9, high=1),
    _share("turns"),
    _share("credits"),
    _share("energy"),
    _share("data_siphon"),
    _share("exit"),
    _share("center"),
)
EXTRA_CELL_CHANNELS = (
    _one_hot("coming_type"),
    _share("transmission"),
    _share("siphoned"),
    _share("last_seen"),
    _share("enemies_seen"),
    _share("in_fire"),
    _share("exit_distance"),
)
EXTRA_CHANNELS = (
    Channel("step"),
    Channel("turn", scale=20),
    Channel("until_task", scale=12, low=-1, high=1, meaning="turns until the next scheduled spawn"),
    Channel("interval", scale=FIRST_INTERVAL),
    Channel("pending", scale=9, high=1),
    Channel("atk_uses", scale=MAX_ATK_USES, high=1),
    Channel("score", scale=50, high=1),
    Channel("saved", scale=MAX_SAVED_STATES, high=1),
    Channel("credits", scale=20, high=1),
    Channel("energy", scale=20, high=1),
    Channel("stage", size=LAST_STAGE),
)


def channel_starts(channels: tuple[Channel, ...]) -> dict[str, int]:
    """Index of the first feature of each channel among the features of all these channels."""
    sizes = accumulate((channel.size for channel in channels), initial=0)
    return dict(zip((channel.name for channel in channels), sizes, strict=False))


def _size(channels: tuple[Channel, ...]) -> int:
    return sum(channel.size for channel in channels)


PLAYER_FEATURES = _size(PLAYER_CHANNELS)
CELL_FEATURES = _size(CELL_CHANNELS)
EXTRA_CELL_FEATURES = _size(EXTRA_CELL_CHANNELS)
EXTRA_FEATURES = _size(EXTRA_CHANNELS) + len(PROGRAMS)
CLASSIC_SIZE = PLAYER_FEATURES + len(PROGRAMS) + CELLS * CELL_FEATURES
FEATURE_SIZE = {
    "classic": CLASSIC_SIZE,
    "full": CLASSIC_SIZE + CELLS * EXTRA_CELL_FEATURES + EXTRA_FEATURES,
    "tactical": TACTICAL_SIZE,
}
