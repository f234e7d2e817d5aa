"""Every random draw of the rules, and what its `index` counts.

Both engines call the same pure function `draw(stream, episode, clock, site, index)`, so a game is
determined by its (stream, episode) and its actions. The numbers are part of recorded games: never
change or reuse one.
"""

from enum import IntEnum


class Site(IntEnum):
    """A random draw of the rules.

    Comments list its options in the order in which they are numbered.
    """

    START_CORNER = 0  # corners by cell
    START_BONUS = 1  # START_BONUSES
    EXIT_CORNER = 2  # corners other than the player's, by cell
    BLOCK_COUNT = 3  # 5..11
    BLOCK_CELL = 4  # index: try * 16 + block; free cells ascending
    BLOCK_IS_DATA = 5  # index: block, as its cell was drawn; (data, program)
    BLOCK_IS_QUESTION = 6  # index: block; QUESTION_CHANCES
    BLOCK_POINTS = 7  # index: block; 1..9
    BLOCK_PROGRAM = 8  # index: block; programs not on the board yet, ascending
    RESOURCE_IS_CREDITS = 9  # index: cell; (credits, energy)
    RESOURCE_AMOUNT = 10  # index: cell; AMOUNT_CHANCES
    SPAWN_CELL = 11  # index: see below; allowed cells ascending
    SPAWN_TYPE = 12  # index: see below; enemy types
    ENEMY_ORDER = 13  # index: sub-step * 32 + place; enemies still to act, in list order
    POLY_TYPE = 14  # index: place in the enemy list; the other types ascending
    WARP_TARGET = 15  # enemies, then transmissions, in list order


# The index of SPAWN_CELL and SPAWN_TYPE: 0 for the scheduled spawn of a turn; spawns pending from
# siphoning count from FIRST_PENDING_SPAWN; those of a new stage count from 0 (no enemy turn
# follows).
SCHEDULED_SPAWN = 0
FIRST_PENDING_SPAWN = 1
FIRST_STAGE_SPAWN = 0

MAX_WORD = 0xFFFFFFFF  # streams, episodes, clocks and draws are uint32

LAYOUT_STRIDE = 16  # BLOCK_CELL: index = try * LAYOUT_STRIDE + block
EVALUATION_STREAM = 1 << 31  # streams from here on (top bit set) are never trained on
