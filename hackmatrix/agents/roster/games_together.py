"""An agent that plays many games to their ends at once, in the native engine and on NumPy."""

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hackmatrix.core.processes import num_cores
from hackmatrix.game.engine.state import Ending, State
from hackmatrix.game.native import batch
from hackmatrix.game.native.conversion import ENDINGS, games_from_engine
from hackmatrix.game.rules.actions import NUM_ACTIONS

if TYPE_CHECKING:
    from hackmatrix.agents.networks.policy import Policy

Array = np.ndarray[Any, Any]
_RUNNING, _WON = ENDINGS.index(None), ENDINGS.index(Ending.WON)
# From N games, the random numbers of each and a limit of actions to whether each is won, and the
# stage in which it ends.
PlayTogether = Callable[[Sequence[State], Sequence[random.Random], int], list[tuple[bool, int]]]


def plays_together(policy: "Policy") -> PlayTogether | None:
    """A function in which a network plays many games, sampling its actions; None if it can't."""
    from hackmatrix.agents.networks.numpy_forward import batch_logits

    logits_of = batch_logits(policy)
    if logits_of is None:
        return None

    def play(
        states: Sequence[State], rngs: Sequence[random.Random], most: int
    ) -> list[tuple[bool, int]]:
        games, threads, out = games_from_engine(list(states)), num_cores(), None
        records, masks = batch.observe(games)
        for _ in range(most):
            running = games.states["over"] == _RUNNING
            if not running.any():
                break
            due = np.flatnonzero(running)
            logits = logits_of(batch.features(records[due], policy.observation, threads=threads))
            weights = _weights(logits, batch.flags(masks[due])).tolist()
            actions = np.zeros(len(states), np.int32)
            for game, row in zip(due.tolist(), weights, strict=True):
                actions[game] = rngs[game].choices(range(NUM_ACTIONS), row)[0]
            out = batch.step(
                games, actions, held=~running, out=out, auto_reset=False, threads=threads
            )
            records, masks = out.observation, out.mask
        ends = zip(games.states["over"].tolist(), games.states["stage"].tolist(), strict=True)
        return [(over == _WON, stage) for over, stage in ends]

    return play


def _weights(logits: Array, masks: Array) -> Array:
    """float64[N, 28]: the probabilities of actions, as `opinion.weigh` has them of one position."""
    exact = np.where(masks, logits.astype(np.float64), -np.inf)
    weights = np.exp(exact - exact.max(axis=1, keepdims=True))
    shares: Array = weights / weights.sum(axis=1, keepdims=True)
    return shares
