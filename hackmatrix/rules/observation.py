"""Section 12: the layout of the compact observation and of the float features made from it.

The compact record is `RECORD_SIZE` bytes: six planes of 36 cells, then the numbers of the game.

| plane | bits |
|---|---|
| ENEMY | 0-2 type + 1 of the enemy seen (0 none), 3-4 hp, 5 stunned, 6 from_siphon, 7 a hidden cryptog was last seen here |
| TRANSMISSION | 0 there is one, 1-3 turns (at most 4), 4-6 type + 1 when shown, 7 in the player's line of fire |
| CELL | 0-1 block (1 data, 2 program, 3 question), 2 siphoned, 3 center, 4 data siphon, 5 exit, 6-7 enemies seen (at most 3) |
| RESOURCE | 0-1 credits, 2-3 energy, 4-7 walking distance from the exit (at most 10) |
| VALUE | points of a data block, number of the program of a program block |
| SPAWN | spawn count of a block |

The numbers follow: one byte each, then two bytes each (low byte first), then the owned programs as
three bytes of bits, lowest first.
"""  # noqa: E501

from hackmatrix.rules.board import CELLS
from hackmatrix.rules.programs import PROGRAMS
from hackmatrix.rules.stages import LAST_STAGE

PLANES = ("ENEMY", "TRANSMISSION", "CELL", "RESOURCE", "VALUE", "SPAWN")
ENEMY, TRANSMISSION, CELL, RESOURCE, VALUE, SPAWN = (i * CELLS for i in range(len(PLANES)))

BYTES = ("cell", "hp", "stage", "flags", "atk_uses", "saved")  # flags: 1 show, 2 calm, 4 step
WORDS = (
    "credits",
    "energy",
    "siphons",
    "attack",
    "score",
    "turn",
    "next_task",
    "interval",
    "pending",
)
BYTE = {name: len(PLANES) * CELLS + i for i, name in enumerate(BYTES)}
WORD = {name: len(PLANES) * CELLS + len(BYTES) + 2 * i for i, name in enumerate(WORDS)}
OWNED = len(PLANES) * CELLS + len(BYTES) + 2 * len(WORDS)
RECORD_SIZE = -(-(OWNED + 3) // 4) * 4  # whole words of four bytes; what is over is 0

MAX_TURNS = 4  # of a transmission, as seen
MAX_SEEN = 3  # enemies counted on one cell
MAX_DISTANCE = 10  # from the exit

PLAYER_FEATURES = 10
CELL_FEATURES = 42
EXTRA_CELL_FEATURES = 10
EXTRA_FEATURES = 10 + LAST_STAGE + len(PROGRAMS)
CLASSIC_SIZE = PLAYER_FEATURES + len(PROGRAMS) + CELLS * CELL_FEATURES
FEATURE_SIZE = {
    "classic": CLASSIC_SIZE,
    "full": CLASSIC_SIZE + CELLS * EXTRA_CELL_FEATURES + EXTRA_FEATURES,
}
