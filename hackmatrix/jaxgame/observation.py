"""Section 12: what the player can see, as a compact record and as float features."""

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.jaxgame.bitboard import of_cell, to_mask
from hackmatrix.jaxgame.loops import repeat
from hackmatrix.jaxgame.movement import exit_distances
from hackmatrix.jaxgame.spawning import line_of_fire
from hackmatrix.jaxgame.state import State, seen
from hackmatrix.rules.board import CELLS, MAX_POINTS, MAX_RESOURCE, SIZE, Content
from hackmatrix.rules.enemies import EnemyType
from hackmatrix.rules.observation import (
    BYTE,
    CELL,
    ENEMY,
    MAX_DISTANCE,
    MAX_SEEN,
    MAX_TURNS,
    OWNED,
    RESOURCE,
    SPAWN,
    TRANSMISSION,
    VALUE,
    WORD,
    WORDS,
)
from hackmatrix.rules.programs import MAX_ATK_USES, MAX_SAVED_STATES, PROGRAMS
from hackmatrix.rules.stages import FIRST_INTERVAL, LAST_STAGE, MAX_HP

_CELLS = np.arange(CELLS)
_NUMBERS = np.arange(len(PROGRAMS))
_CREDITS = np.array([program.credits for program in PROGRAMS])
_ENERGY = np.array([program.energy for program in PROGRAMS])


def observe(state: State) -> jax.Array:
    """uint8[RECORD_SIZE]: the compact record, as `rules.observation` lays it out."""
    enemies, count = enemy_planes(state)
    value, spawn = block_planes(state)
    planes = [
        enemies,
        transmission_plane(state) | to_mask(line_of_fire(state)).astype(jnp.int32) << 7,
        cell_plane(state) | count << 6,
        resource_plane(state),
        value,
        spawn,
    ]
    numbers = [*_bytes(state), *_words(state), *_owned_bytes(state)]
    return jnp.concatenate([*planes, jnp.stack(numbers)]).astype(jnp.uint8)


def _bytes(state: State) -> list[jax.Array]:
    flags = state.show + state.calm * 2 + state.step * 4
    player = state.player
    return [player.cell, player.hp, state.stage, flags, state.atk_uses, state.saved_count]


def _words(state: State) -> list[jax.Array]:
    player = state.player
    numbers = [getattr(player if hasattr(player, name) else state, name) for name in WORDS]
    return [byte for number in numbers for byte in (number & 0xFF, number >> 8)]


def _owned_bytes(state: State) -> list[jax.Array]:
    return [((state.owned >> shift) & 0xFF).astype(jnp.int32) for shift in (0, 8, 16)]


