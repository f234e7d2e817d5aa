"""The game of a seed, the same for one game and for many."""

import numpy as np

from hackmatrix.game.rules.chance import EVALUATION_STREAM


def stream_of(seed: int) -> int:
    """The stream of a seed, never one of evaluations.

    Args:
        seed: at least 0. Below 2**31 it is the stream itself; of a larger one NumPy's
            `SeedSequence`, from which Gymnasium's generators start, makes the stream.
    """
    if seed < EVALUATION_STREAM:
        return seed
    return int(np.random.SeedSequence(seed).generate_state(1)[0]) % EVALUATION_STREAM
