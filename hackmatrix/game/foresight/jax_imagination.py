"""Makes up whole games that look to the player exactly as a given observation.

An observation leaves open how the dice will fall, what is in question blocks, what transmissions
will become and where cryptogs hide. Here all that is drawn anew. As nothing but observations and
fresh dice goes in, a search on these games can't know more than the player.

The positions that are saved for UNDO are made up likewise, from what the player remembers to have
seen there (`environments/hackmatrix/imagination.py`). What else it could remember is left out:
turns of a transmission beyond 4, the order of the pieces in their lists, which of them came from
scheduled spawns, and what else stands on the cell of an enemy.
"""

from dataclasses import dataclass, fields, replace
from functools import reduce
from operator import or_
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.game.foresight.jax_board import ground
from hackmatrix.game.jaxgame import bitboard, planes, undo
from hackmatrix.game.jaxgame.bitboard import (
    NOBODY,
    NOWHERE,
    CellSet,
    EnemySet,
    Set32,
    col_of,
    flood_step,
    of_cell,
    row_of,
)
from hackmatrix.game.jaxgame.control_flow import for_all, repeat, repeat_while, where
from hackmatrix.game.jaxgame.dice import Dice, draw
from hackmatrix.game.jaxgame.planes import BitPlanes, Coordinates
from hackmatrix.game.jaxgame.records import Records
from hackmatrix.game.jaxgame.state import (
    NUM_PLANES,
    Cells,
    Ending,
    Enemies,
    Player,
    Position,
    SavedPositions,
    State,
    Transmissions,
    zeros,
)
from hackmatrix.game.rules.board import CELLS, MAX_POINTS, SIZE
from hackmatrix.game.rules.chance import Site
from hackmatrix.game.rules.programs import PROGRAMS

Array = jax.Array

_SPAWN = np.array([program.spawn for program in PROGRAMS], np.int32)
_EVERY_PROGRAM = np.uint32((1 << len(PROGRAMS)) - 1)


def imagine(
    records: Array, remembered: Array, saved: Array, streams: Array, episodes: Array
) -> State:
    """N running games that look like these observations.

    Args:
        records: uint8[N, RECORD_SIZE], the observations.
        remembered: uint8[N, 4, RECORD_SIZE], those to which UNDO would lead back, the newest last.
        saved: int32[N], how many of them there are; the first 4 - saved are meaningless.
        streams: uint32[N], of the games' dice. What the observations leave open is drawn from them
            too: at clock 0, at which no action is ever taken.
        episodes: uint32[N], likewise.
    """
    visible, dice = Records(records), Dice(streams, episodes, jnp.zeros_like(streams))
    position, enemies_at = _position(visible, dice)
    turn = position.turn
    state = State(
        **{f.name: getattr(position, f.name) for f in fields(Position)},
        dice=dice,
        exit=bitboard.lowest(visible.cells("exit")),
        stage=visible.scalar("stage"),
        interval=visible.scalar("interval"),
        next_task=visible.scalar("next_task"),
        pending=visible.scalar("pending"),
        step=visible.flag("step"),
        enemies_at=enemies_at,
        transmissions_at=visible.cells("transmission"),
        saved=_saved(remembered, saved, dice),
        over=jnp.int32(Ending.RUNNING),
    )
    rows = state.saved.rows
    return undo.with_rows(for_all(undo.without_rows(state), like=turn), rows)


def _saved(remembered: Array, saved: Array, dice: Dice) -> SavedPositions:
    """The positions saved for UNDO, as the player remembers to have seen them."""
    games, slots, size = remembered.shape
    dice_of_each = Dice(*(jnp.repeat(part, slots) for part in dice))
    position, _ = _position(Records(remembered.reshape(-1, size)), dice_of_each)
    leaves = undo.snapshot(for_all(position, like=position.turn))
    rows = jnp.stack(leaves, axis=-1).reshape(games, slots, -1)
    return SavedPositions(rows, count=saved, newest=jnp.int32(slots - 1))


