"""Games of an MLP on the layout `tactical`, played by NumPy and the native engine."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hackmatrix.agents.roster.position_policies import network_of
from hackmatrix.game.native import batch
from hackmatrix.game.native.layout import Games

Array = np.ndarray[Any, Any]
MOST_STEPS = 2_000  # after which a game counts as not won, as in `hackmatrix evaluate`


class Ends(NamedTuple):
    """Ends of N games."""

    won: Array  # bool[N]
    stage: Array  # int32[N], the last one; 1 of games that were cut off


def play(
    params: Path,
    games: Games,
    seed: int,
    look: Callable[[Array, Array, Array], None] | None = None,
) -> Ends:
    """Plays games to their ends, with sampled actions.

    Args:
        params: of the network.
        games: N games, which this changes.
        seed: of the sampling.
        look: is called before each action: numbers of the games that go on, int[R], the records
            of all, uint8[N, RECORD_SIZE], and the values of the former, float32[R].
    """
    layers = network_of(params)[0].params["params"]
    rng, number = np.random.default_rng(seed), len(games.states)
    records, bits = batch.observe(games)
    over = np.zeros(number, np.bool_)
    won, last = np.zeros(number, np.bool_), np.ones(number, np.int32)
    actions = np.zeros(number, np.int32)
    for _ in range(MOST_STEPS):
        running = np.flatnonzero(~over)
        logits, values = _forward(layers, batch.features(records[running], "tactical"))
        if look:
            look(running, records, values)
        noise = rng.gumbel(size=(number, logits.shape[1]))[running]
        actions[running] = np.where(batch.flags(bits[running]), logits + noise, -np.inf).argmax(1)
        made = batch.step(games, actions, held=over, auto_reset=False)
        ended = ~over & made.terminated
        won[ended], last[ended] = made.won[ended], made.stage[ended]
        over |= made.terminated
        records, bits = made.observation, made.mask
        if over.all():
            break
    return Ends(won, last)


def _forward(layers: Any, features: Array) -> tuple[Array, Array]:
    hidden = features
    for name in ("Dense_0", "Dense_1"):
        hidden = np.maximum(hidden @ layers[name]["kernel"] + layers[name]["bias"], 0)
    logits, value = (
        hidden @ layers[name]["kernel"] + layers[name]["bias"] for name in ("Dense_2", "Dense_3")
    )
    return logits, value[:, 0]
