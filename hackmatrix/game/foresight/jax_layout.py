"""Section 12, continued: the layout `tactical`, from compact records.

Everything here has the axis of games last, so that each bit operation runs over many games; what is
played out for several programs, directions or cells at once has an axis before it.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from hackmatrix.game.foresight.jax_board import VisibleState, column, look
from hackmatrix.game.foresight.jax_siphoning import of_siphoning
from hackmatrix.game.foresight.jax_threats import of_actions
from hackmatrix.game.jaxgame import bitboard
from hackmatrix.game.jaxgame.bitboard import CellSet
from hackmatrix.game.jaxgame.control_flow import compute_once
from hackmatrix.game.jaxgame.records import Records, RecordsInWords
from hackmatrix.game.rules.board import SIZE
from hackmatrix.game.rules.stages import LAST_STAGE, MAX_HP
from hackmatrix.game.rules.tactical import GROUPS, HOARDS, MAX_COUNT, TACTICAL_SIZE


def tactical_numbers(records: jax.Array) -> jax.Array:
    """int8[N, TACTICAL_SIZE]: the integers of `rules.tactical.GROUPS`.

    Of compact records, uint8[N, RECORD_SIZE].
    """
    visible = look(Records(records))
    rows = [row.astype(jnp.int8) for row in _rows(visible)]
    # In a branch, as a compiler would lay out the rows, too, as their reader wants the result.
    return compute_once(visible.scalars["stage"] > 0, lambda: jnp.concatenate(rows)).T


def tactical_words(packed: jax.Array) -> jax.Array:
    """uint32[TACTICAL_SIZE / 4, ...]: the same, four integers in each, from packed records.

    Args:
        packed: uint32[RECORD_SIZE / 4, ...].
    """
    rows = jnp.concatenate([row.astype(jnp.int32) for row in _rows(look(RecordsInWords(packed)))])
    low = rows.astype(jnp.uint32) & 0xFF
    quads = [low[i : i + 4] for i in range(0, TACTICAL_SIZE, 4)]
    return jnp.stack([a | b << 8 | c << 16 | d << 24 for a, b, c, d in quads])


def _rows(visible: VisibleState) -> list[jax.Array]:
    """The integers or bools of each group, [its size, ...]."""
    groups = {
        **of_actions(visible),
        **of_siphoning(visible),
        **_pieces(visible),
        **_scalars(visible),
    }
    return [jnp.reshape(groups[g.name], (g.size, *visible.cell.shape)) for g in GROUPS]


def _pieces(visible: VisibleState) -> dict[str, jax.Array]:
    def count(cells: CellSet) -> jax.Array:
        return jnp.minimum(cells.size(), MAX_COUNT)

    return {
        "enemies": jnp.stack([count(cells) for cells in visible.by_type]),
        "stunned": count(visible.stunned),
        "hidden": count(visible.last_seen),
        "transmissions": count(visible.transmissions),
        "empty_of_pieces": ~(visible.enemies | visible.transmissions).any(),
    }


def _scalars(visible: VisibleState) -> dict[str, jax.Array]:
    scalars = visible.scalars

    def at_least(name: str, bounds: Sequence[int]) -> jax.Array:
        return scalars[name][None] >= column(bounds, scalars[name])

    def one_hot(values: jax.Array, options: range) -> jax.Array:
        return values[None] == column(options, values)

    return {
        "hp": one_hot(scalars["hp"], range(1, MAX_HP + 1)),
        "siphons": at_least("siphons", (1, 2, 3)),
        "attack": at_least("attack", (2, 3, 4)),
        "credits": jnp.minimum(scalars["credits"], 60),
        "energy": jnp.minimum(scalars["energy"], 60),
        "has_credits": at_least("credits", HOARDS),
        "has_energy": at_least("energy", HOARDS),
        "stage": one_hot(scalars["stage"], range(1, LAST_STAGE + 1)),
        "turn": jnp.minimum(scalars["turn"], 80),
        "until_task": jnp.clip(scalars["next_task"] - scalars["turn"], -1, 24),
        "interval": jnp.minimum(scalars["interval"], 24),
        "pending": jnp.minimum(scalars["pending"], 18),
        "saved": scalars["saved"],
        "atk_uses": scalars["atk_uses"],
        "flags": jnp.stack([scalars[name] for name in ("show", "calm", "step")]),
        "line": jnp.concatenate(
            [
                one_hot(bitboard.row_of(visible.cell), range(SIZE)),
                one_hot(bitboard.col_of(visible.cell), range(SIZE)),
            ]
        ),
    }
