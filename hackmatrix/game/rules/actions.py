"""Section 3: the 28 actions: 0..3 directions, 4 siphon, 5..27 the programs."""

from hackmatrix.game.rules.programs import PROGRAMS

NUM_DIRECTIONS = 4
SIPHON = 4
FIRST_PROGRAM = 5
NUM_ACTIONS = FIRST_PROGRAM + len(PROGRAMS)

ACTION_NAMES = ("up", "down", "left", "right", "siphon", *(p.name for p in PROGRAMS))
