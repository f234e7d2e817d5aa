"""Plays directions and siphoning out on what the player sees, without dice."""

from hackmatrix.game.foresight.cell_sets import BIT, CROSS, first_on_ray, members
from hackmatrix.game.foresight.visible_state import VisibleEnemy, VisibleState
from hackmatrix.game.rules.board import NEIGHBOUR, Content


def can_go(visible: VisibleState, direction: int) -> bool:
    """Whether the next cell is free, or holds an enemy to attack."""
    to = NEIGHBOUR[visible.cell][direction]
    if to is None:
        return False
    return not visible.board.blocks >> to & 1 or any(enemy.cell == to for enemy in visible.enemies)


def target(visible: VisibleState, direction: int) -> int | None:
    """The cell of the piece that an attack in a direction hits, at any distance."""
    pieces = visible.pieces
    cell = first_on_ray(visible.cell, direction, pieces | visible.board.blocks)
    return cell if cell is not None and pieces >> cell & 1 else None


def go(visible: VisibleState, direction: int) -> VisibleState:
    """Attacks the first piece in a direction, however far away, else walks one cell."""
    cell = target(visible, direction)
    return walk(visible, direction) if cell is None else attack(visible, cell)


def attack(visible: VisibleState, cell: int) -> VisibleState:
    """Hits the piece on a cell."""
    if visible.transmissions >> cell & 1:
        return without_transmissions(visible, BIT[cell])
    index = next(i for i, enemy in enumerate(visible.enemies) if enemy.cell == cell)
    struck = damage(visible.enemies[index], visible.attack)
    return visible._replace(enemies=visible.enemies[:index] + struck + visible.enemies[index + 1 :])


def damage(enemy: VisibleEnemy, amount: int) -> tuple[VisibleEnemy, ...]:
    """The enemy after a hit, stunned; nothing if that removes it."""
    left = enemy.hp - amount
    return (enemy._replace(hp=left, stunned=True),) if left > 0 else ()


def without_transmissions(visible: VisibleState, cells: int) -> VisibleState:
    """The same without the transmissions on some cells."""
    return visible._replace(
        transmissions=visible.transmissions & ~cells, landing=visible.landing & ~cells
    )


def walk(visible: VisibleState, direction: int) -> VisibleState:
    """Walks to the next cell and picks up a data siphon there."""
    to = NEIGHBOUR[visible.cell][direction]
    assert to is not None
    if not visible.board.data_siphons >> to & 1:
        return visible._replace(cell=to)
    board = visible.board._replace(data_siphons=visible.board.data_siphons & ~BIT[to])
    return visible._replace(cell=to, siphons=visible.siphons + 1, board=board)


def siphon(visible: VisibleState) -> VisibleState:
    """Siphons the cross around the player."""
    board, cross = visible.board, CROSS[visible.cell]
    credits = energy = spawns = 0
    owned = visible.owned
    resources, unsiphoned = dict(board.resources), dict(board.unsiphoned)
    for cell in members(cross):
        gained = resources.pop(cell, (0, 0))
        credits, energy = credits + gained[0], energy + gained[1]
        block = unsiphoned.pop(cell, None)
        if block is not None:
            spawns += block.spawn
            owned |= (block.content == Content.PROGRAM) << block.value
    board = board._replace(
        siphoned=board.siphoned | cross, resources=resources, unsiphoned=unsiphoned
    )
    return visible._replace(
        credits=visible.credits + credits,
        energy=visible.energy + energy,
        siphons=visible.siphons - 1,
        owned=owned,
        pending=visible.pending + spawns,
        board=board,
    )
