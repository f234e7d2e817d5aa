"""Section 8: the 23 programs, their costs, and the spawn counts of their blocks."""

from enum import IntEnum
from typing import NamedTuple


class Program(NamedTuple):
    """One row of the table of section 8; costs in credits and energy."""

    name: str
    credits: int
    energy: int
    spawn: int


PROGRAMS = (
    Program("PUSH", 0, 2, 4),
    Program("PULL", 0, 2, 4),
    Program("CRASH", 3, 2, 6),
    Program("WARP", 2, 2, 5),
    Program("POLY", 1, 1, 3),
    Program("WAIT", 0, 1, 1),
    Program("DEBUG", 3, 0, 4),
    Program("ROW", 3, 1, 2),
    Program("COL", 3, 1, 2),
    Program("UNDO", 1, 0, 3),
    Program("STEP", 0, 3, 4),
    Program("SIPH+", 5, 0, 7),
    Program("EXCH", 4, 0, 3),
    Program("SHOW", 2, 0, 2),
    Program("RESET", 0, 4, 2),
    Program("CALM", 2, 4, 6),
    Program("D_BOM", 3, 0, 4),
    Program("DELAY", 1, 2, 4),
    Program("ANTI-V", 3, 0, 4),
    Program("SCORE", 0, 5, 5),
    Program("REDUC", 2, 1, 3),
    Program("ATK+", 4, 4, 8),
    Program("HACK", 2, 2, 4),
)


class ProgramId(IntEnum):
    """Program numbers 0..22 (action - 5)."""

    PUSH = 0
    PULL = 1
    CRASH = 2
    WARP = 3
    POLY = 4
    WAIT = 5
    DEBUG = 6
    ROW = 7
    COL = 8
    UNDO = 9
    STEP = 10
    SIPH_PLUS = 11
    EXCH = 12
    SHOW = 13
    RESET = 14
    CALM = 15
    D_BOM = 16
    DELAY = 17
    ANTI_V = 18
    SCORE = 19
    REDUC = 20
    ATK_PLUS = 21
    HACK = 22


PROGRAM_INDEX = {program.name: number for number, program in enumerate(PROGRAMS)}

MAX_SAVED_STATES = 4  # UNDO
EXCH_ENERGY = 4
DELAY_TURNS = 3
MAX_ATK_USES = 2  # in one stage
