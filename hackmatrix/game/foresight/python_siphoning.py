"""Layout `tactical`: what siphoning gives, and the ways there."""

from dataclasses import dataclass, field

from hackmatrix.game.foresight.cell_sets import ALL, BIT, distances, members
from hackmatrix.game.foresight.python_board import FeatureGroups
from hackmatrix.game.foresight.visible_state import VisibleState
from hackmatrix.game.rules.actions import NUM_DIRECTIONS
from hackmatrix.game.rules.board import CELLS, CROSS, NEIGHBOUR, Content
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.observation import MAX_DISTANCE
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.tactical import (
    CREDIT_WORTH,
    ENERGY_WORTH,
    FAR,
    LARGEST_WORTH,
    MAX_COUNT,
    MAX_HITS,
    MAX_SPAWNS,
    NO_WORTH,
    PROGRAM_WORTH,
    QUESTION_WORTH,
    RINGS,
    SPAWN_WORTH,
    STEP_WORTH,
)


@dataclass
class _SiphonYield:
    """The yield of siphoning a cell, or a cross."""

    credits: int = 0
    energy: int = 0
    spawns: int = 0
    questions: int = 0
    programs: list[int] = field(default_factory=list)

    @property
    def worth(self) -> int:
        return (
            CREDIT_WORTH * self.credits
            + ENERGY_WORTH * self.energy
            + SPAWN_WORTH * self.spawns
            + QUESTION_WORTH * self.questions
            + sum(PROGRAM_WORTH[program] for program in self.programs)
        )


def _yield(visible: VisibleState, cell: int) -> _SiphonYield:
    block = visible.board.unsiphoned.get(cell)
    if block is None:
        return _SiphonYield(*visible.board.resources.get(cell, (0, 0)))
    spawns = min(block.spawn, MAX_SPAWNS)
    match block.content:
        case Content.QUESTION:
            return _SiphonYield(questions=1)
        case Content.DATA:
            return _SiphonYield(spawns=spawns)
    owned = visible.owned >> block.value & 1
    return _SiphonYield(spawns=spawns, programs=[] if owned else [block.value])


def _over_cross(yields: list[_SiphonYield], cell: int) -> _SiphonYield:
    parts = [yields[c] for c in CROSS[cell]]
    return _SiphonYield(
        sum(part.credits for part in parts),
        sum(part.energy for part in parts),
        sum(part.spawns for part in parts),
        sum(part.questions for part in parts),
        [program for part in parts for program in part.programs],
    )


def of_siphoning(visible: VisibleState) -> FeatureGroups:
    """The groups about siphoning and ways, and the enemies by their distance."""
    here, board = visible.cell, visible.board
    free = ALL & ~board.blocks
    yields = [_yield(visible, cell) for cell in range(CELLS)]
    way = _ways(BIT[here], free)
    to_siphon = _ways(board.data_siphons, free)
    worth = {
        cell: _over_cross(yields, cell).worth + STEP_WORTH * way[cell]
        for cell in members(free)
        if way[cell] < FAR
    }
    best_worth = max(worth.values(), default=NO_WORTH)
    best = min((cell for cell in worth if worth[cell] == best_worth), default=0)
    to_best = _ways(BIT[best], free)
    to_exit = _ways(BIT[board.exit], free | BIT[here], MAX_DISTANCE)
    own = _over_cross(yields, here)
    viruses = [enemy.cell for enemy in visible.enemies if enemy.type == EnemyType.VIRUS]
    others = [enemy.cell for enemy in visible.enemies if enemy.type != EnemyType.VIRUS]

    def nearer(table: list[int]) -> list[int]:
        ahead = [NEIGHBOUR[here][direction] for direction in range(NUM_DIRECTIONS)]
        return [
            0 if c is None or not free >> c & 1 else max(-1, min(1, table[here] - table[c]))
            for c in ahead
        ]

    def rings(pieces: list[int]) -> list[int]:
        counts = [sum(way[c] == distance for c in pieces) for distance in range(1, RINGS + 1)]
        return [min(count, MAX_HITS) for count in counts]

    return {
        "go_to_exit": nearer(to_exit),
        "go_to_siphon": nearer(to_siphon),
        "go_to_best": nearer(to_best),
        "program_near": [_nearness(yields, way, program) for program in range(len(PROGRAMS))],
        "here_credits": [own.credits],
        "here_energy": [own.energy],
        "here_spawns": [own.spawns],
        "here_questions": [own.questions],
        "here_programs": [len(own.programs)],
        "here_worth": [_halved(own.worth)],
        "best_worth": [_halved(best_worth)],
        "best_distance": [to_best[here]],
        "best_here": [int(to_best[here] == 0)],
        "credits_left": [sum(part.credits for part in yields)],
        "energy_left": [sum(part.energy for part in yields)],
        "siphons_left": [min(board.data_siphons.bit_count(), MAX_COUNT)],
        "siphon_distance": [to_siphon[here]],
        "exit_distance": [to_exit[here]],
        "walkers_at": rings(others),
        "viruses_at": rings(viruses),
    }


def _halved(worth: int) -> int:
    return max(-LARGEST_WORTH, min(LARGEST_WORTH, worth >> 1))


def _nearness(yields: list[_SiphonYield], way: list[int], program: int) -> int:
    """The nearness of the first cell from which a program can be siphoned."""
    for cell in range(CELLS):
        if program in yields[cell].programs:
            return FAR - min(way[c] for c in CROSS[cell])
    return 0


def _ways(goals: int, free: int, far: int = FAR) -> list[int]:
    """Steps from a set of cells over free ones, at most `far`."""
    return [min(distance, far) for distance in distances(goals, free)]
