"""Another reward to train with: progress through the stages instead of points.

The game's own reward pays 100 for each point of score on winning, which pulls a learner that wins
to data blocks, and swamps everything else (section 11).
"""

import jax
import jax.numpy as jnp

from hackmatrix.jaxgame.state import Player
from hackmatrix.rules.observation import number_of
from hackmatrix.rules.rewards import REWARD_PARTS, UNIT

Array = jax.Array

STAGE, WIN, DEATH, HP, KILL, DATA_SIPHON, RESOURCE = 1.0, 5.0, 1.0, 0.3, 0.03, 0.3, 0.03
HOARD = 20  # credits and energy count up to this


def progress(before: Player, parts: Array, final: Array, won: Array, died: Array) -> Array:
    """float32[N]: the reward `progress` of a step of N games.

    Args:
        before: the player before the step.
        parts: int32[N, 15], the parts of the game's reward in units of 0.005.
        final: uint8[N, RECORD_SIZE], the observation after the step, before a new game.
        won: bool[N].
        died: bool[N].
    """
    part = {name: parts[:, i] for i, name in enumerate(REWARD_PARTS)}
    unit = jnp.float32(UNIT)
    hp = (part["hp_recovery"] + part["damage_penalty"]) * unit  # 1 per hp
    gained = sum(
        jnp.minimum(number_of(final, name), HOARD) - jnp.minimum(getattr(before, name), HOARD)
        for name in ("credits", "energy")
    )
    return (
        STAGE * (part["stage_completion"] > 0)
        + WIN * won
        - DEATH * died
        + HP * hp
        + KILL / 0.3 * (part["kills"] * unit)
        + DATA_SIPHON * (part["data_siphon"] * unit)
        + RESOURCE * gained
    ).astype(jnp.float32)
