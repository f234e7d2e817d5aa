"""Section 12, continued: the layout `tactical`, from compact records.

Everything here has the axis of games last, so that each bit operation runs over many games; what is
played out for several programs, directions or cells at once has an axis before it.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from hackmatrix.jaxgame import bitboard, planes
from hackmatrix.jaxgame.bitboard import CellSet, neighbours
from hackmatrix.jaxgame.control_flow import compute_once
from hackmatrix.rules.board import CELLS, SIZE, Content
from hackmatrix.rules.enemies import EnemyType
from hackmatrix.rules.observation import FIELD, NUMBER, BYTE, PLANE
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

Array = jax.Array
_Tree = TypeVar("_Tree")


def tactical_numbers(records: Array) -> Array:
    """int8[N, TACTICAL_SIZE]: the integers of `rules.tactical.GROUPS`, of records [N, RECORD_SIZE]."""
    seen = _look(records)
    numbers: dict[str, Array] = {}
    numbers |= _actions(seen)
    numbers |= _siphoning(seen)
    numbers |= _pieces(seen)
    numbers |= _numbers(seen)
    rows = [jnp.reshape(numbers[g.name], (g.size, -1)).astype(jnp.int8) for g in GROUPS]
    return _transposed(jnp.concatenate(_kept(rows, seen.number)))


def _transposed(rows: Array) -> Array:
    """int8[F, N] -> int8[N, F], four at a time: XLA on CPU moves element by element."""
    features, games = rows.shape
    fours = jnp.pad(rows, [(0, -features % 4), (0, 0)]).reshape(-1, 4, games)
    fours = lax.bitcast_convert_type(fours, jnp.uint8).astype(jnp.uint32)
    words = sum(fours[:, i] << np.uint32(8 * i) for i in range(4))
    return lax.bitcast_convert_type(words.T, jnp.int8).reshape(games, -1)[:, :features]


class Seen(NamedTuple):
    """What the player sees: sets of cells and numbers, of N games each."""

    number: dict[str, Array]  # int32[N], those of the record by name
    cell: Array  # int32[N]
    here: CellSet
    blocks: CellSet
    exit: CellSet
    siphons: CellSet
    siphoned: CellSet
    transmissions: CellSet
    enemies: CellSet
    kinds: tuple[CellSet, ...]  # by `EnemyType`
    stunned: CellSet
    hp: tuple[CellSet, ...]  # 2 planes
    last_seen: CellSet
    block: planes.Numbers[CellSet]  # the kind of block
    value: planes.Numbers[CellSet]
    spawn: planes.Numbers[CellSet]
    credits: planes.Numbers[CellSet]
    energy: planes.Numbers[CellSet]
    exit_distance: planes.Numbers[CellSet]

    @property
    def stops(self) -> CellSet:
        """Cells on which no enemy can walk."""
        return self.blocks | self.enemies | self.transmissions


def _look(records: Array) -> Seen:
    columns = records.T
    wide = columns[len(PLANE) * CELLS :].astype(jnp.int32)
    number = {}
    for name, (_, size, _) in NUMBER.items():
        start = BYTE[name] - len(PLANE) * CELLS
        number[name] = reduce(jnp.bitwise_or, [wide[start + i] << 8 * i for i in range(size)])
    cells = {name: columns[start : start + CELLS] for name, start in PLANE.items()}

    def plane(name: str, bit: int = 0) -> CellSet:
        field = FIELD[name]
        return bitboard.of_mask((cells[field.byte] >> field.first + bit) & 1)

    def several(name: str) -> tuple[CellSet, ...]:
        return tuple(plane(name, bit) for bit in range(FIELD[name].width))

    kind = several("enemy_type")
    kinds = tuple(planes.equal(kind, 1 + k) for k in EnemyType)
    flags = number["flags"]
    number |= {name: FIELD[name].of(flags) & 1 for name in ("show", "calm", "step")}
    read = Seen(
        number=number,
        cell=number["cell"],
        here=bitboard.of_cell(number["cell"]),
        blocks=planes.nonzero(several("block")),
        exit=plane("exit"),
        siphons=plane("data_siphon"),
        siphoned=plane("siphoned"),
        transmissions=plane("transmission"),
        enemies=reduce(CellSet.__or__, kinds),
        kinds=kinds,
        stunned=plane("stunned"),
        hp=several("enemy_hp"),
        last_seen=plane("last_seen"),
        block=several("block"),
        value=several("value")[:5],
        spawn=several("spawn")[:4],
        credits=several("credits"),
        energy=several("energy"),
        exit_distance=several("exit_distance"),
    )
    return _kept(read, number)


def _kept(tree: _Tree, number: dict[str, Array]) -> _Tree:
    """The same values, written to memory once instead of computed anew by each of their users."""
    return compute_once(number["stage"] > 0, lambda: tree)


# --- sets with several axes ----------------------------------------------------------------------


def _stacked(sets: Sequence[CellSet]) -> CellSet:
    return CellSet(*(jnp.stack(words) for words in zip(*sets, strict=True)))


def _each(cells: CellSet, axis: int = 0) -> CellSet:
    """The set with one more axis, to meet another one that has several entries there."""
    return CellSet(*(jnp.expand_dims(word, axis) for word in cells))


def _both(a: CellSet, b: CellSet) -> tuple[CellSet, CellSet]:
    """The two with the same shape."""
    shape = jnp.broadcast_shapes(a.low.shape, b.low.shape)
    return tuple(CellSet(*(jnp.broadcast_to(w, shape) for w in s)) for s in (a, b))  # type: ignore[return-value]


def _and(*sets: CellSet) -> CellSet:
    return reduce(lambda a, b: CellSet.__and__(*_both(a, b)), sets)


def _only_if(condition: Array, cells: CellSet) -> CellSet:
    return CellSet(*(jnp.where(condition, word, 0) for word in cells))


def _bits(cells: CellSet) -> Array:
    """int16[36, ...]: 1 for the cells of a set."""
    places = np.arange(CELLS // 2, dtype=np.uint32).reshape(-1, *[1] * cells.low.ndim)
    return jnp.concatenate([(word[None] >> places) & 1 for word in cells]).astype(jnp.int16)


# --- actions -------------------------------------------------------------------------------------


class _Board(NamedTuple):
    """The pieces before the enemy turn, as they are or after an action: axes [V, N]."""

    blocks: CellSet
    enemies: CellSet
    able: CellSet  # enemies that will act
    viruses: CellSet  # those of them that are viruses
    transmissions: CellSet

    @property
    def open(self) -> CellSet:
        """Cells that an enemy can cross."""
        return ~(self.blocks | self.enemies | self.transmissions)


def _hitters(goal: CellSet, board: _Board) -> CellSet:
    """The enemies that hit a player on a cell: neighbours, and viruses two free steps away."""
    near = neighbours(goal)
    two = neighbours(_and(near, board.open))
    return _and(near, board.able) | _and(two, board.viruses, ~goal)


def _actions(seen: Seen) -> dict[str, Array]:
    number = seen.number
    able = seen.enemies & ~seen.stunned
    viruses = seen.kinds[EnemyType.VIRUS] & able
    here = seen.here
    strong = planes.at_least(seen.hp, jnp.minimum(number["attack"], 3))
    equal = planes.equal(seen.hp, jnp.minimum(number["attack"], 3))
    survivors = strong & ~equal  # of a hit of the player
    targets, beyond = [], []
    for direction in bitboard.DIRECTIONS:
        first = bitboard.up_to_first(bitboard.ray(seen.cell, direction), seen.stops, direction)
        targets.append(first & (seen.enemies | seen.transmissions))
        beyond.append(direction(here))
    goals = _stacked([here, *beyond])  # [5, N]
    target = _stacked(targets)  # [4, N]
    next_to = _stacked(beyond)
    at_transmission = _and(target, _each(seen.transmissions))
    at_enemy = _only_if(~at_transmission.any(), target)
    dies = _and(at_enemy, ~_each(survivors))

    # [V, N]: as it is, after each strike, after each attack
    boards, struck, killed = _after_strikes(seen, able, viruses, survivors)
    attacked = _Board(
        blocks=_both(_each(seen.blocks), target)[0],
        enemies=_and(_each(seen.enemies), ~dies),
        able=_and(_each(able), ~at_enemy),
        viruses=_and(_each(viruses), ~at_enemy),
        transmissions=_and(_each(seen.transmissions), ~at_transmission),
    )
    boards, attacked, goals, target, next_to, at_transmission, at_enemy, dies, struck, killed = (
        _kept(
            (
                boards,
                attacked,
                goals,
                target,
                next_to,
                at_transmission,
                at_enemy,
                dies,
                struck,
                killed,
            ),
            number,
        )
    )
    each = jax.tree.map(lambda word: word[:, None], boards)  # [V, 1, N]
    hits = _hitters(_each(goals), each).size()  # [V, 5, N]
    attack_hits = _hitters(_each(here), attacked).size()  # [4, N]

    attacks = target.any()
    on_board = next_to.any()
    blocked = _and(next_to, _each(seen.blocks)).any()
    blocked &= ~_and(next_to, _each(seen.enemies)).any()
    valid = on_board & ~blocked
    walks = valid & ~attacks
    go_hits = jnp.where(attacks, attack_hits, hits[0, 1:])
    go_hits = jnp.where(valid, go_hits, 0)
    hits, go_hits, walks, attacks, valid = _kept((hits, go_hits, walks, attacks, valid), number)

    after = CellSet(*(jnp.where(walks, n, h[None]) for n, h in zip(next_to, here, strict=True)))
    reached = _reached_later(seen, able, viruses)
    standing = _and(after | neighbours(after), _each(~seen.stops & ~reached))
    lines = sum(
        _and(_shots(after, direction, _each(seen.blocks), _each(seen.enemies)), _each(seen.enemies))
        .any()
        .astype(jnp.int32)
        for direction in bitboard.DIRECTIONS
    )
    strikes = boards_ready(number)[np.array(STRIKES)]  # [S, N]
    strikes &= (struck > 0) | (killed > 0)
    fewest = _fewest(boards, hits, next_to, seen.cell)
    one = jnp.int32(1)

    def only(condition: Array, value: Array) -> Array:
        return jnp.where(condition, value, 0)

    return {
        "go_valid": valid,
        "go_walks": walks,
        "go_transmission": valid & at_transmission.any(),
        "go_kills": valid & dies.any(),
        "go_stuns": valid & at_enemy.any() & ~dies.any(),
        **{
            f"go_{kind.name.lower()}": valid & _and(at_enemy, _each(seen.kinds[kind])).any()
            for kind in EnemyType
        },
        "go_target_hp": only(
            valid, sum(_and(at_enemy, _each(p)).any() * (one << b) for b, p in enumerate(seen.hp))
        ),
        "go_target_near": valid & _and(target, next_to).any(),
        "go_target_acts": valid & _and(at_enemy, _each(able)).any(),
        "go_hits": jnp.minimum(go_hits, MAX_HITS),
        "go_hit": go_hits > 0,
        "go_lethal": go_hits >= number["hp"],
        "go_safe_cells": only(valid, standing.size()),
        "go_open": only(valid, _and(neighbours(after), _each(~seen.blocks)).size()),
        "go_lines": only(valid, lines),
        "go_exit": walks & _and(next_to, _each(seen.exit)).any(),
        "go_siphon": walks & _and(next_to, _each(seen.siphons)).any(),
        "stay_hits": jnp.minimum(hits[0, 0], MAX_HITS),
        "fewest_hits": jnp.minimum(jnp.min(jnp.where(valid, go_hits, MAX_HITS), axis=0), MAX_HITS),
        "owned": _owned(number),
        "ready": boards_ready(number),
        "affordable": _affordable(number),
        "struck": only(strikes, jnp.minimum(struck, MAX_HITS)),
        "killed": only(strikes, jnp.minimum(killed, MAX_HITS)),
        "hits_after": only(strikes, jnp.minimum(hits[1:, 0], MAX_HITS)),
        "fewest_after": only(strikes, fewest[1:]),
        **_window(seen, able, viruses, reached),
    }


def _owned(number: dict[str, Array]) -> Array:
    """bool[23, N]."""
    return number["owned"][None] >> np.arange(len(PROGRAMS))[:, None] & 1 == 1


def _affordable(number: dict[str, Array]) -> Array:
    """bool[23, N]."""
    credits = np.array([program.credits for program in PROGRAMS])[:, None]
    energy = np.array([program.energy for program in PROGRAMS])[:, None]
    return (number["credits"] >= credits) & (number["energy"] >= energy)


def boards_ready(number: dict[str, Array]) -> Array:
    """bool[23, N]: programs that are owned and affordable."""
    return _owned(number) & _affordable(number)


def _after_strikes(
    seen: Seen, able: CellSet, viruses: CellSet, survivors: CellSet
) -> tuple[_Board, Array, Array]:
    """The boards as it is and after each of `STRIKES`, and what each strikes and destroys [S, N]."""
    enemies, here = seen.enemies, seen.here
    around = bitboard.around(here)
    daemon = _nearest(seen.cell, seen.kinds[EnemyType.DAEMON])
    beside = bitboard.around(daemon) & enemies
    tough = planes.at_least(seen.hp, jnp.full_like(seen.cell, 2))  # survive 1 damage
    row = bitboard.row_cells(bitboard.row_of(seen.cell))
    col = bitboard.col_cells(bitboard.col_of(seen.cell))
    struck = {
        ProgramId.CRASH: enemies & around,
        ProgramId.DEBUG: enemies & seen.blocks,
        ProgramId.ROW: enemies & row,
        ProgramId.COL: enemies & col,
        ProgramId.D_BOM: daemon | beside,
        ProgramId.ANTI_V: seen.kinds[EnemyType.VIRUS],
        ProgramId.HACK: enemies & seen.siphoned,
    }
    dead = {program: cells & ~survivors for program, cells in struck.items()}
    dead[ProgramId.CRASH] = struck[ProgramId.CRASH]
    dead[ProgramId.D_BOM] = daemon | (beside & ~tough)
    dead[ProgramId.ANTI_V] = struck[ProgramId.ANTI_V] & ~tough
    nothing = enemies & ~enemies
    boards = [_Board(seen.blocks, enemies, able, viruses, seen.transmissions)]
    counts, kills = [], []
    for program in STRIKES:
        if program in struck:
            hit, gone = struck[program], dead[program]
            crash = program == ProgramId.CRASH
            cleared = around if crash else nothing
            boards.append(
                _Board(
                    seen.blocks & ~cleared,
                    enemies & ~gone,
                    able & ~hit,
                    viruses & ~hit,
                    seen.transmissions & ~cleared,
                )
            )
            counts.append(hit.size())
            kills.append(gone.size() + (seen.transmissions & cleared).size())
        else:
            shifted = _shift(seen.cell, away=program == ProgramId.PUSH)
            boards.append(
                _Board(
                    seen.blocks,
                    shifted(enemies),
                    shifted(able),
                    shifted(viruses),
                    seen.transmissions,
                )
            )
            counts.append(enemies.size())
            kills.append(jnp.zeros_like(seen.cell))
    stacked = _Board(*(_stacked(sets) for sets in zip(*boards, strict=True)))
    return stacked, jnp.stack(counts), jnp.stack(kills)


def _nearest(cell: Array, pieces: CellSet) -> CellSet:
    """The one nearest to a cell by rows and columns, that with the lowest number among equals."""
    here = bitboard.of_cell(cell)

    def widen(_: Array, inside: CellSet) -> CellSet:
        further = inside | neighbours(inside)
        return bitboard.select((pieces & inside).any(), inside, further)

    inside = lax.fori_loop(0, 2 * SIZE - 2, widen, here)
    return (pieces & inside).first()


def _shift(cell: Array, *, away: bool) -> Callable[[CellSet], CellSet]:
    """PUSH and PULL of a set of enemies, as if none were in another's way."""
    here = bitboard.of_cell(cell)
    before, row, col = (
        CellSet.below(cell),
        bitboard.row_cells(bitboard.row_of(cell)),
        bitboard.col_cells(bitboard.col_of(cell)),
    )
    below, above = before & ~row, ~before & ~row
    west = _cols_below(bitboard.col_of(cell))
    east = ~west & ~col
    sides = {
        bitboard.up: above if away else below,
        bitboard.down: below if away else above,
        bitboard.left: west if away else east,
        bitboard.right: east if away else west,
    }

    def shifted(pieces: CellSet) -> CellSet:
        result = pieces & here
        rows = ((bitboard.up, sides[bitboard.up]), (bitboard.down, sides[bitboard.down]))
        cols = ((bitboard.left, sides[bitboard.left]), (bitboard.right, sides[bitboard.right]))
        for to_row, side in rows:
            result = result | _slid(pieces & side & col, to_row, here)
        for to_col, side in cols:
            result = result | _slid(pieces & side & row, to_col, here)
        for to_row, row_side in rows:
            for to_col, col_side in cols:
                part = pieces & row_side & col_side
                by_row = part & _INSIDE[to_row]
                both = by_row & _INSIDE[to_col]
                if away:
                    result = result | to_col(to_row(both)) | to_row(by_row & ~both)
                    rest = part & ~by_row
                    result = result | _slid(rest, to_col, here)
                else:  # next to the player by a corner: the row changes
                    corner = both & _BACK[to_row](_BACK[to_col](here))
                    result = result | to_col(to_row(both & ~corner)) | to_row(corner)
        return result

    return shifted


