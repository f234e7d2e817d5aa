"""Section 12, continued: the layout `tactical`, from compact records.

Everything here has the axis of games last, so that each bit operation runs over many games; what is
played out for several programs, directions or cells at once has an axis before it.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.game.foresight.jax_board import (
    VisibleState,
    bits,
    column,
    look,
    materialize,
    sum_weights,
)
from hackmatrix.game.foresight.jax_threats import of_actions
from hackmatrix.game.jaxgame import bitboard, planes
from hackmatrix.game.jaxgame.bitboard import CellSet
from hackmatrix.game.jaxgame.control_flow import compute_once, rounds
from hackmatrix.game.jaxgame.records import Records, RecordsInWords
from hackmatrix.game.rules.board import SIZE
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.stages import LAST_STAGE, MAX_HP
from hackmatrix.game.rules.tactical import (
    CREDIT_WORTH,
    ENERGY_WORTH,
    FAR,
    GROUPS,
    HOARDS,
    LARGEST_WORTH,
    MAX_COUNT,
    MAX_HITS,
    NO_WORTH,
    PROGRAM_WORTH,
    QUESTION_WORTH,
    RINGS,
    SPAWN_WORTH,
    STEP_WORTH,
    TACTICAL_SIZE,
)

# --- Layout `tactical`: what siphoning gives, and the ways there ----------------------------------


class _Yields(NamedTuple):
    """Where siphoning gives something."""

    open: CellSet  # cells without block, not siphoned
    blocks: CellSet  # blocks not siphoned
    questions: CellSet  # the question blocks among them
    programs: list[CellSet]  # for each program, if it is not owned yet: the block that gives it


def of_siphoning(visible: VisibleState) -> dict[str, jax.Array]:
    """The groups about siphoning and ways, and the enemies by their distance."""
    yields = _yields(visible)
    way, near = _ways(visible.here, visible.blocks)
    to_siphon, _ = _ways(visible.siphons, visible.blocks)
    return {
        **_of_best(visible, yields, way),
        **_of_cross(visible, yields),
        "go_to_exit": _nearer(visible, visible.exit_distance),
        "go_to_siphon": _nearer(visible, to_siphon),
        "program_near": _nearness(yields, near),
        "credits_left": planes.total(visible.credits, yields.open),
        "energy_left": planes.total(visible.energy, yields.open),
        "siphons_left": jnp.minimum(visible.siphons.size(), MAX_COUNT),
        "siphon_distance": planes.total(to_siphon, visible.here),
        "exit_distance": planes.total(visible.exit_distance, visible.here),
        **_by_distance(visible, way),
    }


def _yields(visible: VisibleState) -> _Yields:
    left = ~visible.siphoned
    shown = visible.programs & left
    owned = visible.scalars["owned"]
    programs = [
        (cells & shown).only_if(owned >> n & 1 == 0)
        for n, cells in enumerate(planes.one_hot(visible.value, len(PROGRAMS)))
    ]
    yields = _Yields(
        open=left & ~visible.blocks,
        blocks=left & visible.blocks,
        questions=visible.questions & left,
        programs=programs,
    )
    return materialize(yields, visible.scalars)


def _of_best(
    visible: VisibleState, yields: _Yields, way: planes.BitPlanes[CellSet]
) -> dict[str, jax.Array]:
    """The worth of siphoning here, and the way to the place where it is worth the most."""
    worth = _over_cross(_worths(visible, yields))
    distance = sum_weights(_weighted(way))
    reachable = (distance < FAR) & (bits(visible.blocks) == 0)
    total = jnp.where(reachable, worth + STEP_WORTH * distance, NO_WORTH)
    total, worth = materialize((total, worth), visible.scalars)
    best_worth = jnp.max(total, axis=0)
    to_best, _ = _ways(bitboard.of_mask(total == best_worth).first(), visible.blocks)
    steps = planes.total(to_best, visible.here)
    worth_here = jnp.sum(worth * bits(visible.here), axis=0)
    return {
        "go_to_best": _nearer(visible, to_best),
        "here_worth": jnp.clip(worth_here >> 1, -LARGEST_WORTH, LARGEST_WORTH),
        "best_worth": jnp.clip(best_worth >> 1, -LARGEST_WORTH, LARGEST_WORTH),
        "best_distance": steps,
        "best_here": steps == 0,
    }


def _of_cross(visible: VisibleState, yields: _Yields) -> dict[str, jax.Array]:
    """The yield of siphoning here."""
    cross = bitboard.cross(visible.here)
    any_new = reduce(CellSet.__or__, yields.programs)
    return {
        "here_credits": planes.total(visible.credits, cross & yields.open),
        "here_energy": planes.total(visible.energy, cross & yields.open),
        "here_spawns": planes.total(visible.spawn, cross & yields.blocks),
        "here_questions": (cross & yields.questions).size(),
        "here_programs": (cross & any_new).size(),
    }


def _nearer(visible: VisibleState, distances: planes.BitPlanes[CellSet]) -> jax.Array:
    """int32[4, N]: whether each direction shortens the way: 1, or -1 if it makes it longer."""
    own = planes.total(distances, visible.here)
    steps = []
    for direction in bitboard.DIRECTIONS:
        there = direction(visible.here) & ~visible.blocks
        closer = jnp.clip(own - planes.total(distances, there), -1, 1)
        steps.append(jnp.where(there.any(), closer, 0))
    return jnp.stack(steps)


def _nearness(yields: _Yields, near: planes.BitPlanes[CellSet]) -> jax.Array:
    """int32[P, N]: how near the first cell is from which each program can be siphoned."""
    first = [cells.first() for cells in yields.programs]
    return jnp.stack([jnp.where(c.any(), FAR - planes.total(near, c), 0) for c in first])


def _by_distance(visible: VisibleState, way: planes.BitPlanes[CellSet]) -> dict[str, jax.Array]:
    rings = planes.one_hot(way, RINGS + 1)[1:]

    def counted(pieces: CellSet) -> jax.Array:
        return jnp.stack([jnp.minimum((pieces & ring).size(), MAX_HITS) for ring in rings])

    viruses = visible.by_type[EnemyType.VIRUS]
    return {
        "walkers_at": counted(visible.enemies & ~viruses),
        "viruses_at": counted(viruses),
    }


def _worths(visible: VisibleState, yields: _Yields) -> jax.Array:
    """int16[36, N]: what siphoning adds to the worth of a place by each cell."""
    worths = list(zip(yields.programs, PROGRAM_WORTH, strict=True))
    programs = tuple(
        reduce(CellSet.__or__, [cells for cells, worth in worths if worth >> b & 1])
        for b in range(max(PROGRAM_WORTH).bit_length())
    )
    sets = list(_weighted(programs))
    for weight, bit_planes, cells in (
        (CREDIT_WORTH, visible.credits, yields.open),
        (ENERGY_WORTH, visible.energy, yields.open),
        (SPAWN_WORTH, visible.spawn, yields.blocks),
        (QUESTION_WORTH, (yields.questions,), yields.questions),
    ):
        sets += _weighted(tuple(plane & cells for plane in bit_planes), weight)
    return sum_weights(sets)


def _weighted(
    bit_planes: planes.BitPlanes[CellSet], weight: int = 1
) -> Iterator[tuple[int, CellSet]]:
    """The planes of a number for each cell, with the weights of their bits."""
    return ((weight << b, plane) for b, plane in enumerate(bit_planes))


_DISTANCE_PLANES = FAR.bit_length()


def _ways(
    start: CellSet, blocks: CellSet
) -> tuple[planes.BitPlanes[CellSet], planes.BitPlanes[CellSet]]:
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

    _, way, near = rounds(FAR, further, (start, zero, zero))
    return way, near


def _over_cross(table: jax.Array) -> jax.Array:
    """The sums over the cross of each cell of an array [36, N]."""
    square = table.reshape(SIZE, SIZE, *table.shape[1:])
    padded = jnp.pad(square, [(1, 1), (1, 1), *[(0, 0)] * (table.ndim - 1)])
    views = [
        padded[rows : rows + SIZE, cols : cols + SIZE]
        for rows, cols in ((2, 1), (0, 1), (1, 0), (1, 2))
    ]
    return sum(views, square).reshape(table.shape)


# --- Section 12, continued: the layout `tactical`, from compact records ---------------------------


def tactical_numbers(records: jax.Array) -> jax.Array:
    """int8[N, TACTICAL_SIZE]: the integers of `rules.tactical.GROUPS`.

    Of compact records, uint8[N, RECORD_SIZE].
    """
    visible = look(Records(records))
    rows = [row.astype(jnp.int8) for row in _rows(visible)]
    # In a branch, as a compiler would lay out the rows, too, as their reader wants the result.
    return compute_once(visible.scalars["stage"] > 0, lambda: jnp.concatenate(rows)).T


def tactical_words(packed: jax.Array) -> jax.Array:
    """uint32[TACTICAL_SIZE / 4, ...]: the same, four integers in each, from packed records.

    Args:
        packed: uint32[RECORD_SIZE / 4, ...].
    """
    rows = jnp.concatenate([row.astype(jnp.int32) for row in _rows(look(RecordsInWords(packed)))])
    low = rows.astype(jnp.uint32) & 0xFF
    quads = [low[i : i + 4] for i in range(0, TACTICAL_SIZE, 4)]
    return jnp.stack([a | b << 8 | c << 16 | d << 24 for a, b, c, d in quads])


def _rows(visible: VisibleState) -> list[jax.Array]:
    """The integers or bools of each group, [its size, ...]."""
    groups = {
        **of_actions(visible),
        **of_siphoning(visible),
        **_pieces(visible),
        **_scalars(visible),
    }
    return [jnp.reshape(groups[g.name], (g.size, *visible.cell.shape)) for g in GROUPS]


def _pieces(visible: VisibleState) -> dict[str, jax.Array]:
    def count(cells: CellSet) -> jax.Array:
        return jnp.minimum(cells.size(), MAX_COUNT)

    return {
        "enemies": jnp.stack([count(cells) for cells in visible.by_type]),
        "stunned": count(visible.stunned),
        "hidden": count(visible.last_seen),
        "transmissions": count(visible.transmissions),
        "empty_of_pieces": ~(visible.enemies | visible.transmissions).any(),
    }


def _scalars(visible: VisibleState) -> dict[str, jax.Array]:
    scalars = visible.scalars

    def at_least(name: str, bounds: Sequence[int]) -> jax.Array:
        return scalars[name][None] >= column(bounds, scalars[name])

    def one_hot(values: jax.Array, options: range) -> jax.Array:
        return values[None] == column(options, values)

    return {
        "hp": one_hot(scalars["hp"], range(1, MAX_HP + 1)),
        "siphons": at_least("siphons", (1, 2, 3)),
        "attack": at_least("attack", (2, 3, 4)),
        "credits": jnp.minimum(scalars["credits"], 60),
        "energy": jnp.minimum(scalars["energy"], 60),
        "has_credits": at_least("credits", HOARDS),
        "has_energy": at_least("energy", HOARDS),
        "stage": one_hot(scalars["stage"], range(1, LAST_STAGE + 1)),
        "turn": jnp.minimum(scalars["turn"], 80),
        "until_task": jnp.clip(scalars["next_task"] - scalars["turn"], -1, 24),
        "interval": jnp.minimum(scalars["interval"], 24),
        "pending": jnp.minimum(scalars["pending"], 18),
        "saved": scalars["saved"],
        "atk_uses": scalars["atk_uses"],
        "flags": jnp.stack([scalars[name] for name in ("show", "calm", "step")]),
        "line": jnp.concatenate(
            [
                one_hot(bitboard.row_of(visible.cell), range(SIZE)),
                one_hot(bitboard.col_of(visible.cell), range(SIZE)),
            ]
        ),
    }
