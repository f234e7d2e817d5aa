"""Games of an MLP on the layout `tactical`, and recorded games, in the native engine."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hackmatrix.agents.roster.position_policies import network_of
from hackmatrix.game.native import batch
from hackmatrix.game.native.layout import Games
from hackmatrix.research.datasets.folder import DataSet

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


def games_of(data: DataSet) -> Games:
    """The games of a data set at their beginning."""
    number = data.facts.games
    return batch.reset(np.full(number, data.facts.seed), np.arange(number))


def replay(data: DataSet, games: Games, look: Callable[[Array, Array], None]) -> Array:
    """Replays the games of a data set.

    Args:
        data: the data set.
        games: its games at their beginning, which this changes.
        look: is called before each action: numbers of the games that go on, int[R], and the
            records of all, uint8[N, RECORD_SIZE].

    Returns:
        bool[N], whether each was won.
    """
    number = data.facts.games
    actions, lengths = np.zeros((data.facts.max_steps, number), np.int32), np.zeros(number, int)
    for shard in data.shards():
        for game, length, start in zip(count(shard.first), shard.lengths, shard.starts):
            actions[:length, game] = shard.actions[start : start + length]
            lengths[game] = length
    records, won = batch.observe(games)[0], np.zeros(number, np.bool_)
    for time in range(lengths.max()):
        look(np.flatnonzero(lengths > time), records)
        made = batch.step(games, actions[time], held=lengths <= time, auto_reset=False)
        records = made.observation
        won |= made.won & (lengths > time)
    return won


def _forward(layers: Any, features: Array) -> tuple[Array, Array]:
    hidden = features
    for name in ("Dense_0", "Dense_1"):
        hidden = np.maximum(hidden @ layers[name]["kernel"] + layers[name]["bias"], 0)
    logits, value = (
        hidden @ layers[name]["kernel"] + layers[name]["bias"] for name in ("Dense_2", "Dense_3")
    )
    return logits, value[:, 0]
