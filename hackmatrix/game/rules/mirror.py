"""The board mirrored: what becomes of the actions and of the layout `tactical`.

A game whose rows or columns are turned around is played the same way turned around, as corners,
blocks and dice favor no side. Only ties are broken by the order of directions and cells; so are
those of the layout, between equally good places for siphoning and equally near daemons.
"""

from collections.abc import Iterator

from hackmatrix.game.rules.actions import NUM_ACTIONS, NUM_DIRECTIONS
from hackmatrix.game.rules.board import DIRECTIONS, SIZE
from hackmatrix.game.rules.tactical import GROUPS, START

ROWS, COLUMNS = AXES = (0, 1)


def mirrored_actions(axis: int) -> tuple[int, ...]:
    """For each action the one that does the same on the board with `axis` turned around."""
    directions = (DIRECTIONS.index(_mirrored(step, axis)) for step in DIRECTIONS)
    return (*directions, *range(NUM_DIRECTIONS, NUM_ACTIONS))


def mirrored_features(axis: int) -> tuple[int, ...]:
    """For each feature of `tactical` the one that says the same of the mirrored board."""

    def features() -> Iterator[int]:
        for group in GROUPS:
            positions = list(range(group.size))
            if group.steps:
                positions = [group.steps.index(_mirrored(step, axis)) for step in group.steps]
            elif group.name == "line":  # the player's row, one-hot, then the column
                line = [list(range(SIZE)), list(range(SIZE, 2 * SIZE))]
                line[axis].reverse()
                positions = [*line[ROWS], *line[COLUMNS]]
            yield from (START[group.name] + place for place in positions)

    return tuple(features())


def _mirrored(step: tuple[int, int], axis: int) -> tuple[int, int]:
    rows, columns = step
    return (-rows, columns) if axis == ROWS else (rows, -columns)
