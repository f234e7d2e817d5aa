"""The layout `tactical` as a kernel of a TPU, as `jax_layout.py` says what is in it."""

import jax
import numpy as np

from hackmatrix.game.foresight.jax_layout import tactical_words
from hackmatrix.game.jaxgame.mosaic import Bytes, in_blocks
from hackmatrix.game.rules.tactical import TACTICAL_SIZE

SCOPE = "tactical kernel"  # its name in profiles


def tactical_numbers(records: jax.Array, *, interpret: bool = False) -> jax.Array:
    """`jax_layout.tactical_numbers`, of a multiple of 1,024 games."""

    def rule(_: None, packed: jax.Array) -> tuple[None, Bytes]:
        return None, Bytes(tactical_words(packed), TACTICAL_SIZE, np.int8)

    with jax.named_scope(SCOPE):
        _, rows = in_blocks(rule, None, records.T, interpret=interpret)
    integers: jax.Array = rows.T
    return integers
