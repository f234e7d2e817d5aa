"""Hits, damage and kills, as attacks (section 3) and programs (section 8) deal them.

The engine strikes piece by piece; here an action is one `Blow` over the whole lists.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.jaxgame import planes
from hackmatrix.jaxgame.bitboard import CellSet, EnemySet
from hackmatrix.jaxgame.state import State, keep
from hackmatrix.rules.enemies import MAX_HP

NOBODY = EnemySet(np.uint32(0))  # type: ignore[arg-type]


class Blow(NamedTuple):
    """What an action does to the enemies and the transmissions."""

    damaged: EnemySet
    amount: jax.Array  # int32, to each of them
    destroyed: EnemySet  # whatever their hp
    uncounted: EnemySet  # those whose end does not pay
    gone: CellSet  # transmissions destroyed


def attack(state: State, blow: Blow) -> tuple[State, jax.Array]:
    """Deal a blow: survivors of damage are stunned.

    Returns:
        The state without the enemies that were destroyed, and int32 kills that pay. Transmissions
        that are gone leave their list when the others are counted down (`land`).
    """
    enemies, transmissions = state.enemies, state.transmissions
    damaged = blow.damaged & enemies.alive
    amount = jnp.minimum(blow.amount, max(MAX_HP))
    hp, overkilled = planes.subtract(enemies.hp, damaged, amount)
    dead = (damaged & (overkilled | ~planes.nonzero(hp))) | (blow.destroyed & enemies.alive)
    gone = blow.gone & transmissions.alive
    kills = (dead & ~blow.uncounted & ~enemies.from_schedule).size()
    kills += (gone & ~transmissions.from_schedule).size()
    enemies = replace(enemies, hp=hp, stunned=enemies.stunned | damaged)
    return replace(state, enemies=keep(enemies, ~dead)), kills
