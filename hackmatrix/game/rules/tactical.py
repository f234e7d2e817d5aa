"""Section 12, continued: the layout `tactical`, what a good player works out from the record.

Both engines compute the same integers from the compact record, so nothing hidden can be among them.
A feature is its integer divided by the scale of its row. `docs/environment.md` shows the table.
"""

from itertools import accumulate
from typing import NamedTuple

from hackmatrix.game.rules.board import CELLS, DIRECTIONS, MAX_RESOURCE, SIZE
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.programs import PROGRAMS, ProgramId
from hackmatrix.game.rules.stages import LAST_STAGE, MAX_HP

FAR = 12  # walking distances are counted up to this; also the distance of what can't be reached
MAX_HITS = 4  # predicted hits are counted up to this
MAX_COUNT = 8  # pieces are counted up to this
MAX_SPAWNS = 15  # transmissions that a block brings are counted up to this
MAX_CROSS = 5  # cells that siphoning takes from
RINGS = 6  # enemies are counted by their walking distance up to this
LARGEST_WORTH = 127
HOARDS = (1, 2, 3, 4, 5, 8, 12, 20)  # credits or energy of at least so much
WINDOW = (  # the cells within two steps of the player: rows and columns from its cell
    *((1, 0), (-1, 0), (0, -1), (0, 1)),
    *((2, 0), (-2, 0), (0, -2), (0, 2)),
    *((1, 1), (1, -1), (-1, 1), (-1, -1)),
)
STRIKES = (  # programs whose effect on the enemies is played out
    ProgramId.PUSH,
    ProgramId.PULL,
    ProgramId.CRASH,
    ProgramId.DEBUG,
    ProgramId.ROW,
    ProgramId.COL,
    ProgramId.D_BOM,
    ProgramId.ANTI_V,
    ProgramId.HACK,
)

# The worth of a place for siphoning, in tenths: of a credit, an energy, a spawn, a step of the way,
# a question block, and of each program that is not owned yet.
CREDIT_WORTH, ENERGY_WORTH, SPAWN_WORTH, STEP_WORTH, QUESTION_WORTH = 7, 8, -13, -5, -30
_WORTH = {
    ProgramId.RESET: 98,
    ProgramId.PUSH: 90,
    ProgramId.ATK_PLUS: 77,
    ProgramId.D_BOM: 71,
    ProgramId.ROW: 67,
    ProgramId.COL: 63,
    ProgramId.STEP: 63,
    ProgramId.CRASH: 62,
    ProgramId.ANTI_V: 48,
    ProgramId.CALM: 39,
    ProgramId.SIPH_PLUS: 32,
    ProgramId.HACK: 28,
    ProgramId.UNDO: 25,
}
NO_WORTH = -999  # of a place that can't be reached
PROGRAM_WORTH = tuple(_WORTH.get(ProgramId(number), 14) for number in range(len(PROGRAMS)))


class Group(NamedTuple):
    """Consecutive features: `size` integers, each divided by `scale`."""

    name: str
    size: int
    scale: int
    meaning: str
    low: int = 0  # the smallest integer that occurs
    largest: int | None = None  # the largest one, None for `scale`
    steps: tuple[tuple[int, int], ...] = ()  # rows and columns to the cell that each is about

    @property
    def high(self) -> int:
        """The largest integer that occurs."""
        return self.scale if self.largest is None else self.largest


def _direction(name: str, scale: int, meaning: str, low: int = 0) -> Group:
    what = f"for each direction: {meaning}"
    return Group(name, len(DIRECTIONS), scale, what, low, steps=DIRECTIONS)


def _cell(name: str, scale: int, meaning: str) -> Group:
    what = f"for each cell of the window: {meaning}"
    return Group(name, len(WINDOW), scale, what, steps=WINDOW)


def _strike(name: str, scale: int, meaning: str) -> Group:
    return Group(name, len(STRIKES), scale, f"for each strike that is ready: {meaning}")