def enemy_planes(state: State) -> tuple[jax.Array, jax.Array]:
    """int32[36] twice: the ENEMY plane, and how many enemies are seen on each cell (at most 3).

    The first enemy in the list stands for all on its cell; a hidden cryptog hides the others.
    """
    enemies, visible = state.enemies, seen(state)
    bits = jnp.where(
        visible,
        enemies.type + 1 + enemies.hp * 8 + enemies.stunned * 32 + enemies.from_siphon * 64,
        0,
    ).astype(jnp.int32)
    hidden = enemies.alive & ~visible

    def add(
        i: jax.Array, carry: tuple[jax.Array, jax.Array, jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        plane, taken, count, last_seen = carry
        here = (enemies.cell[i] == _CELLS) & (i < enemies.count)
        plane = jnp.where(here & ~taken, bits[i], plane)
        count += here & visible[i]
        last_seen |= (enemies.last[i] == _CELLS) & hidden[i]
        return plane, taken | here, count, last_seen

    nothing, nowhere = jnp.zeros(CELLS, jnp.int32), jnp.zeros(CELLS, jnp.bool)
    plane, _, count, last_seen = repeat(enemies.count, add, (nothing, nowhere, nothing, nowhere))
    return plane | last_seen.astype(jnp.int32) << 7, jnp.minimum(count, MAX_SEEN)


def transmission_plane(state: State) -> jax.Array:
    """int32[36]: whether one comes, when, and after SHOW what."""
    coming = state.transmissions
    turns = jnp.clip(coming.turns, 0, MAX_TURNS).astype(jnp.int32)
    shown = jnp.where(state.show, coming.type.astype(jnp.int32) + 1, 0)
    bits = jnp.where(coming.alive, 1 | turns << 1 | shown << 4, 0)

    def add(i: jax.Array, plane: jax.Array) -> jax.Array:
        return plane | jnp.where((coming.cell[i] == _CELLS) & (i < coming.count), bits[i], 0)

    return repeat(coming.count, add, jnp.zeros(CELLS, jnp.int32))


def cell_plane(state: State) -> jax.Array:
    """int32[36]: what the cells hold, and their marks."""
    cells = state.cells
    sets = (cells.siphoned, cells.center, cells.siphons, of_cell(state.exit))
    plane = _seen_blocks(state)
    for bit, cells_in in enumerate(sets, start=2):
        plane |= to_mask(cells_in).astype(jnp.int32) << bit
    return plane


def _seen_blocks(state: State) -> jax.Array:
    """int32[36]: 1 data, 2 program, 3 question, 0 no block."""
    cells = state.cells
    question = cells.questions & ~cells.siphoned
    is_data = to_mask(cells.data & ~question).astype(jnp.int32) * Content.DATA
    program = cells.blocks & ~cells.data & ~question
    is_program = to_mask(program).astype(jnp.int32) * Content.PROGRAM
    return is_data + is_program + to_mask(question).astype(jnp.int32) * Content.QUESTION


def resource_plane(state: State) -> jax.Array:
    """int32[36]: credits and energy, hidden under unsiphoned blocks, and exit distances."""
    cells = state.cells
    shown = to_mask(~cells.blocks | cells.siphoned)
    resource = jnp.where(shown, cells.credits + cells.energy * 4, 0).astype(jnp.int32)
    return resource | exit_distances(state.exit, cells.blocks, state.player.cell) << 4


def block_planes(state: State) -> tuple[jax.Array, jax.Array]:
    """int32[36] twice: points or program, and spawn counts; hidden on question blocks."""
    block = _seen_blocks(state)
    shown = (block != 0) & (block != Content.QUESTION)
    value = jnp.where(shown, state.cells.value, 0).astype(jnp.int32)
    return value, jnp.where(shown, state.cells.spawn, 0).astype(jnp.int32)


def features(record: jax.Array, layout: str) -> jax.Array:
    """float32[1545] or float32[1946]: the features of a record.

    Args:
        record: uint8[RECORD_SIZE].
        layout: "classic" or "full".
    """
    record = record.astype(jnp.int32)
    parts = [player_features(record), owned_features(record), cell_features(record)]
    if layout == "full":
        parts += [extra_cell_features(record), extra_features(record)]
    return jnp.concatenate([part.reshape(-1).astype(jnp.float32) for part in parts])


def _plane(record: jax.Array, start: int) -> jax.Array:
    return record[start : start + CELLS]


def _word(record: jax.Array, name: str) -> jax.Array:
    return record[WORD[name]] | record[WORD[name] + 1] << 8


def owned_features(record: jax.Array) -> jax.Array:
    """int32[23]: 1 for each program that is owned."""
    bits = record[OWNED] | record[OWNED + 1] << 8 | record[OWNED + 2] << 16
    return (bits >> _NUMBERS) & 1


def _one_hot(values: jax.Array, size: int) -> jax.Array:
    return values[..., None] == np.arange(size)


def player_features(record: jax.Array) -> jax.Array:
    """float32[10]: the numbers of the player."""
    cell, flags = record[BYTE["cell"]], record[BYTE["flags"]]
    return jnp.stack(
        [
            cell // SIZE / (SIZE - 1),
            cell % SIZE / (SIZE - 1),
            record[BYTE["hp"]] / MAX_HP,
            jnp.minimum(_word(record, "credits") / 50, 1),
            jnp.minimum(_word(record, "energy") / 50, 1),
            (record[BYTE["stage"]] - 1) / (LAST_STAGE - 1),
            _word(record, "siphons") / 10,
            (_word(record, "attack") - 1) / 2,
            (flags & 1).astype(jnp.float32),
            (flags >> 1 & 1).astype(jnp.float32),
        ]
    )


def cell_features(record: jax.Array) -> jax.Array:
    """float32[36, 42]: the channels of the classic layout."""
    enemy, coming = _plane(record, ENEMY), _plane(record, TRANSMISSION)
    holds, resource = _plane(record, CELL), _plane(record, RESOURCE)
    value, spawn = _plane(record, VALUE), _plane(record, SPAWN)
    block = holds & 3
    columns = [
        _one_hot((enemy & 7) - 1, len(EnemyType)),
        (enemy >> 3 & 3) / 3,
        enemy >> 5 & 1,
        enemy >> 6 & 1,
        _one_hot(block - 1, 3),
        jnp.where(block == Content.DATA, value / MAX_POINTS, 0),
        (block > 0) & (holds >> 2 & 1 == 1),
        _one_hot(jnp.where(block == Content.PROGRAM, value, -1), len(PROGRAMS)),
        jnp.minimum(spawn / 9, 1),
        (coming >> 1 & 7) / MAX_TURNS,
        (resource & 3) / MAX_RESOURCE,
        (resource >> 2 & 3) / MAX_RESOURCE,
        holds >> 4 & 1,
        holds >> 5 & 1,
        holds >> 3 & 1,
    ]
    return _table(columns)


def extra_cell_features(record: jax.Array) -> jax.Array:
    """float32[36, 10]: the channels that the full layout adds."""
    enemy, coming = _plane(record, ENEMY), _plane(record, TRANSMISSION)
    holds, resource = _plane(record, CELL), _plane(record, RESOURCE)
    columns = [
        _one_hot((coming >> 4 & 7) - 1, len(EnemyType)),
        coming & 1,
        holds >> 2 & 1,
        enemy >> 7,
        (holds >> 6) / MAX_SEEN,
        coming >> 7,
        (resource >> 4) / MAX_DISTANCE,
    ]
    return _table(columns)


def _table(columns: list[jax.Array]) -> jax.Array:
    """float32[36, n]: columns of one or more channels side by side."""
    wide = [column.reshape(CELLS, -1).astype(jnp.float32) for column in columns]
    return jnp.concatenate(wide, axis=1)


def extra_features(record: jax.Array) -> jax.Array:
    """float32[41]: the numbers that the full layout adds."""
    credits, energy = _word(record, "credits"), _word(record, "energy")
    until_task = _word(record, "next_task") - _word(record, "turn")
    can_pay = (credits >= _CREDITS) & (energy >= _ENERGY)
    numbers = [
        record[BYTE["flags"]] >> 2 & 1,
        _word(record, "turn") / 20,
        jnp.clip(until_task / 12, -1, 1),
        _word(record, "interval") / FIRST_INTERVAL,
        *(
            jnp.minimum(x, 1)
            for x in (
                _word(record, "pending") / 9,
                record[BYTE["atk_uses"]] / MAX_ATK_USES,
                _word(record, "score") / 50,
                record[BYTE["saved"]] / MAX_SAVED_STATES,
                credits / 20,
                energy / 20,
            )
        ),
    ]
    return jnp.concatenate(
        [
            jnp.stack([jnp.asarray(x, jnp.float32) for x in numbers]),
            _one_hot(record[BYTE["stage"]] - 1, LAST_STAGE).astype(jnp.float32),
            (owned_features(record) * can_pay).astype(jnp.float32),
        ]
    )