def _position(visible: Records, dice: Dice) -> tuple[Position, CellSet]:
    """The position that is seen, and the cells of its enemies."""
    owned = visible.scalar("owned").astype(jnp.uint32)
    cells = _cells(visible, dice)
    enemies, enemies_at = enemies_of(visible, dice)
    player = ("cell", "hp", "credits", "energy", "siphons", "attack", "score")
    return Position(
        player=Player(**{name: visible.scalar(name) for name in player}),
        cells=cells,
        enemies=enemies,
        transmissions=transmissions_of(visible, dice),
        owned=owned,
        acquired=_acquired(owned),
        turn=visible.scalar("turn"),
        show=visible.flag("show"),
        calm=visible.flag("calm"),
        atk_uses=visible.scalar("atk_uses"),
    ), enemies_at


def _acquired(owned: Array) -> BitPlanes[Set32]:
    """The owned programs in the order of their numbers."""
    bits = range(NUM_PLANES["acquired"])
    masks = [sum(1 << n for n in range(len(PROGRAMS)) if n >> bit & 1) for bit in bits]
    all_bits = tuple(Set32(jnp.full_like(owned, mask)) for mask in masks)
    return planes.compress(all_bits, Set32(owned))


def _cells(visible: Records, dice: Dice) -> Cells:
    """The board, with question blocks filled."""
    board = ground(visible)
    questions = board.questions
    shown = board.blocks & ~board.data & ~questions
    absent = _EVERY_PROGRAM & ~_programs_of(board.value, shown)

    # As `stage.place_blocks` fills a block that it has drawn.
    def fill(i: Array, carry: _Filling) -> _Filling:
        left, data, value, spawn, absent = carry
        here = left.first()
        is_data = dice.choose(Site.BLOCK_IS_DATA, 2, i) == 0
        points = 1 + dice.choose(Site.BLOCK_POINTS, MAX_POINTS, i)
        options = jax.lax.population_count(absent).astype(jnp.int32)
        program = bitboard.nth_bit(absent, dice.choose(Site.BLOCK_PROGRAM, options, i))
        takes = here.any() & ~is_data
        return (
            left & ~here,
            data | here.only_if(is_data),
            planes.put(value, here, where(is_data, points, program)),
            planes.put(spawn, here, where(is_data, points, jnp.asarray(_SPAWN)[program])),
            absent & ~where(takes, jnp.uint32(1) << program.astype(jnp.uint32), 0),
        )

    start = questions, board.data, board.value, board.spawn, absent
    _, data, value, spawn, _ = repeat(questions.size(), fill, start)
    return replace(board, data=data, value=value, spawn=spawn)


# The question blocks still to be filled; data, value and spawn so far; programs not on the board.
_Filling = tuple[CellSet, CellSet, BitPlanes[CellSet], BitPlanes[CellSet], Array]


def _programs_of(values: BitPlanes[CellSet], blocks: CellSet) -> Array:
    """uint32: bit n is set if one of these blocks holds program n."""
    held = [(cells & blocks).any() for cells in planes.one_hot(values, len(PROGRAMS))]
    bits = [has.astype(jnp.uint32) << np.uint32(program) for program, has in enumerate(held)]
    return reduce(jnp.bitwise_or, bits)


# --- Enemies and transmissions as an observation shows them, and guesses at what it hides ---------


_Tree = TypeVar("_Tree")

_STRAYS = 2  # steps from where a cryptog was last seen, if no cell on its way is hidden


def _cells_with_bit(axis: int, bit: int) -> CellSet:
    return bitboard.constant(c for c in range(CELLS) if divmod(c, SIZE)[axis] >> bit & 1)


