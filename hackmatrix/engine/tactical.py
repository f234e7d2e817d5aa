"""Section 12, continued: the layout `tactical`, worked out from a compact record."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from hackmatrix.engine.movement import distances, manhattan
from hackmatrix.engine.programs import shift_goal
from hackmatrix.rules.actions import NUM_DIRECTIONS
from hackmatrix.rules.board import (
    AROUND,
    CELLS,
    CROSS,
    NEIGHBOUR,
    NEIGHBOURS,
    SIZE,
    Content,
    col,
    row,
)
from hackmatrix.rules.enemies import EnemyType
from hackmatrix.rules.observation import PLANE, CellBytes, number_of
from hackmatrix.rules.programs import PROGRAMS, ProgramId
from hackmatrix.rules.stages import LAST_STAGE, MAX_HP
from hackmatrix.rules.tactical import (
    CREDIT_WORTH,
    ENERGY_WORTH,
    FAR,
    GROUPS,
    HOARDS,
    LARGEST_WORTH,
    MAX_COUNT,
    MAX_HITS,
    PROGRAM_WORTH,
    QUESTION_WORTH,
    RINGS,
    SPAWN_WORTH,
    STEP_WORTH,
    STRIKES,
    WINDOW,
)

Numbers = dict[str, Sequence[int]]


def tactical_numbers(record: bytes) -> list[int]:
    """The integers of `rules.tactical.GROUPS`, of a compact record."""
    board = _Board.of(record)
    numbers: Numbers = {
        **_directions(board),
        **_programs(board),
        **_window(board),
        **_siphoning(board),
        **_pieces(board),
        **_numbers(board),
    }
    return [number for group in GROUPS for number in numbers[group.name]]


@dataclass(frozen=True)
class _Board:
    """What the player sees, or what would be there after a program."""

    record: bytes
    cell: int
    cells: list[CellBytes]
    blocks: frozenset[int]
    enemies: dict[int, EnemyType]
    hp: dict[int, int]
    stunned: frozenset[int]
    transmissions: frozenset[int]

    @classmethod
    def of(cls, record: bytes) -> "_Board":
        end = len(PLANE) * CELLS
        cells = [CellBytes(*record[cell:end:CELLS]) for cell in range(CELLS)]
        kind = {c: cells[c].field("enemy_type") for c in range(CELLS)}
        return cls(
            record,
            number_of(record, "cell"),
            cells,
            frozenset(c for c in range(CELLS) if cells[c].field("block")),
            {c: EnemyType(kind[c] - 1) for c in range(CELLS) if kind[c]},
            {c: cells[c].field("enemy_hp") for c in range(CELLS) if kind[c]},
            frozenset(c for c in range(CELLS) if cells[c].field("stunned")),
            frozenset(c for c in range(CELLS) if cells[c].field("transmission")),
        )

    def number(self, name: str) -> int:
        return number_of(self.record, name)

    def crossed(self, cell: int) -> bool:
        """Whether an enemy can cross a cell."""
        return cell not in self.blocks | self.enemies.keys() | self.transmissions

    def hits(self, goal: int) -> int:
        """The enemies that would hit a player on a cell in the coming enemy turn."""
        return sum(self._hits(enemy, goal) for enemy in self.enemies if enemy not in self.stunned)

    def _hits(self, enemy: int, goal: int) -> bool:
        if goal in NEIGHBOURS[enemy]:
            return True
        if self.enemies[enemy] != EnemyType.VIRUS or enemy == goal:
            return False
        return any(self.crossed(c) and c in NEIGHBOURS[enemy] for c in NEIGHBOURS[goal])

    def target(self, direction: int) -> int | None:
        """The cell of what an attack in a direction strikes."""
        cell = NEIGHBOUR[self.cell][direction]
        while cell is not None and self.crossed(cell):
            cell = NEIGHBOUR[cell][direction]
        return cell if cell in self.enemies or cell in self.transmissions else None

    def goes(self, direction: int) -> bool:
        """Whether a direction is a valid action."""
        cell = NEIGHBOUR[self.cell][direction]
        return cell is not None and (cell not in self.blocks or cell in self.enemies)

    def without(self, struck: Iterable[int], dead: Iterable[int]) -> "_Board":
        """The board when some enemies are struck, some of them dead, so that none of them acts."""
        dead = set(dead)
        return replace(
            self,
            enemies={cell: kind for cell, kind in self.enemies.items() if cell not in dead},
            stunned=self.stunned | set(struck),
        )


def _flags(values: Iterable[object]) -> list[int]:
    return [int(bool(value)) for value in values]


# --- actions -------------------------------------------------------------------------------------


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


def _directions(board: _Board) -> Numbers:
    reached = _reached_later(board)
    each = [_direction(board, d, reached) for d in range(NUM_DIRECTIONS)]
    valid_hits = [go.hits for go in each if go.valid]
    return {
        **{f"go_{name}": [getattr(go, name) for go in each] for name in vars(each[0])},
        "stay_hits": [min(board.hits(board.cell), MAX_HITS)],
        "fewest_hits": [min([*valid_hits, MAX_HITS])],
    }


def _direction(board: _Board, direction: int, reached: set[int]) -> _Direction:
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


def _attacked(board: _Board, target: int, go: _Direction) -> _Board:
    """The board after an attack, whose facts it writes down."""
    if target in board.transmissions:
        go.transmission = 1
        return replace(board, transmissions=board.transmissions - {target})
    dies = board.hp[target] <= board.number("attack")
    go.kills, go.stuns = int(dies), int(not dies)
    setattr(go, board.enemies[target].name.lower(), 1)
    go.target_hp, go.target_acts = board.hp[target], int(target not in board.stunned)
    return board.without([target], [target] if dies else [])


def _fires(board: _Board, cell: int, direction: int) -> bool:
    """Whether an enemy is in the line of fire in a direction from a cell."""
    ahead = NEIGHBOUR[cell][direction]
    while ahead is not None and ahead not in board.blocks and ahead not in board.enemies:
        ahead = NEIGHBOUR[ahead][direction]
    return ahead in board.enemies


def _reached_later(board: _Board) -> set[int]:
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


def _programs(board: _Board) -> Numbers:
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


def _strike(board: _Board, program: ProgramId) -> tuple[int, int, int, int]:
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


def _after(board: _Board, program: ProgramId) -> tuple[int, int, _Board]:
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


def _is_struck(board: _Board, program: ProgramId, cell: int) -> bool:
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


def _nearest_daemon(board: _Board) -> int | None:
    daemons = [cell for cell, kind in board.enemies.items() if kind == EnemyType.DAEMON]
    return min(daemons, key=lambda cell: (manhattan(cell, board.cell), cell), default=None)


def _shifted(board: _Board, *, away: bool) -> _Board:
    """PUSH and PULL, as if no enemy were in another's way: the fiercest of those that meet counts."""
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


