"""The board as the player sees it, as sets of cells, read from compact records."""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.game.jaxgame import bitboard, planes
from hackmatrix.game.jaxgame.bitboard import CellSet
from hackmatrix.game.jaxgame.control_flow import by_platform, compute_once
from hackmatrix.game.jaxgame.records import Records
from hackmatrix.game.jaxgame.state import NUM_PLANES, Cells
from hackmatrix.game.rules.board import CELLS
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.observation import SCALAR
from hackmatrix.game.rules.tactical import MAX_SPAWNS

_Tree = TypeVar("_Tree")


class VisibleState(NamedTuple):
    """The board as the player sees it: sets of cells and numbers, of N games each."""

    scalars: dict[str, jax.Array]  # int32[N], those of the record by name
    cell: jax.Array  # int32[N]
    here: CellSet
    blocks: CellSet
    exit: CellSet
    siphons: CellSet
    siphoned: CellSet
    transmissions: CellSet
    enemies: CellSet
    by_type: tuple[CellSet, ...]  # by `EnemyType`
    stunned: CellSet
    hp: tuple[CellSet, ...]  # 2 planes
    last_seen: CellSet
    programs: CellSet  # program blocks
    questions: CellSet  # question blocks not siphoned yet
    value: planes.BitPlanes[CellSet]
    spawn: planes.BitPlanes[CellSet]
    credits: planes.BitPlanes[CellSet]
    energy: planes.BitPlanes[CellSet]
    exit_distance: planes.BitPlanes[CellSet]

    @property
    def able(self) -> CellSet:
        """The enemies that will act."""
        return self.enemies & ~self.stunned

    @property
    def able_viruses(self) -> CellSet:
        """The viruses among them."""
        return self.by_type[EnemyType.VIRUS] & ~self.stunned

    @property
    def stops(self) -> CellSet:
        """Cells on which no enemy can walk."""
        return self.blocks | self.enemies | self.transmissions


def look(records: Records) -> VisibleState:
    """Reads compact records."""
    scalars = {name: records.scalar(name) for name in (*SCALAR, "show", "calm", "step")}
    cells, type_planes = ground(records), records.planes("enemy_type")
    by_type = tuple(planes.equal(type_planes, 1 + k) for k in EnemyType)
    read = VisibleState(
        scalars=scalars,
        cell=scalars["cell"],
        here=bitboard.of_cell(scalars["cell"]),
        blocks=cells.blocks,
        exit=records.cells("exit"),
        siphons=cells.siphons,
        siphoned=cells.siphoned,
        transmissions=records.cells("transmission"),
        enemies=reduce(CellSet.__or__, by_type),
        by_type=by_type,
        stunned=records.cells("stunned"),
        hp=records.planes("enemy_hp"),
        last_seen=records.cells("last_seen"),
        programs=cells.blocks & ~cells.data & ~cells.questions,
        questions=cells.questions,
        value=cells.value,
        spawn=planes.at_most(cells.spawn, MAX_SPAWNS),
        credits=cells.credits,
        energy=cells.energy,
        exit_distance=records.planes("exit_distance"),
    )
    return materialize(read, scalars)


def ground(visible: Records) -> Cells:
    """The cells as the player sees them, with nothing in question blocks."""
    low, high = visible.planes("block")
    return Cells(
        blocks=low | high,
        data=low & ~high,
        questions=low & high,
        siphons=visible.cells("data_siphon"),
        siphoned=visible.cells("siphoned"),
        center=visible.cells("center"),
        credits=visible.planes("credits"),
        energy=visible.planes("energy"),
        value=visible.planes("value")[: NUM_PLANES["value"]],
        spawn=visible.planes("spawn")[: NUM_PLANES["spawn"]],
    )


def materialize(tree: _Tree, scalars: dict[str, jax.Array]) -> _Tree:
    """The same values.

    On CPUs they are written to memory once, instead of computed anew by each of their users.
    """
    return by_platform(
        tree,
        cpu=lambda tree: compute_once(scalars["stage"] > 0, lambda: tree),
        accelerator=lambda tree: tree,
    )


def stack(sets: Sequence[CellSet]) -> CellSet:
    """Several sets [N] as one with an axis before: [K, N]."""
    return CellSet(*(jnp.stack(halves) for halves in zip(*sets, strict=True)))


def each_of(cells: CellSet, axis: int = 0) -> CellSet:
    """The set with one more axis, to meet another one that has several entries there."""
    return CellSet(*(jnp.expand_dims(word, axis) for word in cells))


def both(a: CellSet, b: CellSet) -> tuple[CellSet, CellSet]:
    """The two with the same shape."""
    shape = jnp.broadcast_shapes(a.low.shape, b.low.shape)

    def broadcast(cells: CellSet) -> CellSet:
        return CellSet(*(jnp.broadcast_to(word, shape) for word in cells))

    return broadcast(a), broadcast(b)


def meet(*sets: CellSet) -> CellSet:
    """The intersection of sets whose axes broadcast."""
    return reduce(lambda a, b: CellSet.__and__(*both(a, b)), sets)


def only_if(condition: jax.Array, cells: CellSet) -> CellSet:
    """The set where the condition holds, else the empty set; axes broadcast."""
    return CellSet(*(jnp.where(condition, word, 0) for word in cells))


def column(values: Sequence[int], like: jax.Array) -> np.ndarray:
    """int[K, 1, ...]: values, to meet arrays [..., like those of a game]."""
    return np.array(values).reshape(-1, *[1] * like.ndim)


def bits(cells: CellSet) -> jax.Array:
    """int16[36, ...]: 1 for the cells of a set."""
    return sum_weights([(1, cells)])


def sum_weights(sets: Iterable[tuple[int, CellSet]]) -> jax.Array:
    """int16[36, ...]: for each cell, the sum of the weights of the sets that it is in."""
    weighted = list(sets)
    shifts = column(range(CELLS // 2), weighted[0][1].low).astype(np.uint32)

    def half(pairs: Iterable[tuple[int, jax.Array]]) -> jax.Array:
        parts = [weight * (word[None] >> shifts & 1).astype(jnp.int16) for weight, word in pairs]
        return reduce(jnp.add, parts)

    lows = half((weight, cells.low) for weight, cells in weighted)
    highs = half((weight, cells.high) for weight, cells in weighted)
    return jnp.concatenate([lows, highs])
