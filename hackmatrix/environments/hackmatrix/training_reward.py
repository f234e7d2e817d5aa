"""Another reward to train with: progress through the stages instead of points.

The game's own reward pays 100 for each point of score on winning, which draws a learner that wins
to data blocks and swamps everything else (section 11). Here only stages, the win and death pay;
everything else is a change of a potential (Ng et al. 1999), so no cycle of actions pays: UNDO would
repeat anything that is paid for being done.
"""

import jax
import jax.numpy as jnp

from hackmatrix.game.jaxgame.state import Player
from hackmatrix.game.rules.observation import number_of
from hackmatrix.game.rules.training_reward import (
    DEATH,
    HOARD,
    HP,
    MAX_SIPHONS,
    RESOURCE,
    SIPHON,
    STAGE,
    WIN,
)


def progress(
    before: Player, after: jax.Array, completed: jax.Array, won: jax.Array, died: jax.Array
) -> jax.Array:
    """float32[N]: the reward `progress` of a step of N games.

    Args:
        before: the player before the step.
        after: uint8[N, RECORD_SIZE], the observation after the step, before a new game.
        completed: bool[N], whether it completed a stage.
        won: bool[N].
        died: bool[N].
    """

    def gained(name: str, most: int) -> jax.Array:
        return jnp.minimum(number_of(after, name), most) - jnp.minimum(getattr(before, name), most)

    return (
        STAGE * completed
        + WIN * won
        - DEATH * died
        + HP * (number_of(after, "hp") - before.hp)
        + SIPHON * gained("siphons", MAX_SIPHONS)
        + RESOURCE * (gained("credits", HOARD) + gained("energy", HOARD))
    ).astype(jnp.float32)
