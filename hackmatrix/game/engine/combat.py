"""Hits, damage and kills by attacks (section 3) and programs (section 8)."""

from hackmatrix.game.engine.events import Event, EventKind
from hackmatrix.game.engine.state import Enemy, State, Transmission


def attack(state: State, struck: Enemy | Transmission) -> int:
    """Hits once; returns the number of kills that give a reward."""
    if isinstance(struck, Transmission):
        state.transmissions.remove(struck)
        state.events.append(Event(EventKind.DESTROYED, struck.cell, piece="transmission"))
        return int(not struck.from_schedule)
    return damage(state, struck, state.player.attack)


def damage(state: State, enemy: Enemy, amount: int) -> int:
    """Reduces hp: at 0 the enemy is removed, else stunned; returns the rewarded kills."""
    enemy.hp -= amount
    piece = enemy.type.name.lower()
    state.events.append(Event(EventKind.ATTACKED, enemy.cell, piece=piece, amount=amount))
    if enemy.hp > 0:
        enemy.stunned = True
        return 0
    return destroy(state, enemy)


def destroy(state: State, enemy: Enemy) -> int:
    """Removes an enemy; returns the rewarded kills: 0 if it came from the schedule."""
    state.enemies = [other for other in state.enemies if other is not enemy]
    piece = enemy.type.name.lower()
    state.events.append(Event(EventKind.DESTROYED, enemy.cell, piece=piece))
    return int(not enemy.from_schedule)
