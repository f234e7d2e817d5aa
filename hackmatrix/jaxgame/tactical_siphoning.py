"""Layout `tactical`: what siphoning gives, and the ways there."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from hackmatrix.jaxgame import bitboard, planes
from hackmatrix.jaxgame.bitboard import CellSet
from hackmatrix.jaxgame.tactical_look import Seen, bits, kept
from hackmatrix.rules.board import SIZE, Content
from hackmatrix.rules.enemies import EnemyType
from hackmatrix.rules.programs import PROGRAMS
from hackmatrix.rules.tactical import (
    CREDIT_WORTH,
    ENERGY_WORTH,
    FAR,
    LARGEST_WORTH,
    MAX_COUNT,
    MAX_HITS,
    PROGRAM_WORTH,
    QUESTION_WORTH,
    RINGS,
    SPAWN_WORTH,
    STEP_WORTH,
)


def of_siphoning(seen: Seen) -> dict[str, jax.Array]:
    """The groups about siphoning and ways, and the enemies by their distance."""
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
    new, any_new = kept((new, any_new), number)
    worth = _over_cross(_worths(seen, new, open_, blocks, question))
    distance = _values(way)
    free = bits(~seen.blocks).astype(jnp.int16)
    total = jnp.where((distance < FAR) & (free > 0), worth + STEP_WORTH * distance, -999)
    total, worth = kept((total, worth), number)
    best_worth = jnp.max(total, axis=0)
    best = bitboard.of_mask(total == best_worth).first()
    to_best, _ = _ways(best, seen.blocks)
    to_exit = seen.exit_distance

    def nearer(distances: planes.Numbers[CellSet]) -> jax.Array:
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
    worth_here = jnp.sum(jnp.where(bits(here) > 0, worth, 0), axis=0)
    to_best_here = planes.total(to_best, here)
    viruses = seen.kinds[EnemyType.VIRUS]
    others = seen.enemies & ~viruses

    def counted(pieces: CellSet) -> jax.Array:
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
) -> jax.Array:
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


def _values(numbers: planes.Numbers[CellSet]) -> jax.Array:
    """int16[36, N]: a number for each cell."""
    values = sum(bits(plane) << b for b, plane in enumerate(numbers))
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

    def further(_: jax.Array, carry: Any) -> Any:
        reached, way, near = carry
        way = planes.increment(way, ~reached)
        near = planes.increment(near, ~bitboard.cross(reached))
        return bitboard.flood_step(reached, ~blocks), way, near

    _, way, near = lax.fori_loop(0, FAR, further, (start, zero, zero))
    return way, near


def _over_cross(table: jax.Array) -> jax.Array:
    """The sums over the cross of each cell of an array [36, N]."""
    square = table.reshape(SIZE, SIZE, -1)
    padded = jnp.pad(square, [(1, 1), (1, 1), (0, 0)])
    views = [
        padded[rows : rows + SIZE, cols : cols + SIZE]
        for rows, cols in ((2, 1), (0, 1), (1, 0), (1, 2))
    ]
    return sum(views, square).reshape(table.shape)
