"""Section 2: the four kinds of enemies."""

from enum import IntEnum


class EnemyType(IntEnum):
    """Kinds of enemies, by index."""

    VIRUS = 0
    DAEMON = 1
    GLITCH = 2
    CRYPTOG = 3


MAX_HP = (2, 3, 2, 2)  # by type
STEPS_PER_TURN = (2, 1, 1, 1)  # by type
MAX_ENEMIES = 32
MAX_DISABLED = 99  # turns that an enemy may not act, in a legal state
