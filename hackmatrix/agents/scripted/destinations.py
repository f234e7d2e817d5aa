"""Where the scripted player wants to go."""

from collections.abc import Iterator
from typing import NamedTuple

from hackmatrix.agents.scripted.values import future, next_one
from hackmatrix.agents.scripted.weights import ScriptedWeights
from hackmatrix.game.foresight.cell_sets import ALL, BIT, NO_PATH, distances, members
from hackmatrix.game.foresight.seen import Seen
from hackmatrix.game.rules.board import CELLS, CROSS, Content


class Goal(NamedTuple):
    """The cell to go to."""

    worth: float  # what is there, less the way; 0 for the exit
    cell: int
    away: tuple[int, ...]  # walking distance to it from each cell


def best_goal(seen: Seen, w: ScriptedWeights) -> Goal:
    """The best of the data siphons to fetch and the cells to siphon; else the exit."""
    free = ALL & ~seen.board.blocks
    inside = free & ~BIT[seen.board.exit]  # a way through the exit would leave the stage
    away = distances(BIT[seen.cell], inside)
    options = [(worth - w.far * away[cell], cell) for worth, cell in _options(seen, inside, w)]
    worth, cell = max((o for o in options if away[o[1]] < NO_PATH), default=(0.0, seen.board.exit))
    if worth <= 0:
        worth, cell = 0.0, seen.board.exit
    return Goal(worth, cell, distances(BIT[cell], free if cell == seen.board.exit else inside))


def _options(seen: Seen, inside: int, w: ScriptedWeights) -> Iterator[tuple[float, int]]:
    """The worth of each cell that may be worth going to."""
    for cell in members(seen.board.data_siphons):
        yield w.fetch, cell
    if seen.siphons:
        gains, spawns = _gains(seen, w), _spawns(seen)
        for cell in members(inside):
            crowd, gain = 0, 0.0
            for c in CROSS[cell]:
                crowd += spawns[c]
                gain += gains[c]
            yield gain - w.crowd * crowd * crowd - w.siphon, cell


def _gains(seen: Seen, w: ScriptedWeights) -> list[float]:
    """The gain of siphoning each cell, less the cost of its spawns."""
    gains = [0.0] * CELLS
    credit = w.credit * next_one(seen.credits, w.enough)
    energy = w.energy * next_one(seen.energy, w.enough)
    for cell, amounts in seen.board.resources.items():
        gains[cell] = credit * amounts[0] + energy * amounts[1]
    for cell, block in seen.board.unsiphoned.items():
        gains[cell] = -w.spawn * block.spawn
        if block.content == Content.QUESTION:
            gains[cell] -= w.question
        elif block.content == Content.PROGRAM and not seen.owned >> block.value & 1:
            gains[cell] += w.programs[block.value] * future(seen.stage, w)
    return gains


def _spawns(seen: Seen) -> list[int]:
    """The spawns of each cell that would be siphoned."""
    spawns = [0] * CELLS
    for cell, block in seen.board.unsiphoned.items():
        spawns[cell] = block.spawn
    return spawns