_BACK = {
    bitboard.up: bitboard.down,
    bitboard.down: bitboard.up,
    bitboard.left: bitboard.right,
    bitboard.right: bitboard.left,
}


_ROWS = {r: bitboard.constant(range(r * SIZE, (r + 1) * SIZE)) for r in (0, SIZE - 1)}
_COLS = {c: bitboard.constant(range(c, CELLS, SIZE)) for c in (0, SIZE - 1)}
_INSIDE = {
    bitboard.up: ~_ROWS[SIZE - 1],
    bitboard.down: ~_ROWS[0],
    bitboard.left: ~_COLS[0],
    bitboard.right: ~_COLS[SIZE - 1],
}


def _slid(pieces: CellSet, direction: Callable[[CellSet], CellSet], here: CellSet) -> CellSet:
    """The pieces moved one cell; those that would leave the board or reach the player stay."""
    moving = pieces & _INSIDE[direction] & ~_BACK[direction](here)
    return direction(moving) | (pieces & ~moving)


def _cols_below(number: Array) -> CellSet:
    """The cells in a column below a number."""
    bits = (jnp.uint32(1) << number.astype(jnp.uint32)) - 1
    word = bits | bits << SIZE | bits << 2 * SIZE
    return CellSet(word, word)


def _shots(
    cells: CellSet, direction: Callable[[CellSet], CellSet], blocks: CellSet, enemies: CellSet
) -> CellSet:
    """The cells in a direction from each of some cells, up to the first block or enemy."""

    def further(_: Array, shots: CellSet) -> CellSet:
        return shots | direction(_and(shots, ~blocks, ~enemies))

    return lax.fori_loop(0, SIZE - 2, further, direction(cells))


