"""The view of a state, without the detour over its record: the same view, several times as fast."""

from hackmatrix.agents.scripted.cells import BIT
from hackmatrix.agents.scripted.view import Block, Board, Enemy, View, unknown_enemy
from hackmatrix.game.engine.state import State
from hackmatrix.game.rules.board import Content
from hackmatrix.game.rules.observation import MAX_SEEN

_BLOCKS = (Content.DATA, Content.PROGRAM, Content.QUESTION)


def see(state: State) -> View:
    """The view of a state: equal to `view_of(observe(state))`."""
    player = state.player
    transmissions = landing = last_seen = owned = 0
    for transmission in state.transmissions:
        transmissions |= BIT[transmission.cell]
        if transmission.turns <= 1:
            landing |= BIT[transmission.cell]
    for enemy in state.enemies:
        if not state.sees(enemy):
            last_seen |= BIT[enemy.last]
    for program in state.owned:
        owned |= 1 << program
    return View(
        cell=player.cell,
        hp=player.hp,
        credits=player.credits,
        energy=player.energy,
        siphons=player.siphons,
        attack=player.attack,
        stage=state.stage,
        owned=owned,
        atk_uses=state.atk_uses,
        pending=state.pending,
        show=state.show,
        calm=state.calm,
        step=state.step,
        board=_board(state),
        enemies=_enemies(state),
        transmissions=transmissions,
        landing=landing,
        last_seen=last_seen,
    )


def _enemies(state: State) -> tuple[Enemy, ...]:
    found: list[Enemy] = []
    for cell in sorted({enemy.cell for enemy in state.enemies}):
        here = state.enemies_on(cell)
        first = here[0]
        seen = min(sum(map(state.sees, here)), MAX_SEEN)
        shown = (
            Enemy(first.type, cell, first.hp, first.stunned)
            if state.sees(first)
            else unknown_enemy(cell)
        )
        found += [shown] * seen
    return tuple(found)


def _board(state: State) -> Board:
    blocks = data_siphons = siphoned = 0
    resources: dict[int, tuple[int, int]] = {}
    unsiphoned: dict[int, Block] = {}
    for cell, here in enumerate(state.cells):
        content = here.content
        if here.siphoned:
            siphoned |= BIT[cell]
        if content in _BLOCKS:
            blocks |= BIT[cell]
            if here.siphoned:
                continue
            if content == Content.QUESTION:
                unsiphoned[cell] = Block(content, 0, 0)
            elif content == Content.DATA:
                unsiphoned[cell] = Block(content, here.points, here.spawn)
            else:
                unsiphoned[cell] = Block(content, here.program, here.spawn)
            continue
        if content == Content.SIPHON:
            data_siphons |= BIT[cell]
        if (here.credits or here.energy) and not here.siphoned:
            resources[cell] = (here.credits, here.energy)
    return Board(blocks, state.exit, data_siphons, siphoned, resources, unsiphoned)
