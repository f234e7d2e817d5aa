"""Section 12, continued: the layout `tactical`, from compact records.

Everything here has the axis of games last, so that each bit operation runs over many games; what is
played out for several programs, directions or cells at once has an axis before it.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from hackmatrix.game.foresight.jax_board import Seen, column, look
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
    return compute_once(visible.number["stage"] > 0, lambda: jnp.concatenate(rows)).T


def tactical_words(words: jax.Array) -> jax.Array:
    """uint32[TACTICAL_SIZE / 4, ...]: the same, four integers in each, from words of records.

    Args:
        words: uint32[RECORD_SIZE / 4, ...].
    """
    rows = jnp.concatenate([row.astype(jnp.int32) for row in _rows(look(RecordsInWords(words)))])
    low = rows.astype(jnp.uint32) & 0xFF
    quads = [low[i : i + 4] for i in range(0, TACTICAL_SIZE, 4)]
    return jnp.stack([a | b << 8 | c << 16 | d << 24 for a, b, c, d in quads])


def _rows(visible: Seen) -> list[jax.Array]:
    """The integers or bools of each group, [its size, ...]."""
    numbers = {
        **of_actions(visible),
        **of_siphoning(visible),
        **_pieces(visible),
        **_numbers(visible),
    }
    return [jnp.reshape(numbers[g.name], (g.size, *visible.cell.shape)) for g in GROUPS]


def _pieces(visible: Seen) -> dict[str, jax.Array]:
    def count(cells: CellSet) -> jax.Array:
        return jnp.minimum(cells.size(), MAX_COUNT)

    return {
        "enemies": jnp.stack([count(kind) for kind in visible.kinds]),
        "stunned": count(visible.stunned),
        "hidden": count(visible.last_seen),
        "transmissions": count(visible.transmissions),
        "empty_of_pieces": ~(visible.enemies | visible.transmissions).any(),
    }


def _numbers(visible: Seen) -> dict[str, jax.Array]:
    number = visible.number

    def at_least(name: str, bounds: Sequence[int]) -> jax.Array:
        return number[name][None] >= column(bounds, number[name])

    def one_hot(values: jax.Array, numbers: range) -> jax.Array:
        return values[None] == column(numbers, values)

    return {
        "hp": one_hot(number["hp"], range(1, MAX_HP + 1)),
        "siphons": at_least("siphons", (1, 2, 3)),
        "attack": at_least("attack", (2, 3, 4)),
        "credits": jnp.minimum(number["credits"], 60),
        "energy": jnp.minimum(number["energy"], 60),
        "has_credits": at_least("credits", HOARDS),
        "has_energy": at_least("energy", HOARDS),
        "stage": one_hot(number["stage"], range(1, LAST_STAGE + 1)),
        "turn": jnp.minimum(number["turn"], 80),
        "until_task": jnp.clip(number["next_task"] - number["turn"], -1, 24),
        "interval": jnp.minimum(number["interval"], 24),
        "pending": jnp.minimum(number["pending"], 18),
        "saved": number["saved"],
        "atk_uses": number["atk_uses"],
        "flags": jnp.stack([number[name] for name in ("show", "calm", "step")]),
        "line": jnp.concatenate(
            [
                one_hot(bitboard.row_of(visible.cell), range(SIZE)),
                one_hot(bitboard.col_of(visible.cell), range(SIZE)),
            ]
        ),
    }