def _fewest(boards: _Board, hits: Array, next_to: CellSet, cell: Array) -> Array:
    """int32[V, N]: the fewest hits that a valid direction leads to on each board."""
    results = []
    pieces = boards.enemies | boards.transmissions
    for d, direction in enumerate(bitboard.DIRECTIONS):
        ray = bitboard.ray(cell, direction)
        ray = _both(_each(ray), pieces)[0]
        first = bitboard.up_to_first(ray, boards.blocks | pieces, direction)
        attacks = (first & pieces).any()
        ahead = CellSet(*(word[d][None] for word in next_to))
        free = _and(ahead, ~boards.blocks).any()
        can_go = free | _and(ahead, boards.enemies).any()
        outcome = jnp.where(attacks, hits[:, 0], hits[:, 1 + d])
        results.append(jnp.where(can_go, outcome, MAX_HITS))
    return jnp.minimum(jnp.min(jnp.stack(results), axis=0), MAX_HITS)


def _reached_later(seen: Seen, able: CellSet, viruses: CellSet) -> CellSet:
    """Cells where an enemy may hit in the enemy turn after the coming one."""
    free = ~seen.stops
    glitches = seen.kinds[EnemyType.GLITCH] & able
    all_viruses = seen.kinds[EnemyType.VIRUS]
    walkers = able & ~viruses
    walkers = walkers | (neighbours(walkers) & free)
    walkers = walkers | (neighbours(glitches) & ~seen.enemies & ~seen.transmissions)
    walkers = walkers | (seen.enemies & ~all_viruses) | seen.transmissions
    far = viruses | (neighbours(viruses) & free)
    far = far | (neighbours(far) & free) | all_viruses
    return neighbours(walkers) | neighbours(far) | neighbours(neighbours(far) & free)


