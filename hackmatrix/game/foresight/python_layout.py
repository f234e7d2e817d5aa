"""Section 12, continued: the layout `tactical`, worked out from a compact record."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hackmatrix.game.foresight.cell_sets import ALL, BIT, distances, members
from hackmatrix.game.foresight.python_board import FeatureGroups, look
from hackmatrix.game.foresight.python_strikes import of_programs
from hackmatrix.game.foresight.python_threats import of_directions, of_window
from hackmatrix.game.foresight.visible_state import VisibleState
from hackmatrix.game.rules.actions import NUM_DIRECTIONS
from hackmatrix.game.rules.board import CELLS, CROSS, NEIGHBOUR, SIZE, Content, col, row
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.observation import MAX_DISTANCE, number_of
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.stages import LAST_STAGE, MAX_HP
from hackmatrix.game.rules.tactical import (
    CREDIT_WORTH,
    ENERGY_WORTH,
    FAR,
    GROUPS,
    HOARDS,
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


def tactical_numbers(record: bytes) -> list[int]:
    """The integers of `rules.tactical.GROUPS`, of a compact record."""
    visible = look(record)
    groups: FeatureGroups = {
        **of_directions(visible),
        **of_programs(visible),
        **of_window(visible),
        **of_siphoning(visible),
        **_pieces(visible),
        **_scalars(record),
    }
    return [value for group in GROUPS for value in groups[group.name]]


def _pieces(visible: VisibleState) -> FeatureGroups:
    types = [enemy.type for enemy in visible.enemies]
    stunned = sum(enemy.stunned for enemy in visible.enemies)
    return {
        "enemies": [min(types.count(enemy_type), MAX_COUNT) for enemy_type in EnemyType],
        "stunned": [min(stunned, MAX_COUNT)],
        "hidden": [min(visible.last_seen.bit_count(), MAX_COUNT)],
        "transmissions": [min(visible.transmissions.bit_count(), MAX_COUNT)],
        "empty_of_pieces": [int(not visible.pieces)],
    }


def _scalars(record: bytes) -> FeatureGroups:
    cell = number_of(record, "cell")

    def scalar(name: str) -> int:
        value: int = number_of(record, name)
        return value

    def one_hot(value: int, values: range) -> list[int]:
        return _flags(value == one for one in values)

    def at_least(name: str, bounds: Sequence[int]) -> list[int]:
        return _flags(scalar(name) >= bound for bound in bounds)

    return {
        "hp": one_hot(scalar("hp"), range(1, MAX_HP + 1)),
        "siphons": at_least("siphons", (1, 2, 3)),
        "attack": at_least("attack", (2, 3, 4)),
        "credits": [min(scalar("credits"), 60)],
        "energy": [min(scalar("energy"), 60)],
        "has_credits": at_least("credits", HOARDS),
        "has_energy": at_least("energy", HOARDS),
        "stage": one_hot(scalar("stage"), range(1, LAST_STAGE + 1)),
        "turn": [min(scalar("turn"), 80)],
        "until_task": [max(-1, min(24, scalar("next_task") - scalar("turn")))],
        "interval": [min(scalar("interval"), 24)],
        "pending": [min(scalar("pending"), 18)],
        "saved": [scalar("saved")],
        "atk_uses": [scalar("atk_uses")],
        "flags": [scalar(flag) for flag in ("show", "calm", "step")],
        "line": [*one_hot(row(cell), range(SIZE)), *one_hot(col(cell), range(SIZE))],
    }


def _flags(values: Iterable[object]) -> list[int]:
    return [int(bool(value)) for value in values]


# --- Layout `tactical`: what siphoning gives, and the ways there ----------------------------------


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
