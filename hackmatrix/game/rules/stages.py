"""Sections 6, 7, 9 and 10: the numbers of stages, spawns and new games."""

LAST_STAGE = 8
MAX_HP = 3  # of the player

FIRST_INTERVAL = 12
STAGE_INTERVAL = 13  # minus the stage
MIN_INTERVAL = 4  # siphoning shortens the interval down to this
SIPHON_DELAY = 5  # and moves the next scheduled spawn back

MIN_BLOCKS, MAX_BLOCKS = 5, 11
LAYOUT_TRIES = 100
# Ten equal chances: one in ten blocks is a question block.
QUESTION_CHANCES = (True,) + (False,) * 9
# Twenty equal chances: 1, 2 or 3 with 0.45, 0.45 and 0.10.
AMOUNT_CHANCES = (1,) * 9 + (2,) * 9 + (3,) * 2

# The three start bonuses: (credits, energy, siphons).
START_BONUSES = ((10, 0, 0), (0, 11, 0), (0, 0, 1))
