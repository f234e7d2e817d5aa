"""Layout `tactical`: what programs do that strike or move enemies."""

from dataclasses import replace

from hackmatrix.game.engine.movement import manhattan
from hackmatrix.game.engine.programs import shift_goal
from hackmatrix.game.foresight.python_board import Board, Numbers
from hackmatrix.game.rules.actions import NUM_DIRECTIONS
from hackmatrix.game.rules.board import AROUND, NEIGHBOUR, col, row
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.programs import PROGRAMS, ProgramId
from hackmatrix.game.rules.tactical import MAX_HITS, STRIKES


def of_programs(board: Board) -> Numbers:
    """The groups about programs."""
    credits, energy, owned = (board.number(name) for name in ("credits", "energy", "owned"))
    owns = [owned >> number & 1 for number in range(len(PROGRAMS))]
    affordable = [int(credits >= p.credits and energy >= p.energy) for p in PROGRAMS]
    ready = [a & b for a, b in zip(owns, affordable, strict=True)]
    strikes = [_strike(board, p) if ready[p] else (0, 0, 0, 0) for p in STRIKES]
    struck, killed, hits, fewest = zip(*strikes, strict=True)
    return {
        "owned": owns,
        "ready": ready,
        "affordable": affordable,
        "struck": struck,
        "killed": killed,
        "hits_after": hits,
        "fewest_after": fewest,
    }


def _strike(board: Board, program: ProgramId) -> tuple[int, int, int, int]:
    """What a program strikes and destroys, and the hits to expect after it."""
    struck, dead, after = _after(board, program)
    if not struck and not dead:
        return 0, 0, 0, 0
    hits = min(after.hits(after.cell), MAX_HITS)
    outcomes = [
        after.hits(after.cell if after.target(d) is not None else NEIGHBOUR[after.cell][d] or 0)
        for d in range(NUM_DIRECTIONS)
        if after.goes(d)
    ]
    return min(struck, MAX_HITS), min(dead, MAX_HITS), hits, min([*outcomes, MAX_HITS])


def _after(board: Board, program: ProgramId) -> tuple[int, int, Board]:
    """How many pieces a program strikes and destroys, and the board after it."""
    here, enemies = board.cell, board.enemies
    if program in (ProgramId.PUSH, ProgramId.PULL):
        return len(enemies), 0, _shifted(board, away=program == ProgramId.PUSH)
    if program == ProgramId.CRASH:
        around = set(AROUND[here])
        gone, coming = enemies.keys() & around, board.transmissions & around
        after = board.without(gone, gone)
        after = replace(
            after, blocks=board.blocks - around, transmissions=board.transmissions - around
        )
        return len(gone), len(gone) + len(coming), after
    struck = {cell for cell in enemies if _is_struck(board, program, cell)}
    damage = 1 if program in (ProgramId.D_BOM, ProgramId.ANTI_V) else board.number("attack")
    dead = {cell for cell in struck if board.hp[cell] <= damage}
    if program == ProgramId.D_BOM and (daemon := _nearest_daemon(board)) is not None:
        dead.add(daemon)
        struck.add(daemon)
    return len(struck), len(dead), board.without(struck, dead)


def _is_struck(board: Board, program: ProgramId, cell: int) -> bool:
    match program:
        case ProgramId.DEBUG:
            return cell in board.blocks
        case ProgramId.ROW:
            return row(cell) == row(board.cell)
        case ProgramId.COL:
            return col(cell) == col(board.cell)
        case ProgramId.ANTI_V:
            return board.enemies[cell] == EnemyType.VIRUS
        case ProgramId.HACK:
            return bool(board.cells[cell].field("siphoned"))
        case ProgramId.D_BOM:
            daemon = _nearest_daemon(board)
            return daemon is not None and cell in AROUND[daemon]
    raise AssertionError(program)


def _nearest_daemon(board: Board) -> int | None:
    daemons = [cell for cell, kind in board.enemies.items() if kind == EnemyType.DAEMON]
    return min(daemons, key=lambda cell: (manhattan(cell, board.cell), cell), default=None)


def _shifted(board: Board, *, away: bool) -> Board:
    """PUSH and PULL, as if no enemy were in another's way; where some meet, the fiercest counts."""
    enemies: dict[int, EnemyType] = {}
    able: set[int] = set()
    viruses: set[int] = set()
    for cell, kind in board.enemies.items():
        goal = shift_goal(board.cell, cell, away=away)
        to = cell if goal is None else goal
        acts = cell not in board.stunned
        enemies[to] = kind
        able |= {to} if acts else set()
        viruses |= {to} if acts and kind == EnemyType.VIRUS else set()
    for cell in viruses:
        enemies[cell] = EnemyType.VIRUS
    for cell in enemies.keys() - viruses:
        if enemies[cell] == EnemyType.VIRUS:  # it is stunned; another one on its cell acts
            enemies[cell] = EnemyType.DAEMON
    return replace(board, enemies=enemies, stunned=frozenset(enemies.keys() - able))
