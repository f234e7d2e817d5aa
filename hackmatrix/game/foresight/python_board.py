"""Layout `tactical`: what it counts of what the player sees, and the hits to expect from there."""

from collections.abc import Sequence

from hackmatrix.game.foresight.cell_sets import BIT, NEXT_TO, neighbours
from hackmatrix.game.foresight.visible_state import VisibleState
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.observation import ENEMY, FIELD

FeatureGroups = dict[str, Sequence[int]]


def look(record: bytes) -> VisibleState:
    """The board of a compact record, with one enemy for each cell, and none of unknown type."""
    visible = VisibleState.of_record(record)
    typed = [e for e in visible.enemies if FIELD["enemy_type"].of(record[ENEMY + e.cell])]
    return visible._replace(enemies=tuple({enemy.cell: enemy for enemy in typed}.values()))


def hits(visible: VisibleState, cell: int) -> int:
    """The enemies that would hit a player on a cell in the coming enemy turn.

    Neighbours, and viruses two free steps away; those that share a cell count once.
    """
    able, viruses = 0, 0
    for enemy in visible.enemies:
        if not enemy.stunned:
            able |= BIT[enemy.cell]
            viruses |= BIT[enemy.cell] * (enemy.type == EnemyType.VIRUS)
    near = NEXT_TO[cell]
    far = neighbours(near & ~visible.stops) & ~BIT[cell]
    return (near & able | far & viruses).bit_count()
