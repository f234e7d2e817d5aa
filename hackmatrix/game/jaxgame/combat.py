"""Hits, damage and kills by attacks (section 3) and programs (section 8).

The Python engine hits one piece at a time; here an action is one `Blow` on both lists, so that the
lists are processed once, whichever of the 28 actions was taken.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.game.jaxgame import planes
from hackmatrix.game.jaxgame.bitboard import EnemySet, TransmissionSet
from hackmatrix.game.jaxgame.state import State
from hackmatrix.game.rules.enemies import MAX_HP


class Blow(NamedTuple):
    """The effect of an action on the enemies and transmissions."""

    damaged: EnemySet
    amount: jax.Array  # int32, damage to each of them
    destroyed: EnemySet  # destroyed regardless of hp
    uncounted: EnemySet  # destroyed without counting as kills
    gone: TransmissionSet  # destroyed transmissions


def attack(state: State, blow: Blow) -> tuple[State, jax.Array]:
    """Applies a blow.

    Returns:
        The state without the destroyed enemies, and the rewarded kills, int32. Destroyed
        transmissions are removed later, when the others are counted down
        (`enemy_turn.land_transmissions`).
    """
    state, dead = damage(state, blow.damaged, blow.amount)
    dead |= blow.destroyed & state.enemies.alive
    return destroy(state, dead, blow.uncounted, blow.gone)


def damage(state: State, damaged: EnemySet, amount: jax.Array) -> tuple[State, EnemySet]:
    """Reduces hp and stuns the damaged; also returns the enemies that have no hp left."""
    enemies = state.enemies
    damaged &= enemies.alive
    hp, overkilled = planes.subtract(enemies.hp, damaged, jnp.minimum(amount, max(MAX_HP)))
    dead = damaged & (overkilled | ~planes.nonzero(hp))
    enemies = replace(enemies, hp=hp, stunned=enemies.stunned | damaged)
    return replace(state, enemies=enemies), dead


def destroy(
    state: State, dead: EnemySet, uncounted: EnemySet, gone: TransmissionSet
) -> tuple[State, jax.Array]:
    """Removes enemies; also returns the rewarded kills, including transmissions, int32.

    Pieces that came from the schedule do not count.
    """
    enemies, transmissions = state.enemies, state.transmissions
    gone &= transmissions.alive
    kills = (dead & ~uncounted & ~enemies.from_schedule).size()
    kills += (gone & ~transmissions.from_schedule).size()
    return replace(state, enemies=enemies.keep(~dead)), kills
