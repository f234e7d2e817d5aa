"""Makes up whole games that look to the player exactly as a given observation.

An observation leaves open how the dice will fall, what is in question blocks, what transmissions
will become and where cryptogs hide. Here all that is drawn anew. As nothing but observations and
fresh dice goes in, a search on these games can't know more than the player.

The positions that are saved for UNDO are made up likewise, from what the player remembers to have
seen there (`environments/hackmatrix/undo_history.py`). What else it could remember is left out:
turns of a transmission beyond 4, the order of the pieces in their lists, which of them came from
scheduled spawns, and what else stands on the cell of an enemy.
"""

from dataclasses import fields, replace
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.game.foresight.jax_board import ground
from hackmatrix.game.foresight.jax_imagination_pieces import enemies_of, transmissions_of
from hackmatrix.game.jaxgame import bitboard, planes, undo
from hackmatrix.game.jaxgame.bitboard import CellSet, Set32
from hackmatrix.game.jaxgame.control_flow import for_all, repeat, where
from hackmatrix.game.jaxgame.dice import Dice
from hackmatrix.game.jaxgame.planes import BitPlanes
from hackmatrix.game.jaxgame.records import Records
from hackmatrix.game.jaxgame.state import (
    NUM_PLANES,
    Cells,
    Ending,
    Player,
    Position,
    SavedPositions,
    State,
)
from hackmatrix.game.rules.board import MAX_POINTS
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