def _window(board: _Board) -> Numbers:
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


# --- siphoning and ways --------------------------------------------------------------------------


@dataclass
class _Yield:
    """What siphoning takes from a cell, or from a cross."""

    credits: int = 0
    energy: int = 0
    spawns: int = 0
    questions: int = 0
    programs: list[int] = field(default_factory=list)

    @property
    def worth(self) -> int:
        return (
            CREDIT_WORTH * self.credits
            + ENERGY_WORTH * self.energy
            + SPAWN_WORTH * self.spawns
            + QUESTION_WORTH * self.questions
            + sum(PROGRAM_WORTH[program] for program in self.programs)
        )


def _yield(board: _Board, cell: int) -> _Yield:
    here = board.cells[cell]
    if here.field("siphoned"):
        return _Yield()
    match here.field("block"):
        case 0:
            return _Yield(credits=here.field("credits"), energy=here.field("energy"))
        case Content.QUESTION:
            return _Yield(questions=1)
        case Content.DATA:
            return _Yield(spawns=here.field("spawn") & 15)
    program = here.field("value")
    owned = board.number("owned") >> program & 1
    return _Yield(spawns=here.field("spawn") & 15, programs=[] if owned else [program])


def _over_cross(yields: list[_Yield], cell: int) -> _Yield:
    parts = [yields[c] for c in CROSS[cell]]
    return _Yield(
        sum(part.credits for part in parts),
        sum(part.energy for part in parts),
        sum(part.spawns for part in parts),
        sum(part.questions for part in parts),
        [program for part in parts for program in part.programs],
    )