def _window(seen: Seen, able: CellSet, viruses: CellSet, reached: CellSet) -> dict[str, Array]:
    rows = bitboard.row_of(seen.cell)[None] + np.array([r for r, _ in WINDOW])[:, None]
    cols = bitboard.col_of(seen.cell)[None] + np.array([c for _, c in WINDOW])[:, None]
    on_board = (rows >= 0) & (rows < SIZE) & (cols >= 0) & (cols < SIZE)
    cells = _only_if(on_board, bitboard.of_cell(rows * SIZE + cols))  # [12, N]
    board = _Board(seen.blocks, seen.enemies, able, viruses, seen.transmissions)
    board = jax.tree.map(lambda word: word[None], board)
    cells = _kept(cells, seen.number)

    def has(which: CellSet) -> Array:
        return _and(cells, _each(which)).any()

    return {
        "cell_blocked": ~on_board | has(seen.blocks),
        **{f"cell_{kind.name.lower()}": has(seen.kinds[kind]) for kind in EnemyType},
        "cell_stunned": has(seen.stunned),
        "cell_hp": sum(has(p) * jnp.int32(1 << b) for b, p in enumerate(seen.hp)),
        "cell_transmission": has(seen.transmissions),
        "cell_hits": jnp.minimum(_hitters(cells, board).size(), MAX_HITS),
        "cell_reached": has(reached),
    }


