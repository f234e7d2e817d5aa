"""Section 4: the enemy turn."""

from hackmatrix.engine.events import Event, EventKind
from hackmatrix.engine.movement import next_cell
from hackmatrix.engine.spawning import spawn
from hackmatrix.engine.state import Enemy, State
from hackmatrix.rules.board import CELLS, LIMIT, NEIGHBOURS
from hackmatrix.rules.chance import FIRST_PENDING_SPAWN, SCHEDULED_SPAWN, Site
from hackmatrix.rules.enemies import MAX_ENEMIES, STEPS_PER_TURN
from hackmatrix.rules.programs import MAX_SAVED_STATES


def enemy_turn(state: State) -> None:
    """Everything that happens after an action that ends the player's turn."""
    if state.step:
        state.step = False
        state.events.append(Event(EventKind.ENEMY_TURN_SKIPPED))
        return
    state.turn = min(state.turn + 1, LIMIT)
    land_transmissions(state)
    move_enemies(state)
    scheduled_spawn(state)
    pending_spawns(state)
    rest(state)
    save(state)


def land_transmissions(state: State) -> None:
    """Transmissions that are due become enemies while there is room; the others come nearer."""
    waiting = []
    for transmission in state.transmissions:
        if transmission.turns > 1:
            transmission.turns -= 1
            waiting.append(transmission)
        elif len(state.enemies) < MAX_ENEMIES:
            enemy = transmission.land()
            state.enemies.append(enemy)
            state.events.append(Event(EventKind.LANDED, enemy.cell, piece=enemy.type.name.lower()))
        else:
            transmission.turns = 1
            waiting.append(transmission)
    state.transmissions = waiting


def move_enemies(state: State) -> None:
    """Two sub-steps; in each, the enemies that can act do so in a fresh random order."""
    done: set[int] = set()  # ids of those that have hit
    for sub_step in range(max(STEPS_PER_TURN)):
        to_act = [
            enemy
            for enemy in state.enemies
            if not enemy.disabled
            and not enemy.stunned
            and id(enemy) not in done
            and STEPS_PER_TURN[enemy.type] > sub_step
        ]
        for place in range(len(to_act)):
            index = sub_step * MAX_ENEMIES + place
            enemy = state.dice.choose(Site.ENEMY_ORDER, to_act, index)
            to_act = [other for other in to_act if other is not enemy]
            if act(state, enemy):
                done.add(id(enemy))


def act(state: State, enemy: Enemy) -> bool:
    """One enemy hits the player if it can, else moves; returns whether it hit."""
    player, cell = state.player, enemy.cell
    piece = enemy.type.name.lower()
    if player.cell in NEIGHBOURS[cell]:
        player.hp = max(player.hp - 1, 0)
        state.events.append(Event(EventKind.HIT, cell, player.cell, piece))
        return True
    to = next_cell(state, enemy)
    if to != cell:
        enemy.cell = to
        state.events.append(Event(EventKind.ENEMY_MOVED, cell, to, piece))
        if state.in_line(to):
            enemy.last = to
    return False


def scheduled_spawn(state: State) -> None:
    """The spawn that comes every `interval` turns, unless CALM is on."""
    if state.calm or state.turn < state.next_task:
        return
    spawn(state, SCHEDULED_SPAWN, from_schedule=True)
    state.next_task = min(state.turn + state.interval, LIMIT)


def pending_spawns(state: State) -> None:
    """The spawns owed by siphoning; those for which there is no cell are forgotten."""
    for i in range(min(state.pending, CELLS)):
        spawn(state, FIRST_PENDING_SPAWN + i, from_siphon=True)
    state.pending = 0


def rest(state: State) -> None:
    """New enemies wake up, hit ones recover."""
    for enemy in state.enemies:
        enemy.disabled = max(enemy.disabled - 1, 0)
        enemy.stunned = False


def save(state: State) -> None:
    """Keep the position for UNDO, the newest 4."""
    state.saved = [*state.saved, state.snapshot()][-MAX_SAVED_STATES:]