GROUPS = (
    # What a direction does, and what the enemy turn after it would bring.
    _direction("go_valid", 1, "the action is valid"),
    _direction("go_walks", 1, "it walks to the neighbour"),
    _direction("go_transmission", 1, "it destroys a transmission"),
    _direction("go_kills", 1, "it kills an enemy"),
    _direction("go_stuns", 1, "it stuns an enemy"),
    *(
        _direction(f"go_{kind.name.lower()}", 1, f"it strikes a {kind.name.lower()}")
        for kind in EnemyType
    ),
    _direction("go_target_hp", 3, "hp of the enemy that it strikes"),
    _direction("go_target_near", 1, "what it strikes is on the next cell"),
    _direction("go_target_acts", 1, "the enemy that it strikes is not stunned"),
    _direction("go_hits", MAX_HITS, "hits of the coming enemy turn after it"),
    _direction("go_hit", 1, "there is at least one"),
    _direction("go_lethal", 1, "there are as many as the player has hp"),
    _direction("go_safe_cells", 5, "cells to stand on in the turn after that, out of reach"),
    _direction("go_open", 4, "neighbours without block of the cell where the player then is"),
    _direction("go_lines", 4, "directions in which an enemy is in the line of fire then"),
    _direction("go_exit", 1, "it walks onto the exit"),
    _direction("go_siphon", 1, "it walks onto a data siphon"),
    _direction("go_to_exit", 1, "steps nearer to the exit, -1, 0 or 1", low=-1),
    _direction("go_to_siphon", 1, "steps nearer to the nearest data siphon", low=-1),
    _direction("go_to_best", 1, "steps nearer to the best place for siphoning", low=-1),
    Group("stay_hits", 1, MAX_HITS, "hits of the coming enemy turn if the player stays"),
    Group("fewest_hits", 1, MAX_HITS, "the fewest that a valid direction leads to"),
    # What the programs do.
    Group("owned", len(PROGRAMS), 1, "for each program: it is owned"),
    Group("ready", len(PROGRAMS), 1, "for each program: it is owned and affordable"),
    Group("affordable", len(PROGRAMS), 1, "for each program: it is affordable"),
    _strike("struck", MAX_HITS, "enemies that it strikes or moves"),
    _strike("killed", MAX_HITS, "enemies and transmissions that it destroys"),
    _strike("hits_after", MAX_HITS, "hits of the coming enemy turn if the player then stays"),
    _strike("fewest_after", MAX_HITS, "the fewest that a direction then leads to"),
    Group(
        "program_near",
        len(PROGRAMS),
        FAR,
        f"for each program not owned that a block shows: {FAR} less the distance of the nearest "
        "cell from which it can be siphoned",
    ),
    # The cells around.
    _cell("cell_blocked", 1, "a block is there, or the board's end"),
    *(
        _cell(f"cell_{kind.name.lower()}", 1, f"a {kind.name.lower()} is there")
        for kind in EnemyType
    ),
    _cell("cell_stunned", 1, "the enemy there is stunned"),
    _cell("cell_hp", 3, "its hp"),
    _cell("cell_transmission", 1, "a transmission is there"),
    _cell("cell_hits", MAX_HITS, "hits of the coming enemy turn for a player there"),
    _cell("cell_reached", 1, "an enemy may hit a player there in the turn after that"),
    # Siphoning.
    Group(
        "here_credits", 1, 10, "credits that siphoning here gives", largest=MAX_CROSS * MAX_RESOURCE
    ),
    Group(
        "here_energy", 1, 10, "energy that siphoning here gives", largest=MAX_CROSS * MAX_RESOURCE
    ),
    Group(
        "here_spawns",
        1,
        10,
        "transmissions that siphoning here brings",
        largest=MAX_CROSS * MAX_SPAWNS,
    ),
    Group("here_questions", 1, 2, "question blocks that siphoning here opens", largest=MAX_CROSS),
    Group("here_programs", 1, 2, "programs that siphoning here gives", largest=MAX_CROSS),
    Group("here_worth", 1, 50, "worth of siphoning here, halved", -LARGEST_WORTH, LARGEST_WORTH),
    Group(
        "best_worth",
        1,
        50,
        "worth of the best place less the way to it, halved",
        -LARGEST_WORTH,
        LARGEST_WORTH,
    ),
    Group("best_distance", 1, FAR, "steps to it, of equally good places the first by cell"),
    Group("best_here", 1, 1, "it is here"),
    Group("credits_left", 1, 40, "credits on cells not siphoned", largest=CELLS * MAX_RESOURCE),
    Group("energy_left", 1, 40, "energy on cells not siphoned", largest=CELLS * MAX_RESOURCE),
    Group("siphons_left", 1, 2, "data siphons to pick up", largest=MAX_COUNT),
    Group("siphon_distance", 1, FAR, "steps to the nearest data siphon"),
    Group("exit_distance", 1, 10, "steps to the exit"),
    # Pieces.
    Group("enemies", len(EnemyType), MAX_COUNT, "for each type: enemies seen"),
    Group("stunned", 1, MAX_COUNT, "those that are stunned"),
    Group("hidden", 1, MAX_COUNT, "cells where a hidden cryptog was last seen"),
    Group("transmissions", 1, MAX_COUNT, "transmissions"),
    Group("empty_of_pieces", 1, 1, "no enemy is seen and no transmission is there"),
    Group(
        "walkers_at", RINGS, MAX_HITS, "for each distance: other enemies than viruses so far away"
    ),
    Group("viruses_at", RINGS, MAX_HITS, "for each distance: viruses so far away"),
    # Numbers.
    Group("hp", MAX_HP, 1, "hp, one-hot"),
    Group("siphons", 3, 1, "at least 1, 2, 3 data siphons held"),
    Group("attack", 3, 1, "damage of a hit of at least 2, 3, 4"),
    Group("credits", 1, 20, "credits up to 60", largest=60),
    Group("energy", 1, 20, "energy up to 60", largest=60),
    Group("has_credits", len(HOARDS), 1, f"credits of at least {', '.join(map(str, HOARDS))}"),
    Group("has_energy", len(HOARDS), 1, "energy, likewise"),
    Group("stage", LAST_STAGE, 1, "stage, one-hot"),
    Group("turn", 1, 40, "enemy turns in this stage, up to 80", largest=80),
    Group("until_task", 1, 12, "turns until the next scheduled spawn, -1 to 24", -1, 24),
    Group("interval", 1, 12, "turns between scheduled spawns", largest=24),
    Group("pending", 1, 9, "spawns owed, up to 18", largest=18),
    Group("saved", 1, 4, "saved states"),
    Group("atk_uses", 1, 2, "uses of ATK+ in this stage"),
    Group("flags", 3, 1, "SHOW, CALM and STEP are on"),
    Group("line", 2 * SIZE, 1, "row and column of the player, one-hot"),
)
*_STARTS, TACTICAL_SIZE = accumulate((group.size for group in GROUPS), initial=0)
START = dict(zip((group.name for group in GROUPS), _STARTS, strict=True))
SCALES = tuple(1 / group.scale for group in GROUPS for _ in range(group.size))
LOW = tuple(group.low for group in GROUPS for _ in range(group.size))
HIGH = tuple(group.high for group in GROUPS for _ in range(group.size))