def _siphoning(board: _Board) -> Numbers:
    here = board.cell
    yields = [_yield(board, cell) for cell in range(CELLS)]
    way = _ways({here}, board.blocks)
    siphons = {cell for cell in range(CELLS) if board.cells[cell].field("data_siphon")}
    to_siphon = _ways(siphons, board.blocks)
    worth = {
        cell: _over_cross(yields, cell).worth + STEP_WORTH * way[cell]
        for cell in range(CELLS)
        if way[cell] < FAR and cell not in board.blocks
    }
    best_worth = max(worth.values(), default=-999)
    best = min((cell for cell in worth if worth[cell] == best_worth), default=0)
    to_best = _ways({best}, board.blocks)
    to_exit = [cell.field("exit_distance") for cell in board.cells]
    own = _over_cross(yields, here)
    viruses = [c for c, kind in board.enemies.items() if kind == EnemyType.VIRUS]
    others = [c for c, kind in board.enemies.items() if kind != EnemyType.VIRUS]

    def nearer(table: list[int]) -> list[int]:
        ahead = [NEIGHBOUR[here][direction] for direction in range(NUM_DIRECTIONS)]
        return [
            0 if c is None or c in board.blocks else max(-1, min(1, table[here] - table[c]))
            for c in ahead
        ]

    def rings(pieces: list[int]) -> list[int]:
        counts = [sum(way[c] == distance for c in pieces) for distance in range(1, RINGS + 1)]
        return [min(count, MAX_HITS) for count in counts]

    return {
        "go_to_exit": nearer(to_exit),
        "go_to_siphon": nearer(to_siphon),
        "go_to_best": nearer(to_best),
        "program_near": [_nearness(yields, way, number) for number in range(len(PROGRAMS))],
        "here_credits": [own.credits],
        "here_energy": [own.energy],
        "here_spawns": [own.spawns],
        "here_questions": [own.questions],
        "here_programs": [len(own.programs)],
        "here_worth": [_halved(own.worth)],
        "best_worth": [_halved(best_worth)],
        "best_distance": [to_best[here]],
        "best_here": [int(to_best[here] == 0)],
        "credits_left": [sum(part.credits for part in yields)],
        "energy_left": [sum(part.energy for part in yields)],
        "siphons_left": [min(len(siphons), MAX_COUNT)],
        "siphon_distance": [to_siphon[here]],
        "exit_distance": [to_exit[here]],
        "walkers_at": rings(others),
        "viruses_at": rings(viruses),
    }


def _halved(worth: int) -> int:
    return max(-LARGEST_WORTH, min(LARGEST_WORTH, worth >> 1))


def _nearness(yields: list[_Yield], way: list[int], program: int) -> int:
    """How near the first cell is from which a program can be siphoned."""
    for cell in range(CELLS):
        if program in yields[cell].programs:
            return FAR - min(way[c] for c in CROSS[cell])
    return 0


def _ways(start: set[int], blocks: frozenset[int]) -> list[int]:
    """Steps from a set of cells over cells without block, at most `FAR`."""
    found = distances(start, blocks)
    return [min(found.get(cell, FAR), FAR) for cell in range(CELLS)]


# --- pieces and numbers --------------------------------------------------------------------------


def _pieces(board: _Board) -> Numbers:
    kinds = list(board.enemies.values())
    hidden = sum(cell.field("last_seen") for cell in board.cells)
    return {
        "enemies": [min(kinds.count(kind), MAX_COUNT) for kind in EnemyType],
        "stunned": [min(len(board.stunned), MAX_COUNT)],
        "hidden": [min(hidden, MAX_COUNT)],
        "transmissions": [min(len(board.transmissions), MAX_COUNT)],
        "empty_of_pieces": [int(not board.enemies and not board.transmissions)],
    }


def _numbers(board: _Board) -> Numbers:
    number = board.number

    def one_hot(value: int, values: range) -> list[int]:
        return _flags(value == each for each in values)

    def at_least(name: str, bounds: Sequence[int]) -> list[int]:
        return _flags(number(name) >= bound for bound in bounds)

    return {
        "hp": one_hot(number("hp"), range(1, MAX_HP + 1)),
        "siphons": at_least("siphons", (1, 2, 3)),
        "attack": at_least("attack", (2, 3, 4)),
        "credits": [min(number("credits"), 60)],
        "energy": [min(number("energy"), 60)],
        "has_credits": at_least("credits", HOARDS),
        "has_energy": at_least("energy", HOARDS),
        "stage": one_hot(number("stage"), range(1, LAST_STAGE + 1)),
        "turn": [min(number("turn"), 80)],
        "until_task": [max(-1, min(24, number("next_task") - number("turn")))],
        "interval": [min(number("interval"), 24)],
        "pending": [min(number("pending"), 18)],
        "saved": [number("saved")],
        "atk_uses": [number("atk_uses")],
        "flags": [number(flag) for flag in ("show", "calm", "step")],
        "line": [*one_hot(row(board.cell), range(SIZE)), *one_hot(col(board.cell), range(SIZE))],
    }
