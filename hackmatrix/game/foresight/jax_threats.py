"""Layout `tactical`: what directions and programs do, and the hits to expect after them."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.game.foresight.jax_board import (
    Seen,
    both,
    column,
    each_of,
    kept,
    meet,
    only_if,
    stacked,
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


def of_actions(seen: Seen) -> dict[str, jax.Array]:
    """The groups about directions, programs and the cells around."""
    survivors = surviving(seen)
    aim = _aim(seen, survivors)
    boards, struck, killed = after_strikes(seen, survivors)
    aim, boards, struck, killed = kept((aim, boards, struck, killed), seen.number)
    goals = stacked([seen.here, *(direction(seen.here) for direction in bitboard.DIRECTIONS)])
    each_board = jax.tree.map(lambda word: word[:, None], boards)  # [V, 1, N]
    hits = kept(hitters(each_of(goals), each_board).size(), seen.number)  # [V, 5, N]
    reached = _reached_later(seen)
    return {
        **_directions(seen, aim, hits[0], reached),
        **_programs(seen, boards, hits, aim.next_to, struck, killed),
        **_window(seen, reached),
    }


def _aim(seen: Seen, survivors: CellSet) -> _Aim:
    pieces = seen.enemies | seen.transmissions
    rays = [
        bitboard.up_to_first(bitboard.ray(seen.cell, direction), seen.stops, direction)
        for direction in bitboard.DIRECTIONS
    ]
    target = stacked([ray & pieces for ray in rays])
    next_to = stacked([direction(seen.here) for direction in bitboard.DIRECTIONS])
    at_transmission = meet(target, each_of(seen.transmissions))
    at_enemy = only_if(~at_transmission.any(), target)
    walkable = meet(next_to, each_of(~seen.blocks | seen.enemies)).any()
    return _Aim(
        next_to=next_to,
        target=target,
        at_transmission=at_transmission,
        at_enemy=at_enemy,
        dies=meet(at_enemy, each_of(~survivors)),
        valid=walkable,
        walks=walkable & ~target.any(),
    )


def _attacked(seen: Seen, aim: _Aim) -> Board:
    """The board after an attack in each direction, [4, N]: who is struck will not act."""
    return Board(
        blocks=both(each_of(seen.blocks), aim.target)[0],
        enemies=meet(each_of(seen.enemies), ~aim.dies),
        able=meet(each_of(seen.able), ~aim.at_enemy),
        viruses=meet(each_of(seen.able_viruses), ~aim.at_enemy),
        transmissions=meet(each_of(seen.transmissions), ~aim.at_transmission),
    )


def _directions(seen: Seen, aim: _Aim, hits: jax.Array, reached: CellSet) -> dict[str, jax.Array]:
    """The groups about directions; `hits` [5, N] if the player stays, or is next to its cell."""
    valid, walks = aim.valid, aim.walks
    attack_hits = hitters(each_of(seen.here), _attacked(seen, aim)).size()
    go_hits = jnp.where(valid, jnp.where(walks, hits[1:], attack_hits), 0)
    go_hits = kept(go_hits, seen.number)
    words = zip(aim.next_to, seen.here, strict=True)
    after = CellSet(*(jnp.where(walks, there, here[None]) for there, here in words))
    safe = meet(after | neighbours(after), each_of(~seen.stops & ~reached))
    blocks, enemies = each_of(seen.blocks), each_of(seen.enemies)
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
        **{f"go_{kind.name.lower()}": struck(seen.kinds[kind]) for kind in EnemyType},
        "go_target_hp": struck(seen.hp[0]) + struck(seen.hp[1]) * jnp.int32(2),
        "go_target_near": valid & meet(aim.target, aim.next_to).any(),
        "go_target_acts": struck(seen.able),
        "go_hits": jnp.minimum(go_hits, MAX_HITS),
        "go_hit": go_hits > 0,
        "go_lethal": valid & (go_hits >= seen.number["hp"]),
        "go_safe_cells": count(safe.size()),
        "go_open": count(meet(neighbours(after), ~blocks).size()),
        "go_lines": count(jnp.sum(jnp.stack(lines), axis=0)),
        "go_exit": walks & meet(aim.next_to, each_of(seen.exit)).any(),
        "go_siphon": walks & meet(aim.next_to, each_of(seen.siphons)).any(),
        "stay_hits": jnp.minimum(hits[0], MAX_HITS),
        "fewest_hits": jnp.min(jnp.where(valid, jnp.minimum(go_hits, MAX_HITS), MAX_HITS), axis=0),
    }


def _programs(
    seen: Seen,
    boards: Board,
    hits: jax.Array,
    next_to: CellSet,
    struck: jax.Array,
    killed: jax.Array,
) -> dict[str, jax.Array]:
    """The groups about programs.

    Args:
        seen: what the player sees.
        boards: [V, N], as it is and after each strike.
        hits: int32[V, 5, N], on each board if the player stays, or is next to its cell.
        next_to: [4, N], the neighbours.
        struck: int32[S, N], pieces that each strike strikes or moves.
        killed: int32[S, N], those that it destroys.
    """
    owned = seen.number["owned"][None] >> column(range(len(PROGRAMS)), seen.cell) & 1 == 1
    credits, energy = (column(cost, seen.cell) for cost in _COSTS)
    affordable = (seen.number["credits"] >= credits) & (seen.number["energy"] >= energy)
    ready = owned & affordable
    strikes = jnp.stack([ready[n] for n in STRIKES]) & ((struck > 0) | (killed > 0))
    fewest = _fewest(boards, hits, next_to, seen.cell)

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


def _reached_later(seen: Seen) -> CellSet:
    """Cells where an enemy may hit in the enemy turn after the coming one."""
    free, able, viruses = ~seen.stops, seen.able, seen.able_viruses
    glitches = seen.kinds[EnemyType.GLITCH] & able
    all_viruses = seen.kinds[EnemyType.VIRUS]
    walkers = able & ~viruses
    walkers = walkers | (neighbours(walkers) & free)
    walkers = walkers | (neighbours(glitches) & ~seen.enemies & ~seen.transmissions)
    walkers = walkers | (seen.enemies & ~all_viruses) | seen.transmissions
    far = viruses | (neighbours(viruses) & free)
    far = far | (neighbours(far) & free) | all_viruses
    return neighbours(walkers) | neighbours(far) | neighbours(neighbours(far) & free)


def _window(seen: Seen, reached: CellSet) -> dict[str, jax.Array]:
    """The groups about the cells around."""
    rows = bitboard.row_of(seen.cell)[None] + column([r for r, _ in WINDOW], seen.cell)
    cols = bitboard.col_of(seen.cell)[None] + column([c for _, c in WINDOW], seen.cell)
    on_board = (rows >= 0) & (rows < SIZE) & (cols >= 0) & (cols < SIZE)
    cells = only_if(on_board, bitboard.of_cell(rows * SIZE + cols))  # [12, N]
    board = jax.tree.map(lambda word: word[None], board_of(seen))
    cells = kept(cells, seen.number)

    def has(which: CellSet) -> jax.Array:
        return meet(cells, each_of(which)).any()

    return {
        "cell_blocked": ~on_board | has(seen.blocks),
        **{f"cell_{kind.name.lower()}": has(seen.kinds[kind]) for kind in EnemyType},
        "cell_stunned": has(seen.stunned),
        "cell_hp": has(seen.hp[0]) + has(seen.hp[1]) * jnp.int32(2),
        "cell_transmission": has(seen.transmissions),
        "cell_hits": jnp.minimum(hitters(cells, board).size(), MAX_HITS),
        "cell_reached": has(reached),
    }