_ROWS = tuple(_cells_with_bit(0, bit) for bit in range(NUM_PLANES["row"]))
_COLS = tuple(_cells_with_bit(1, bit) for bit in range(NUM_PLANES["col"]))
_OPPOSITES = bitboard.down, bitboard.up, bitboard.right, bitboard.left  # of `DIRECTIONS`


def transmissions_of(visible: Records, dice: Dice) -> Transmissions:
    """The transmissions; unless SHOW is on, any of the four types comes with equal chance."""
    at, show = visible.cells("transmission"), visible.flag("show")
    like = visible.scalar("turn")
    turns, types, rows, cols = planes.compress(
        (
            visible.planes("turns"),
            _minus_one(visible.planes("coming_type"), at),
            *_coordinates(like),
        ),
        at,
    )
    alive = CellSet.below(at.size())
    drawn = [
        [draw(*dice, Site.SPAWN_TYPE, 2 * bit + half) for half in range(2)]
        for bit in range(NUM_PLANES["type"])
    ]
    guesses = tuple(CellSet(*words) & alive for words in drawn)
    unknown = zeros("turns", NOWHERE)[len(turns) :]
    return Transmissions(
        count=at.size(),
        cell=Coordinates(rows, cols),
        turns=for_all((*turns, *unknown), like),
        type=tuple(
            bitboard.select(show, shown, guess) for shown, guess in zip(types, guesses, strict=True)
        ),
        from_schedule=NOWHERE,
        from_siphon=NOWHERE,
    )


def enemies_of(visible: Records, dice: Dice) -> tuple[Enemies, CellSet]:
    """The enemies in sight by their cells, then hidden cryptogs; and the cells of all."""
    like = visible.scalar("turn")
    low, high = visible.planes("enemies_seen")
    seen_at, type_plus_one = low | high, visible.planes("enemy_type")
    typed = planes.nonzero(type_plus_one)
    hp, more_hp = visible.planes("enemy_hp")
    facts = _Facts(
        type=_minus_one(type_plus_one, typed),
        hp=(hp, more_hp | (seen_at & ~typed)),
        stunned=visible.cells("stunned"),
        from_siphon=visible.cells("from_siphon"),
        coordinates=_coordinates(like),
    )
    second, third = high, low & high  # which look like the first on their cells
    listed, count = _listed(facts, seen_at, jnp.zeros_like(like)), seen_at.size()
    listed, count = _both(listed, _listed(facts, second, count)), count + second.size()
    listed, count = _both(listed, _listed(facts, third, count)), count + third.size()
    hidden = _hidden(visible, dice, count, seen_at)
    cell = Coordinates(*listed.coordinates)
    enemies = Enemies(
        count=hidden.count,
        cell=_both(cell, hidden.cell),
        type=tuple(plane | hidden.slots for plane in listed.type),  # cryptogs have the last type
        hp=(listed.hp[0], listed.hp[1] | hidden.slots),
        disabled=zeros("disabled", NOBODY),
        stunned=listed.stunned,
        from_schedule=NOBODY,
        from_siphon=listed.from_siphon,
        last=_both(cell, hidden.last),
    )
    return enemies, seen_at | hidden.occupied


class _Facts(NamedTuple):
    """The facts of enemies in sight: sets of cells, or of slots in the list."""

    type: tuple[Any, ...]
    hp: tuple[Any, ...]
    stunned: Any
    from_siphon: Any
    coordinates: tuple[Any, Any]  # planes of row and column


def _listed(facts: _Facts, members: CellSet, first: Array) -> _Facts:
    """The facts of the enemies on some cells, in slots from `first` on."""
    return jax.tree.map(
        lambda cells: cells.to_set32().shifted(first),
        planes.compress(facts, members),
        is_leaf=planes.is_set,
    )


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class _Hidden:
    """Hidden cryptogs that have got a cell."""

    count: Array  # int32, enemies in all
    slots: EnemySet
    cell: Coordinates[EnemySet]
    last: Coordinates[EnemySet]
    occupied: CellSet  # their cells


