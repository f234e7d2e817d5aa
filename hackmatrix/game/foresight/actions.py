"""Plays directions and siphoning out on what the player sees, without dice."""

from hackmatrix.game.foresight.cell_sets import BIT, CROSS, first_on_ray, members
from hackmatrix.game.foresight.seen import Seen, VisibleEnemy
from hackmatrix.game.rules.board import NEIGHBOUR, Content


def can_go(seen: Seen, direction: int) -> bool:
    """Whether the next cell is free, or holds an enemy to attack."""
    to = NEIGHBOUR[seen.cell][direction]
    if to is None:
        return False
    return not seen.board.blocks >> to & 1 or any(enemy.cell == to for enemy in seen.enemies)


def target(seen: Seen, direction: int) -> int | None:
    """The cell of the piece that an attack in a direction hits, at any distance."""
    pieces = seen.pieces
    cell = first_on_ray(seen.cell, direction, pieces | seen.board.blocks)
    return cell if cell is not None and pieces >> cell & 1 else None


def go(seen: Seen, direction: int) -> Seen:
    """Attacks the first piece in a direction, however far away, else walks one cell."""
    cell = target(seen, direction)
    return walk(seen, direction) if cell is None else attack(seen, cell)


def attack(seen: Seen, cell: int) -> Seen:
    """Hits the piece on a cell."""
    if seen.transmissions >> cell & 1:
        return without_transmissions(seen, BIT[cell])
    place = next(i for i, enemy in enumerate(seen.enemies) if enemy.cell == cell)
    struck = damaged(seen.enemies[place], seen.attack)
    return seen._replace(enemies=seen.enemies[:place] + struck + seen.enemies[place + 1 :])


def damaged(enemy: VisibleEnemy, amount: int) -> tuple[VisibleEnemy, ...]:
    """The enemy after a hit, stunned; nothing if that removes it."""
    left = enemy.hp - amount
    return (enemy._replace(hp=left, stunned=True),) if left > 0 else ()


def without_transmissions(seen: Seen, cells: int) -> Seen:
    """The same without the transmissions on some cells."""
    return seen._replace(transmissions=seen.transmissions & ~cells, landing=seen.landing & ~cells)


def walk(seen: Seen, direction: int) -> Seen:
    """Walks to the next cell and picks up a data siphon there."""
    to = NEIGHBOUR[seen.cell][direction]
    assert to is not None
    if not seen.board.data_siphons >> to & 1:
        return seen._replace(cell=to)
    board = seen.board._replace(data_siphons=seen.board.data_siphons & ~BIT[to])
    return seen._replace(cell=to, siphons=seen.siphons + 1, board=board)


def siphon(seen: Seen) -> Seen:
    """Siphons the cross around the player."""
    board, cross = seen.board, CROSS[seen.cell]
    credits = energy = spawns = 0
    owned = seen.owned
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
    return seen._replace(
        credits=seen.credits + credits,
        energy=seen.energy + energy,
        siphons=seen.siphons - 1,
        owned=owned,
        pending=seen.pending + spawns,
        board=board,
    )
