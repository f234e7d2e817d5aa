"""Section 12: the float features of a compact record in each layout, in plain Python."""

from array import array

from hackmatrix.game.engine.observation import (
    cell_features,
    extra_cell_features,
    extra_features,
    owned_features,
    player_features,
)
from hackmatrix.game.foresight.python_layout import tactical_numbers
from hackmatrix.game.rules.board import CELLS
from hackmatrix.game.rules.observation import PLANE, CellBytes
from hackmatrix.game.rules.tactical import SCALES

_PLANES_END = len(PLANE) * CELLS
_SCALES = array("f", SCALES)  # rounded before the product, as in the other engines


def features(record: bytes, layout: str) -> list[float]:
    """The float features of a record.

    Args:
        record: a compact record.
        layout: "classic" (1545 numbers), "full" (1946) or "tactical" (432), these in 32 bits.
    """
    if layout == "tactical":
        numbers = zip(tactical_numbers(record), _SCALES, strict=True)
        return array("f", (number * scale for number, scale in numbers)).tolist()
    cells = [CellBytes(*record[cell:_PLANES_END:CELLS]) for cell in range(CELLS)]
    classic = [
        *player_features(record),
        *owned_features(record),
        *(x for cell in cells for x in cell_features(cell)),
    ]
    if layout == "classic":
        return classic
    extra = [x for cell in cells for x in extra_cell_features(cell)]
    return [*classic, *extra, *extra_features(record)]
