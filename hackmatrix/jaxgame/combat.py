"""Hits, damage and kills, as attacks (section 3) and programs (section 8) deal them.

The engine strikes piece by piece; here an action is one `Blow` over the whole lists.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.jaxgame.state import State, keep_enemies, keep_transmissions
from hackmatrix.rules.board import CELLS
from hackmatrix.rules.enemies import MAX_ENEMIES, MAX_HP


class Blow(NamedTuple):
    """What an action does to the enemies and the transmissions."""

    damaged: jax.Array  # bool[32]
    amount: jax.Array  # int32, to each of them
    destroyed: jax.Array  # bool[32], whatever their hp
    counted: jax.Array  # bool[32], those whose end can pay
    gone: jax.Array  # bool[36], transmissions destroyed


def no_blow() -> Blow:
    """An action that strikes nobody."""
    nobody = jnp.zeros(MAX_ENEMIES, jnp.bool)
    return Blow(nobody, jnp.int32(0), nobody, ~nobody, jnp.zeros(CELLS, jnp.bool))


def attack(state: State, blow: Blow) -> tuple[State, jax.Array]:
    """Deal a blow: survivors of damage are stunned.

    Returns:
        The state without what was destroyed, and int32 kills that pay.
    """
    enemies, transmissions = state.enemies, state.transmissions
    damaged = blow.damaged & enemies.alive
    amount = jnp.minimum(blow.amount, max(MAX_HP)).astype(jnp.int8)
    hp = jnp.where(damaged, enemies.hp - amount, enemies.hp)
    dead = ((damaged & (hp <= 0)) | blow.destroyed) & enemies.alive
    gone = blow.gone & transmissions.alive
    kills = jnp.sum(dead & blow.counted & ~enemies.from_schedule, dtype=jnp.int32)
    kills += jnp.sum(gone & ~transmissions.from_schedule, dtype=jnp.int32)
    enemies = replace(enemies, hp=hp, stunned=enemies.stunned | damaged)
    state = replace(
        state,
        enemies=keep_enemies(enemies, ~dead),
        transmissions=keep_transmissions(transmissions, ~gone),
    )
    return state, kills
