"""Makes up whole games that look to the player exactly as a given observation.

An observation leaves open how the dice will fall, what is in question blocks, what transmissions
will become and where cryptogs hide. Here all that is drawn anew. As nothing but the observation and
fresh dice goes in, a search on these games can't know more than the player.

What the player could remember, but an observation does not hold, is left out: the positions saved
for UNDO, turns of a transmission beyond 4, the order of the pieces in their lists, which of them
came from scheduled spawns, and what else stands on the cell of an enemy.
"""

from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.jaxgame import bitboard, planes, undo
from hackmatrix.jaxgame.bitboard import (
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
from hackmatrix.jaxgame.control_flow import for_all, repeat, where
from hackmatrix.jaxgame.dice import Dice, draw
from hackmatrix.jaxgame.planes import Coordinates, Numbers
from hackmatrix.jaxgame.state import (
    NUM_PLANES,
    Cells,
    Ending,
    Enemies,
    Player,
    Position,
    State,
    Transmissions,
    zeros,
)
from hackmatrix.rules.board import CELLS, MAX_POINTS, SIZE
from hackmatrix.rules.chance import Site
from hackmatrix.rules.observation import FIELD, PLANE, CellBytes, number_of
from hackmatrix.rules.programs import PROGRAMS

Array = jax.Array
_Tree = TypeVar("_Tree")

_STRAYS = 2  # a hidden cryptog is at most so many steps from where it was last seen
_SPAWN = np.array([program.spawn for program in PROGRAMS], np.int32)
_EVERY_PROGRAM = np.uint32((1 << len(PROGRAMS)) - 1)


def _cells_with_bit(axis: int, bit: int) -> CellSet:
    return bitboard.constant(c for c in range(CELLS) if divmod(c, SIZE)[axis] >> bit & 1)


_ROWS = tuple(_cells_with_bit(0, bit) for bit in range(NUM_PLANES["row"]))
_COLS = tuple(_cells_with_bit(1, bit) for bit in range(NUM_PLANES["col"]))


def imagined(records: Array, dice: Dice) -> State:
    """N running games that look like these observations.

    Args:
        records: uint8[N, RECORD_SIZE], the observations.
        dice: uint32[N] each, the dice of the games. What the observations leave open is drawn from
            them too: their clock should be 0, at which no action is ever taken.
    """
    seen = _Seen(records)
    turn, owned = seen.number("turn"), seen.number("owned").astype(jnp.uint32)
    cells = _cells(seen, dice)
    enemies, enemies_at = _enemies(seen, dice)
    player = ("cell", "hp", "credits", "energy", "siphons", "attack", "score")
    position = Position(
        player=Player(**{name: seen.number(name) for name in player}),
        cells=cells,
        enemies=enemies,
        transmissions=_transmissions(seen, dice),
        owned=owned,
        acquired=_acquired(owned),
        turn=turn,
        show=seen.flag("show"),
        calm=seen.flag("calm"),
        atk_uses=seen.number("atk_uses"),
    )
    state = State(
        **{f.name: getattr(position, f.name) for f in fields(Position)},
        dice=dice,
        exit=bitboard.lowest(seen.cells("exit")),
        stage=seen.number("stage"),
        interval=seen.number("interval"),
        next_task=seen.number("next_task"),
        pending=seen.number("pending"),
        step=seen.flag("step"),
        enemies_at=enemies_at,
        transmissions_at=seen.cells("transmission"),
        saved=undo.none_saved(position, turn.shape),
        over=jnp.int32(Ending.RUNNING),
    )
    rows = state.saved.rows
    return undo.with_rows(for_all(undo.without_rows(state), like=turn), rows)


class _Seen:
    """Reads N observations: numbers, and fields of the cells as sets."""

    def __init__(self, records: Array) -> None:
        columns = records.T
        self._records = records
        self._bytes = CellBytes(*(columns[start : start + CELLS] for start in PLANE.values()))

    def number(self, name: str) -> Array:
        """int32[N]."""
        number: Array = number_of(self._records, name)
        return number

    def flag(self, name: str) -> Array:
        """bool[N]."""
        return self.number(name) & 1 == 1

    def planes(self, name: str) -> Numbers[CellSet]:
        """A field of the cells, a set for each of its bits."""
        field = FIELD[name]
        byte = getattr(self._bytes, field.byte)
        bits = range(field.first, field.first + field.width)
        return tuple(bitboard.of_mask((byte >> bit) & 1) for bit in bits)

    def cells(self, name: str) -> CellSet:
        """A field of one bit."""
        (cells,) = self.planes(name)
        return cells


def _acquired(owned: Array) -> Numbers[Set32]:
    """The owned programs in the order of their numbers."""
    numbers = range(NUM_PLANES["acquired"])
    masks = [sum(1 << n for n in range(len(PROGRAMS)) if n >> bit & 1) for bit in numbers]
    all_bits = tuple(Set32(jnp.full_like(owned, mask)) for mask in masks)
    return planes.compressed(all_bits, Set32(owned))


# --- the board -----------------------------------------------------------------------------------


def _cells(seen: _Seen, dice: Dice) -> Cells:
    """The board, with question blocks filled."""
    low, high = seen.planes("block")
    questions = low & high
    board = Cells(
        blocks=low | high,
        data=low & ~high,
        questions=questions,
        siphons=seen.cells("data_siphon"),
        siphoned=seen.cells("siphoned"),
        center=seen.cells("center"),
        credits=seen.planes("credits"),
        energy=seen.planes("energy"),
        value=seen.planes("value")[: NUM_PLANES["value"]],
        spawn=seen.planes("spawn")[: NUM_PLANES["spawn"]],
    )
    shown = board.blocks & ~board.data & ~questions
    absent = _EVERY_PROGRAM & ~_numbers_of(board.value, shown)

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
_Filling = tuple[CellSet, CellSet, Numbers[CellSet], Numbers[CellSet], Array]


def _numbers_of(values: Numbers[CellSet], blocks: CellSet) -> Array:
    """uint32: bit n is set if one of these blocks holds program n."""
    held = [(cells & blocks).any() for cells in planes.one_hot(values, len(PROGRAMS))]
    bits = [has.astype(jnp.uint32) << np.uint32(number) for number, has in enumerate(held)]
    return reduce(jnp.bitwise_or, bits)


# --- the pieces ----------------------------------------------------------------------------------


def _transmissions(seen: _Seen, dice: Dice) -> Transmissions:
    at, show = seen.cells("transmission"), seen.flag("show")
    like = seen.number("turn")
    turns, kinds, rows, cols = planes.compressed(
        (seen.planes("turns"), _minus_one(seen.planes("coming_type"), at), *_places(like)), at
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
            bitboard.select(show, known, guess) for known, guess in zip(kinds, guesses, strict=True)
        ),
        from_schedule=NOWHERE,
        from_siphon=NOWHERE,
    )


