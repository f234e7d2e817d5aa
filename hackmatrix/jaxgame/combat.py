"""Hits, damage and kills, as attacks (section 3) and programs (section 8) deal them.

The engine strikes piece by piece; here an action is one `Blow` over the whole lists, so that the
lists are worked through once, whichever of the 28 actions was taken.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.jaxgame import planes
from hackmatrix.jaxgame.bitboard import EnemySet, TransmissionSet
from hackmatrix.jaxgame.state import State
from hackmatrix.rules.enemies import MAX_HP


class Blow(NamedTuple):
    """What an action does to the enemies and the transmissions."""

    damaged: EnemySet
    amount: jax.Array  # int32, damage to each of them
    destroyed: EnemySet  # whatever their hp
    uncounted: EnemySet  # those whose end does not pay
    gone: TransmissionSet  # transmissions destroyed


def attack(state: State, blow: Blow) -> tuple[State, jax.Array]:
    """Deal a blow.

    Returns:
        The state without the enemies that were destroyed, and int32 kills that pay. Transmissions
        that are gone leave their list when the others are counted down
        (`enemy_turn.land_transmissions`).
    """
    state, dead = damage(state, blow.damaged, blow.amount)
    dead |= blow.destroyed & state.enemies.alive
    return destroy(state, dead, blow.uncounted, blow.gone)


def damage(state: State, damaged: EnemySet, amount: jax.Array) -> tuple[State, EnemySet]:
    """Take hp: those damaged are stunned; also returns the enemies that have no hp left."""
    enemies = state.enemies
    damaged &= enemies.alive
    hp, overkilled = planes.subtract(enemies.hp, damaged, jnp.minimum(amount, max(MAX_HP)))
    dead = damaged & (overkilled | ~planes.nonzero(hp))
    enemies = replace(enemies, hp=hp, stunned=enemies.stunned | damaged)
    return replace(state, enemies=enemies), dead


def destroy(
    state: State, dead: EnemySet, uncounted: EnemySet, gone: TransmissionSet
) -> tuple[State, jax.Array]:
    """Remove enemies; returns the kills that pay, those of transmissions included.

    None is paid for those that came from the schedule.
    """
    enemies, transmissions = state.enemies, state.transmissions
    gone &= transmissions.alive
    kills = (dead & ~uncounted & ~enemies.from_schedule).size()
    kills += (gone & ~transmissions.from_schedule).size()
    return replace(state, enemies=enemies.keep(~dead)), kills