# --- siphoning and ways --------------------------------------------------------------------------


def _siphoning(seen: Seen) -> dict[str, Array]:
    number, here = seen.number, seen.here
    left = ~seen.siphoned
    open_ = left & ~seen.blocks
    blocks = left & seen.blocks
    question = planes.equal(seen.block, Content.QUESTION) & left
    known = planes.equal(seen.block, Content.PROGRAM) & left
    programs = [cells & known for cells in planes.one_hot(seen.value, len(PROGRAMS))]
    new = [cells.only_if(number["owned"] >> n & 1 == 0) for n, cells in enumerate(programs)]
    any_new = reduce(CellSet.__or__, new)

    way, near = _ways(here, seen.blocks)
    to_siphon, _ = _ways(seen.siphons, seen.blocks)
    rings = planes.one_hot(way, RINGS + 1)[1:]
    new, any_new = _kept((new, any_new), number)
    worth = _over_cross(_worths(seen, new, open_, blocks, question))
    distance = _values(way)
    free = _bits(~seen.blocks).astype(jnp.int16)
    total = jnp.where((distance < FAR) & (free > 0), worth + STEP_WORTH * distance, -999)
    total, worth = _kept((total, worth), number)
    best_worth = jnp.max(total, axis=0)
    best = bitboard.of_mask(total == best_worth).first()
    to_best, _ = _ways(best, seen.blocks)
    to_exit = seen.exit_distance

    def nearer(distances: planes.Numbers[CellSet]) -> Array:
        own = planes.total(distances, here)
        steps = []
        for direction in bitboard.DIRECTIONS:
            there = direction(here) & ~seen.blocks
            closer = jnp.clip(own - planes.total(distances, there), -1, 1)
            steps.append(jnp.where(there.any(), closer, 0))
        return jnp.stack(steps)

    cross = bitboard.cross(here)
    shown = []
    for cells in new:
        first = cells.first()
        shown.append(jnp.where(first.any(), FAR - planes.total(near, first), 0))
    worth_here = jnp.sum(jnp.where(_bits(here) > 0, worth, 0), axis=0)
    to_best_here = planes.total(to_best, here)
    viruses = seen.kinds[EnemyType.VIRUS]
    others = seen.enemies & ~viruses

    def counted(pieces: CellSet) -> Array:
        return jnp.stack([jnp.minimum((pieces & ring).size(), MAX_HITS) for ring in rings])

    return {
        "go_to_exit": nearer(to_exit),
        "go_to_siphon": nearer(to_siphon),
        "go_to_best": nearer(to_best),
        "program_near": jnp.stack(shown),
        "here_credits": planes.total(seen.credits, cross & open_),
        "here_energy": planes.total(seen.energy, cross & open_),
        "here_spawns": planes.total(seen.spawn, cross & blocks),
        "here_questions": (cross & question).size(),
        "here_programs": (cross & any_new).size(),
        "here_worth": jnp.clip(worth_here >> 1, -LARGEST_WORTH, LARGEST_WORTH),
        "best_worth": jnp.clip(best_worth >> 1, -LARGEST_WORTH, LARGEST_WORTH),
        "best_distance": to_best_here,
        "best_here": to_best_here == 0,
        "credits_left": planes.total(seen.credits, open_),
        "energy_left": planes.total(seen.energy, open_),
        "siphons_left": jnp.minimum(seen.siphons.size(), MAX_COUNT),
        "siphon_distance": planes.total(to_siphon, here),
        "exit_distance": planes.total(to_exit, here),
        "walkers_at": counted(others),
        "viruses_at": counted(viruses),
    }