def _enemies(seen: _Seen, dice: Dice) -> tuple[Enemies, CellSet]:
    """The enemies in sight by their cells, then hidden cryptogs; and the cells of all."""
    like = seen.number("turn")
    low, high = seen.planes("enemies_seen")
    seen_at, kind = low | high, seen.planes("enemy_type")
    known = planes.nonzero(kind)
    hp, more_hp = seen.planes("enemy_hp")
    facts = _Facts(
        type=_minus_one(kind, known),
        hp=(hp, more_hp | (seen_at & ~known)),
        stunned=seen.cells("stunned"),
        from_siphon=seen.cells("from_siphon"),
        place=_places(like),
    )
    second, third = high, low & high  # which look like the first on their cells
    listed, count = _listed(facts, seen_at, jnp.zeros_like(like)), seen_at.size()
    listed, count = _both(listed, _listed(facts, second, count)), count + second.size()
    listed, count = _both(listed, _listed(facts, third, count)), count + third.size()
    hidden = _hidden(seen, dice, count, seen_at)
    cell = Coordinates(*listed.place)
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
    return enemies, seen_at | hidden.taken


class _Facts(NamedTuple):
    """The facts of enemies in sight: sets of cells, or of slots in the list."""

    type: tuple[Any, ...]
    hp: tuple[Any, ...]
    stunned: Any
    from_siphon: Any
    place: tuple[Any, Any]  # planes of row and column


def _listed(facts: _Facts, members: CellSet, first: Array) -> _Facts:
    """The facts of the enemies on some cells, in slots from `first` on."""
    return jax.tree.map(
        lambda cells: cells.to_set32().shifted(first),
        planes.compressed(facts, members),
        is_leaf=planes.is_set,
    )


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class _Hidden:
    """Hidden cryptogs that have got a place."""

    count: Array  # int32, enemies in all
    slots: EnemySet
    cell: Coordinates[EnemySet]
    last: Coordinates[EnemySet]
    taken: CellSet  # their cells


def _hidden(seen: _Seen, dice: Dice, count: Array, seen_at: CellSet) -> _Hidden:
    """Puts hidden cryptogs near where they were last seen, out of the player's row and column."""
    here, last_seen = seen.number("cell"), seen.cells("last_seen")
    ground = ~planes.nonzero(seen.planes("block"))
    in_sight = bitboard.row_cells(row_of(here)) | bitboard.col_cells(col_of(here))
    free = ground & ~(seen_at | seen.cells("transmission") | in_sight)

    def place(i: Array, carry: tuple[CellSet, _Hidden]) -> tuple[CellSet, _Hidden]:
        left, so_far = carry
        last = left.first()
        near = last
        for _ in range(_STRAYS):
            near = flood_step(near, ground)
        options = free & ~so_far.taken
        options = bitboard.select((options & near).any(), options & near, options)
        cell = bitboard.nth(options, dice.choose(Site.SPAWN_CELL, options.size(), i))
        exists = last.any() & options.any()
        slot = EnemySet.of_slot(so_far.count).only_if(exists)
        return left & ~last, _Hidden(
            count=so_far.count + exists,
            slots=so_far.slots | slot,
            cell=so_far.cell.moved(slot, cell),
            last=so_far.last.moved(slot, bitboard.lowest(last)),
            taken=so_far.taken | of_cell(cell).only_if(exists),
        )

    none = Enemies.none()
    start = last_seen, _Hidden(count, NOBODY, none.cell, none.last, NOWHERE)
    return repeat(last_seen.size(), place, start)[1]


def _places(like: Array) -> tuple[Numbers[CellSet], Numbers[CellSet]]:
    """Row and column of each cell."""
    return for_all((_ROWS, _COLS), like)


def _minus_one(kinds: Numbers[CellSet], known: CellSet) -> Numbers[CellSet]:
    """Enemy types from types plus 1, which take a plane more."""
    return planes.decrement(kinds, known)[: NUM_PLANES["type"]]


def _both(old: _Tree, new: _Tree) -> _Tree:
    """The unions of the sets in two trees."""
    return jax.tree.map(lambda a, b: a | b, old, new, is_leaf=planes.is_set)
