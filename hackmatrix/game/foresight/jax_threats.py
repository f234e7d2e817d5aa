"""Layout `tactical`: what directions and programs do, and the hits to expect after them."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.game.foresight.jax_board import (
    VisibleState,
    both,
    column,
    each_of,
    materialize,
    meet,
    only_if,
    stack,
)
from hackmatrix.game.foresight.jax_strikes import (
    Board,
    after_strikes,
    board_of,
    hitters,
    surviving,
)
from hackmatrix.game.jaxgame import bitboard
from hackmatrix.game.jaxgame.bitboard import CellSet, neighbours
from hackmatrix.game.jaxgame.control_flow import rounds
from hackmatrix.game.rules.board import SIZE
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.tactical import MAX_HITS, STRIKES, WINDOW


class _Aim(NamedTuple):
    """The targets of the four directions; sets [4, N]."""

    next_to: CellSet  # the neighbour, empty beyond the board's end
    target: CellSet  # the cell of what an attack strikes, empty if there is nothing
    at_transmission: CellSet  # it, if it is a transmission
    at_enemy: CellSet  # it, if it is an enemy
    dies: CellSet  # it, if it is an enemy that dies
    valid: jax.Array  # bool[4, N]
    walks: jax.Array  # bool[4, N]


def of_actions(visible: VisibleState) -> dict[str, jax.Array]:
    """The groups about directions, programs and the cells around."""
    survivors = surviving(visible)
    aim = _aim(visible, survivors)
    boards, struck, killed = after_strikes(visible, survivors)
    aim, boards, struck, killed = materialize((aim, boards, struck, killed), visible.scalars)
    goals = stack([visible.here, *(direction(visible.here) for direction in bitboard.DIRECTIONS)])
    each_board = jax.tree.map(lambda word: word[:, None], boards)  # [V, 1, N]
    hits = materialize(hitters(each_of(goals), each_board).size(), visible.scalars)  # [V, 5, N]
    reached = _reached_later(visible)
    return {
        **_directions(visible, aim, hits[0], reached),
        **_programs(visible, boards, hits, aim.next_to, struck, killed),
        **_window(visible, reached),
    }


def _aim(visible: VisibleState, survivors: CellSet) -> _Aim:
    pieces = visible.enemies | visible.transmissions
    rays = [
        bitboard.up_to_first(bitboard.ray(visible.cell, direction), visible.stops, direction)
        for direction in bitboard.DIRECTIONS
    ]
    target = stack([ray & pieces for ray in rays])
    next_to = stack([direction(visible.here) for direction in bitboard.DIRECTIONS])
    at_transmission = meet(target, each_of(visible.transmissions))
    at_enemy = only_if(~at_transmission.any(), target)
    walkable = meet(next_to, each_of(~visible.blocks | visible.enemies)).any()
    return _Aim(
        next_to=next_to,
        target=target,
        at_transmission=at_transmission,
        at_enemy=at_enemy,
        dies=meet(at_enemy, each_of(~survivors)),
        valid=walkable,
        walks=walkable & ~target.any(),
    )


def _attacked(visible: VisibleState, aim: _Aim) -> Board:
    """The board after an attack in each direction, [4, N]: who is struck will not act."""
    return Board(
        blocks=both(each_of(visible.blocks), aim.target)[0],
        enemies=meet(each_of(visible.enemies), ~aim.dies),
        able=meet(each_of(visible.able), ~aim.at_enemy),
        viruses=meet(each_of(visible.able_viruses), ~aim.at_enemy),
        transmissions=meet(each_of(visible.transmissions), ~aim.at_transmission),
    )


def _directions(
    visible: VisibleState, aim: _Aim, hits: jax.Array, reached: CellSet
) -> dict[str, jax.Array]:
    """The groups about directions; `hits` [5, N] if the player stays, or is next to its cell."""
    valid, walks = aim.valid, aim.walks
    attack_hits = hitters(each_of(visible.here), _attacked(visible, aim)).size()
    go_hits = jnp.where(valid, jnp.where(walks, hits[1:], attack_hits), 0)
    go_hits = materialize(go_hits, visible.scalars)
    words = zip(aim.next_to, visible.here, strict=True)
    after = CellSet(*(jnp.where(walks, there, here[None]) for there, here in words))
    safe = meet(after | neighbours(after), each_of(~visible.stops & ~reached))
    blocks, enemies = each_of(visible.blocks), each_of(visible.enemies)
    lines = [
        meet(_shots(after, direction, blocks, enemies), enemies).any()
        for direction in bitboard.DIRECTIONS
    ]

    def struck(which: CellSet) -> jax.Array:
        return valid & meet(aim.at_enemy, each_of(which)).any()

    def count(values: jax.Array) -> jax.Array:
        return jnp.where(valid, values, 0)

    return {
        "go_valid": valid,
        "go_walks": walks,
        "go_transmission": valid & aim.at_transmission.any(),
        "go_kills": valid & aim.dies.any(),
        "go_stuns": valid & aim.at_enemy.any() & ~aim.dies.any(),
        **{
            f"go_{enemy_type.name.lower()}": struck(visible.by_type[enemy_type])
            for enemy_type in EnemyType
        },
        "go_target_hp": struck(visible.hp[0]) + struck(visible.hp[1]) * jnp.int32(2),
        "go_target_near": valid & meet(aim.target, aim.next_to).any(),
        "go_target_acts": struck(visible.able),
        "go_hits": jnp.minimum(go_hits, MAX_HITS),
        "go_hit": go_hits > 0,
        "go_lethal": valid & (go_hits >= visible.scalars["hp"]),
        "go_safe_cells": count(safe.size()),
        "go_open": count(meet(neighbours(after), ~blocks).size()),
        "go_lines": count(jnp.sum(jnp.stack(lines), axis=0)),
        "go_exit": walks & meet(aim.next_to, each_of(visible.exit)).any(),
        "go_siphon": walks & meet(aim.next_to, each_of(visible.siphons)).any(),
        "stay_hits": jnp.minimum(hits[0], MAX_HITS),
        "fewest_hits": jnp.min(jnp.where(valid, jnp.minimum(go_hits, MAX_HITS), MAX_HITS), axis=0),
    }


def _programs(
    visible: VisibleState,
    boards: Board,
    hits: jax.Array,
    next_to: CellSet,
    struck: jax.Array,
    killed: jax.Array,
) -> dict[str, jax.Array]:
    """The groups about programs.

    Args:
        visible: what the player sees.
        boards: [V, N], as it is and after each strike.
        hits: int32[V, 5, N], on each board if the player stays, or is next to its cell.
        next_to: [4, N], the neighbours.
        struck: int32[S, N], pieces that each strike strikes or moves.
        killed: int32[S, N], those that it destroys.
    """
    owned = visible.scalars["owned"][None] >> column(range(len(PROGRAMS)), visible.cell) & 1 == 1
    credits, energy = (column(cost, visible.cell) for cost in _COSTS)
    affordable = (visible.scalars["credits"] >= credits) & (visible.scalars["energy"] >= energy)
    ready = owned & affordable
    strikes = jnp.stack([ready[n] for n in STRIKES]) & ((struck > 0) | (killed > 0))
    fewest = _fewest(boards, hits, next_to, visible.cell)

    def count(values: jax.Array) -> jax.Array:
        return jnp.where(strikes, jnp.minimum(values, MAX_HITS), 0)

    return {
        "owned": owned,
        "ready": ready,
        "affordable": affordable,
        "struck": count(struck),
        "killed": count(killed),
        "hits_after": count(hits[1:, 0]),
        "fewest_after": count(fewest[1:]),
    }


_COSTS = tuple(zip(*((p.credits, p.energy) for p in PROGRAMS), strict=True))


def _shots(
    cells: CellSet, direction: Callable[[CellSet], CellSet], blocks: CellSet, enemies: CellSet
) -> CellSet:
    """The cells in a direction from each of some cells, up to the first block or enemy."""

    def further(_: jax.Array, shots: CellSet) -> CellSet:
        return shots | direction(meet(shots, ~blocks, ~enemies))

    return rounds(SIZE - 2, further, direction(cells))


def _fewest(boards: Board, hits: jax.Array, next_to: CellSet, cell: jax.Array) -> jax.Array:
    """int32[V, N]: the fewest hits that a valid direction leads to on each board."""
    results = []
    pieces = boards.enemies | boards.transmissions
    for d, direction in enumerate(bitboard.DIRECTIONS):
        ray = bitboard.ray(cell, direction)
        ray = both(each_of(ray), pieces)[0]
        first = bitboard.up_to_first(ray, boards.blocks | pieces, direction)
        attacks = (first & pieces).any()
        ahead = CellSet(*(word[d][None] for word in next_to))
        free = meet(ahead, ~boards.blocks).any()
        can_go = free | meet(ahead, boards.enemies).any()
        outcome = jnp.where(attacks, hits[:, 0], hits[:, 1 + d])
        results.append(jnp.where(can_go, outcome, MAX_HITS))
    return jnp.minimum(jnp.min(jnp.stack(results), axis=0), MAX_HITS)


def _reached_later(visible: VisibleState) -> CellSet:
    """Cells where an enemy may hit in the enemy turn after the coming one."""
    free, able, viruses = ~visible.stops, visible.able, visible.able_viruses
    glitches = visible.by_type[EnemyType.GLITCH] & able
    all_viruses = visible.by_type[EnemyType.VIRUS]
    walkers = able & ~viruses
    walkers = walkers | (neighbours(walkers) & free)
    walkers = walkers | (neighbours(glitches) & ~visible.enemies & ~visible.transmissions)
    walkers = walkers | (visible.enemies & ~all_viruses) | visible.transmissions
    far = viruses | (neighbours(viruses) & free)
    far = far | (neighbours(far) & free) | all_viruses
    return neighbours(walkers) | neighbours(far) | neighbours(neighbours(far) & free)


def _window(visible: VisibleState, reached: CellSet) -> dict[str, jax.Array]:
    """The groups about the cells around."""
    rows = bitboard.row_of(visible.cell)[None] + column([r for r, _ in WINDOW], visible.cell)
    cols = bitboard.col_of(visible.cell)[None] + column([c for _, c in WINDOW], visible.cell)
    on_board = (rows >= 0) & (rows < SIZE) & (cols >= 0) & (cols < SIZE)
    cells = only_if(on_board, bitboard.of_cell(rows * SIZE + cols))  # [12, N]
    board = jax.tree.map(lambda word: word[None], board_of(visible))
    cells = materialize(cells, visible.scalars)

    def has(which: CellSet) -> jax.Array:
        return meet(cells, each_of(which)).any()

    return {
        "cell_blocked": ~on_board | has(visible.blocks),
        **{
            f"cell_{enemy_type.name.lower()}": has(visible.by_type[enemy_type])
            for enemy_type in EnemyType
        },
        "cell_stunned": has(visible.stunned),
        "cell_hp": has(visible.hp[0]) + has(visible.hp[1]) * jnp.int32(2),
        "cell_transmission": has(visible.transmissions),
        "cell_hits": jnp.minimum(hitters(cells, board).size(), MAX_HITS),
        "cell_reached": has(reached),
    }