def _worths(
    seen: Seen, new: Sequence[CellSet], open_: CellSet, blocks: CellSet, question: CellSet
) -> Array:
    """int16[36, N]: what siphoning adds to the worth of a place by each cell."""
    programs = tuple(
        reduce(CellSet.__or__, [c for c, w in zip(new, PROGRAM_WORTH, strict=True) if w >> b & 1])
        for b in range(max(PROGRAM_WORTH).bit_length())
    )
    sums = _values(programs)
    for weight, numbers, cells in (
        (CREDIT_WORTH, seen.credits, open_),
        (ENERGY_WORTH, seen.energy, open_),
        (SPAWN_WORTH, seen.spawn, blocks),
        (QUESTION_WORTH, (question,), question),
    ):
        sums += weight * _values(tuple(plane & cells for plane in numbers))
    return sums


def _values(numbers: planes.Numbers[CellSet]) -> Array:
    """int16[36, N]: a number for each cell."""
    values = sum(_bits(plane) << b for b, plane in enumerate(numbers))
    return jnp.asarray(values, jnp.int16)


_DISTANCE_PLANES = FAR.bit_length()


def _ways(
    start: CellSet, blocks: CellSet
) -> tuple[planes.Numbers[CellSet], planes.Numbers[CellSet]]:
    """Steps from a set of cells over cells without block, at most `FAR`.

    Returns:
        The steps to each cell, and the fewest steps to a cell of its cross.
    """
    none = start & ~start
    zero = (none,) * _DISTANCE_PLANES

    def further(_: Array, carry: Any) -> Any:
        reached, way, near = carry
        way = planes.increment(way, ~reached)
        near = planes.increment(near, ~bitboard.cross(reached))
        return bitboard.flood_step(reached, ~blocks), way, near

    _, way, near = lax.fori_loop(0, FAR, further, (start, zero, zero))
    return way, near