def _hidden(visible: Records, dice: Dice, count: Array, seen_at: CellSet) -> _Hidden:
    """Puts hidden cryptogs on their way from where they were last seen, out of the player's sight.

    If no cell on it is free, near where it was, else anywhere out of the player's row and column.
    """
    here, last_seen = visible.scalar("cell"), visible.cells("last_seen")
    ground = ~planes.nonzero(visible.planes("block"))
    in_sight = bitboard.row_cells(row_of(here)) | bitboard.col_cells(col_of(here))
    free = ground & ~(seen_at | visible.cells("transmission") | in_sight)
    steps = _steps(here, ground)

    def put(i: Array, carry: tuple[CellSet, _Hidden]) -> tuple[CellSet, _Hidden]:
        left, so_far = carry
        last = left.first()
        near = last
        for _ in range(_STRAYS):
            near = flood_step(near, ground)
        options = anywhere = free & ~so_far.occupied
        for likely in (near, _way(last, steps, in_sight)):
            there = anywhere & likely
            options = bitboard.select(there.any(), there, options)
        cell = bitboard.nth(options, dice.choose(Site.SPAWN_CELL, options.size(), i))
        exists = last.any() & options.any()
        slot = EnemySet.of_slot(so_far.count).only_if(exists)
        return left & ~last, _Hidden(
            count=so_far.count + exists,
            slots=so_far.slots | slot,
            cell=so_far.cell.moved(slot, cell),
            last=so_far.last.moved(slot, bitboard.lowest(last)),
            occupied=so_far.occupied | of_cell(cell).only_if(exists),
        )

    none = Enemies.none()
    start = last_seen, _Hidden(count, NOBODY, none.cell, none.last, NOWHERE)
    return repeat(last_seen.size(), put, start)[1]


def _steps(here: Array, ground: CellSet) -> tuple[CellSet, ...]:
    """The cells from which an enemy alone goes up, down, left and right to a cell (section 5)."""

    def spread(carry: _Spread) -> _Spread:
        frontier, reached, steps = carry
        new, new_steps = NOWHERE, []
        for opposite, step in zip(_OPPOSITES, steps, strict=True):
            from_here = opposite(frontier) & ~(reached | new)
            new |= from_here
            new_steps.append(step | from_here)
        return new & ground, reached | new, tuple(new_steps)

    start = of_cell(here)
    carry: _Spread = for_all((start & ground, start, (NOWHERE,) * 4), here)
    return repeat_while(lambda carry: carry[0].any(), spread, carry)[2]


_Spread = tuple[CellSet, CellSet, tuple[CellSet, ...]]  # the new cells, all of them, `_steps`


def _way(last: CellSet, steps: tuple[CellSet, ...], in_sight: CellSet) -> CellSet:
    """The cells from one on that an enemy passes by these steps out of the player's sight."""

    def walk(carry: tuple[CellSet, CellSet]) -> tuple[CellSet, CellSet]:
        at, way = carry
        moved = [go(at & step) for go, step in zip(bitboard.DIRECTIONS, steps, strict=True)]
        at = reduce(or_, moved) & ~in_sight
        return at, way | at

    return repeat_while(lambda carry: carry[0].any(), walk, (last, last))[1]


def _coordinates(like: Array) -> tuple[BitPlanes[CellSet], BitPlanes[CellSet]]:
    """Row and column of each cell."""
    return for_all((_ROWS, _COLS), like)


def _minus_one(types: BitPlanes[CellSet], typed: CellSet) -> BitPlanes[CellSet]:
    """Enemy types from types plus 1, which take a plane more."""
    return planes.decrement(types, typed)[: NUM_PLANES["type"]]


def _both(old: _Tree, new: _Tree) -> _Tree:
    """The unions of the sets in two trees."""
    return jax.tree.map(lambda a, b: a | b, old, new, is_leaf=planes.is_set)
