"""Section 4: the enemy turn."""

from hackmatrix.game.engine.events import Event, EventKind
from hackmatrix.game.engine.movement import next_cell
from hackmatrix.game.engine.spawning import spawn
from hackmatrix.game.engine.state import Enemy, State, Transmission, saturate
from hackmatrix.game.engine.undo import save
from hackmatrix.game.rules.board import CELLS, NEIGHBOURS
from hackmatrix.game.rules.chance import FIRST_PENDING_SPAWN, SCHEDULED_SPAWN, Site
from hackmatrix.game.rules.enemies import MAX_ENEMIES, MAX_HP, STEPS_PER_TURN


def enemy_turn(state: State) -> None:
    """Runs the enemy turn, after an action that ends the player's turn."""
    if state.step:
        state.step = False
        state.events.append(Event(EventKind.ENEMY_TURN_SKIPPED))
        return
    state.turn = saturate(state.turn + 1)
    land_transmissions(state)
    move_enemies(state)
    spawn_due(state)
    rest(state)
    save(state)


def land_transmissions(state: State) -> None:
    """Counts transmissions down; those that are due become enemies while there is room."""
    waiting = []
    for transmission in state.transmissions:
        if transmission.turns > 1:
            transmission.turns -= 1
            waiting.append(transmission)
        elif len(state.enemies) < MAX_ENEMIES:
            enemy = _landed(transmission)
            state.enemies.append(enemy)
            state.events.append(Event(EventKind.LANDED, enemy.cell, piece=enemy.type.name.lower()))
        else:
            transmission.turns = 1
            waiting.append(transmission)
    state.transmissions = waiting


def _landed(transmission: Transmission) -> Enemy:
    """The enemy that a transmission becomes."""
    return Enemy(
        transmission.type,
        transmission.cell,
        MAX_HP[transmission.type],
        disabled=1,
        from_schedule=transmission.from_schedule,
        from_siphon=transmission.from_siphon,
    )


def move_enemies(state: State) -> None:
    """Two sub-steps; in each, the enemies that can act do so in a fresh random order."""
    done: set[int] = set()  # ids of the enemies that have hit
    for sub_step in range(max(STEPS_PER_TURN)):
        to_act = [
            enemy
            for enemy in state.enemies
            if not enemy.disabled
            and not enemy.stunned
            and id(enemy) not in done
            and STEPS_PER_TURN[enemy.type] > sub_step
        ]
        for nth in range(len(to_act)):
            index = sub_step * MAX_ENEMIES + nth
            enemy = state.dice.choose(Site.ENEMY_ORDER, to_act, index)
            to_act = [other for other in to_act if other is not enemy]
            if act(state, enemy):
                done.add(id(enemy))


def act(state: State, enemy: Enemy) -> bool:
    """An enemy hits the player if adjacent, else moves; returns whether it hit."""
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


def spawn_due(state: State) -> None:
    """Spawns the scheduled transmission, unless CALM is on, then those pending from siphoning."""
    _scheduled_spawn(state)
    _pending_spawns(state)


def _scheduled_spawn(state: State) -> None:
    """Spawns a transmission every `interval` turns."""
    if state.calm or state.turn < state.next_task:
        return
    spawn(state, SCHEDULED_SPAWN, from_schedule=True)
    state.next_task = saturate(state.turn + state.interval)


def _pending_spawns(state: State) -> None:
    """Spawns the transmissions pending from siphoning; those without a free cell are dropped."""
    for i in range(min(state.pending, CELLS)):
        spawn(state, FIRST_PENDING_SPAWN + i, from_siphon=True)
    state.pending = 0


def rest(state: State) -> None:
    """Counts down disabled enemies and ends all stuns."""
    for enemy in state.enemies:
        enemy.disabled = max(enemy.disabled - 1, 0)
        enemy.stunned = False