def _over_cross(table: Array) -> Array:
    """The sums over the cross of each cell of an array [36, N]."""
    square = table.reshape(SIZE, SIZE, -1)
    padded = jnp.pad(square, [(1, 1), (1, 1), (0, 0)])
    views = [
        padded[rows : rows + SIZE, cols : cols + SIZE]
        for rows, cols in ((2, 1), (0, 1), (1, 0), (1, 2))
    ]
    return sum(views, square).reshape(table.shape)


# --- pieces and numbers --------------------------------------------------------------------------


def _pieces(seen: Seen) -> dict[str, Array]:
    def count(cells: CellSet) -> Array:
        return jnp.minimum(cells.size(), MAX_COUNT)

    return {
        "enemies": jnp.stack([count(kind) for kind in seen.kinds]),
        "stunned": count(seen.stunned),
        "hidden": count(seen.last_seen),
        "transmissions": count(seen.transmissions),
        "empty_of_pieces": ~(seen.enemies | seen.transmissions).any(),
    }


def _numbers(seen: Seen) -> dict[str, Array]:
    number = seen.number

    def at_least(name: str, bounds: Sequence[int]) -> Array:
        return number[name][None] >= np.array(bounds)[:, None]

    def one_hot(values: Array, numbers: range) -> Array:
        return values[None] == np.array(numbers)[:, None]

    return {
        "hp": one_hot(number["hp"], range(1, MAX_HP + 1)),
        "siphons": at_least("siphons", (1, 2, 3)),
        "attack": at_least("attack", (2, 3, 4)),
        "credits": jnp.minimum(number["credits"], 60),
        "energy": jnp.minimum(number["energy"], 60),
        "has_credits": at_least("credits", HOARDS),
        "has_energy": at_least("energy", HOARDS),
        "stage": one_hot(number["stage"], range(1, LAST_STAGE + 1)),
        "turn": jnp.minimum(number["turn"], 80),
        "until_task": jnp.clip(number["next_task"] - number["turn"], -1, 24),
        "interval": jnp.minimum(number["interval"], 24),
        "pending": jnp.minimum(number["pending"], 18),
        "saved": number["saved"],
        "atk_uses": number["atk_uses"],
        "flags": jnp.stack([number[name] for name in ("show", "calm", "step")]),
        "line": jnp.concatenate(
            [
                one_hot(bitboard.row_of(seen.cell), range(SIZE)),
                one_hot(bitboard.col_of(seen.cell), range(SIZE)),
            ]
        ),
    }
