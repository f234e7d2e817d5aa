"""Layout `tactical`: what directions do, and the hits to expect after them."""

from dataclasses import dataclass, replace

from hackmatrix.game.foresight.python_board import Board, Numbers
from hackmatrix.game.rules.actions import NUM_DIRECTIONS
from hackmatrix.game.rules.board import CROSS, NEIGHBOUR, NEIGHBOURS, SIZE, col, row
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.tactical import MAX_HITS, WINDOW


@dataclass
class _Direction:
    """What a direction does; all 0 where it is not valid."""

    valid: int = 0
    walks: int = 0
    transmission: int = 0
    kills: int = 0
    stuns: int = 0
    virus: int = 0
    daemon: int = 0
    glitch: int = 0
    cryptog: int = 0
    target_hp: int = 0
    target_near: int = 0
    target_acts: int = 0
    hits: int = 0
    hit: int = 0
    lethal: int = 0
    safe_cells: int = 0
    open: int = 0
    lines: int = 0
    exit: int = 0
    siphon: int = 0


def of_directions(board: Board) -> Numbers:
    """The groups about directions."""
    reached = _reached_later(board)
    each = [_direction(board, d, reached) for d in range(NUM_DIRECTIONS)]
    valid_hits = [go.hits for go in each if go.valid]
    return {
        **{f"go_{name}": [getattr(go, name) for go in each] for name in vars(each[0])},
        "stay_hits": [min(board.hits(board.cell), MAX_HITS)],
        "fewest_hits": [min([*valid_hits, MAX_HITS])],
    }


def _direction(board: Board, direction: int, reached: set[int]) -> _Direction:
    if not board.goes(direction):
        return _Direction()
    go, target = _Direction(valid=1), board.target(direction)
    ahead = NEIGHBOUR[board.cell][direction]
    standing, after = board.cell, board
    if target is None:
        assert ahead is not None
        go.walks, standing = 1, ahead
        go.exit = board.cells[ahead].field("exit")
        go.siphon = board.cells[ahead].field("data_siphon")
    else:
        go.target_near = int(target == ahead)
        after = _attacked(board, target, go)
    hits = after.hits(standing)
    go.hits, go.hit, go.lethal = min(hits, MAX_HITS), int(hits > 0), int(hits >= board.number("hp"))
    go.open = sum(cell not in board.blocks for cell in NEIGHBOURS[standing])
    go.safe_cells = sum(board.crossed(cell) and cell not in reached for cell in CROSS[standing])
    go.lines = sum(_fires(board, standing, d) for d in range(NUM_DIRECTIONS))
    return go


def _attacked(board: Board, target: int, go: _Direction) -> Board:
    """The board after an attack, whose facts it writes down."""
    if target in board.transmissions:
        go.transmission = 1
        return replace(board, transmissions=board.transmissions - {target})
    dies = board.hp[target] <= board.number("attack")
    go.kills, go.stuns = int(dies), int(not dies)
    setattr(go, board.enemies[target].name.lower(), 1)
    go.target_hp, go.target_acts = board.hp[target], int(target not in board.stunned)
    return board.without([target], [target] if dies else [])


def _fires(board: Board, cell: int, direction: int) -> bool:
    """Whether an enemy is in the line of fire in a direction from a cell."""
    ahead = NEIGHBOUR[cell][direction]
    while ahead is not None and ahead not in board.blocks and ahead not in board.enemies:
        ahead = NEIGHBOUR[ahead][direction]
    return ahead in board.enemies


def _reached_later(board: Board) -> set[int]:
    """Cells where an enemy may hit in the enemy turn after the coming one."""
    reached: set[int] = set()
    for enemy, kind in board.enemies.items():
        virus, acts = kind == EnemyType.VIRUS, enemy not in board.stunned
        at = {enemy}
        for _ in range((2 if virus else 1) if acts else 0):
            at |= {n for c in at for n in NEIGHBOURS[c] if board.crossed(n)}
        if kind == EnemyType.GLITCH and acts:
            pieces = board.enemies.keys() | board.transmissions
            at |= {n for n in NEIGHBOURS[enemy] if n not in pieces}
        next_to = {n for c in at for n in NEIGHBOURS[c]}
        if virus:
            next_to |= {n for c in next_to if board.crossed(c) for n in NEIGHBOURS[c]}
        reached |= next_to
    return reached | {n for c in board.transmissions for n in NEIGHBOURS[c]}


def of_window(board: Board) -> Numbers:
    """The groups about the cells around."""
    cells = [_at(board.cell, rows, cols) for rows, cols in WINDOW]
    reached = _reached_later(board)

    def each(number: object, beyond: int = 0) -> list[int]:
        assert callable(number)
        return [beyond if cell is None else int(number(cell)) for cell in cells]

    return {
        "cell_blocked": each(lambda cell: cell in board.blocks, beyond=1),
        **{
            f"cell_{kind.name.lower()}": each(
                lambda cell, kind=kind: board.enemies.get(cell) == kind
            )
            for kind in EnemyType
        },
        "cell_stunned": each(lambda cell: cell in board.stunned),
        "cell_hp": each(lambda cell: board.hp.get(cell, 0)),
        "cell_transmission": each(lambda cell: cell in board.transmissions),
        "cell_hits": each(lambda cell: min(board.hits(cell), MAX_HITS)),
        "cell_reached": each(lambda cell: cell in reached),
    }


def _at(cell: int, rows: int, cols: int) -> int | None:
    to_row, to_col = row(cell) + rows, col(cell) + cols
    on_board = 0 <= to_row < SIZE and 0 <= to_col < SIZE
    return to_row * SIZE + to_col if on_board else None
