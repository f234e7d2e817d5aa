"""Other rewards to train with than the game's own.

The game's own reward pays 100 for each point of score on winning, which draws a learner that wins
to data blocks and swamps everything else (section 11). In `progress` only stages, the win and death
pay; everything else is a change of a potential (Ng et al. 1999), so no cycle of actions pays: UNDO
would repeat anything that is paid for being done. But a potential that is kept at the end pays
after all: 20 credits, 20 energy and 3 data siphons as much as 1.65 stages. In `stages` it is paid
back with the last action, so that without a discount only stages, the win and death count.
In `programs` programs owned have a potential too, so that a learner looks for them before it knows
what they are for: `info["shaping"]`, which can fade.

`win` and `score` are the outcome alone: the chance of winning, or that times what a win is worth.
A potential would change nothing there: with a value of the same return, advantages are the same
with and without one (Wiewiora 2003, https://arxiv.org/abs/1106.5267). But the layout `tactical`
does not show the score, so that a value of it can't: points are paid when they are scored, and paid
back by a defeat.
"""

import jax
import jax.numpy as jnp

from hackmatrix.game.jaxgame.state import Player
from hackmatrix.game.rules.observation import number_of
from hackmatrix.game.rules.rewards import REWARD_PARTS, SCORE_GAIN, UNIT
from hackmatrix.game.rules.training_reward import (
    DEATH,
    HOARD,
    HP,
    MAX_PROGRAMS,
    MAX_SIPHONS,
    RESOURCE,
    SIPHON,
    STAGE,
    WIN,
)

_SCORE_GAIN = REWARD_PARTS.index("score_gain")


def trained_on(
    reward: str,
    paid: jax.Array,
    ended: jax.Array,
    info: dict[str, jax.Array],
    win_worth: float,
) -> jax.Array:
    """float32[]: one of `TRAINING_REWARDS` for a step of a game.

    Args:
        reward: its name.
        paid: float32[], what the engine paid: `progress` for `stages` and `programs`, else that
            reward itself.
        ended: bool[], whether the game ended by this step.
        info: of the step.
        win_worth: points of score that a win alone is worth to `score`.
    """
    if reward == "programs":
        return paid + info["shaping"]
    if reward == "stages":
        return paid - jnp.where(ended, potential(info["final_observation"]), 0.0)
    won = (ended & info["won"]).astype(jnp.float32)
    if reward == "win":
        return won
    if reward == "score":
        gained = info["reward_parts"][_SCORE_GAIN] / (UNIT * SCORE_GAIN)
        lost = jnp.where(ended & ~info["won"], info["score"], 0)
        return won + (gained - lost) / jnp.float32(win_worth)
    return paid


def pay_for_programs(worth: float, before: jax.Array, after: jax.Array) -> jax.Array:
    """float32[]: what `programs` adds, from programs owned before and after a step, int32[]."""
    gained = jnp.minimum(after, MAX_PROGRAMS) - jnp.minimum(before, MAX_PROGRAMS)
    return jnp.float32(worth) * gained


def potential(record: jax.Array) -> jax.Array:
    """float32[]: the potential in `progress` of a position, from its compact record."""

    def held(name: str, most: int) -> jax.Array:
        return jnp.minimum(number_of(record, name), most)

    hoard = held("credits", HOARD) + held("energy", HOARD)
    worth = HP * number_of(record, "hp") + SIPHON * held("siphons", MAX_SIPHONS) + RESOURCE * hoard
    return worth.astype(jnp.float32)


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
