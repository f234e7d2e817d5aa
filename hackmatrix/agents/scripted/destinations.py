"""Where the scripted player wants to go."""

from collections.abc import Iterator
from typing import NamedTuple

from hackmatrix.agents.scripted.values import future, next_one
from hackmatrix.agents.scripted.weights import ScriptedWeights
from hackmatrix.game.foresight.cell_sets import ALL, BIT, NO_PATH, distances, members
from hackmatrix.game.foresight.visible_state import VisibleState
from hackmatrix.game.rules.board import CELLS, CROSS, Content


class Goal(NamedTuple):
    """The cell to go to."""

    worth: float  # what is there, less the way; 0 for the exit
    cell: int
    away: tuple[int, ...]  # walking distance to it from each cell


def best_goal(visible: VisibleState, w: ScriptedWeights) -> Goal:
    """The best of the data siphons to fetch and the cells to siphon; else the exit."""
    free = ALL & ~visible.board.blocks
    inside = free & ~BIT[visible.board.exit]  # a way through the exit would leave the stage
    away = distances(BIT[visible.cell], inside)
    options = [(worth - w.far * away[cell], cell) for worth, cell in _options(visible, inside, w)]
    worth, cell = max(
        (o for o in options if away[o[1]] < NO_PATH), default=(0.0, visible.board.exit)
    )
    if worth <= 0:
        worth, cell = 0.0, visible.board.exit
    return Goal(worth, cell, distances(BIT[cell], free if cell == visible.board.exit else inside))


def _options(visible: VisibleState, inside: int, w: ScriptedWeights) -> Iterator[tuple[float, int]]:
    """The worth of each cell that may be worth going to."""
    for cell in members(visible.board.data_siphons):
        yield w.fetch, cell
    if visible.siphons:
        gains, spawns = _gains(visible, w), _spawns(visible)
        for cell in members(inside):
            crowd, gain = 0, 0.0
            for c in CROSS[cell]:
                crowd += spawns[c]
                gain += gains[c]
            yield gain - w.crowd * crowd * crowd - w.siphon, cell


def _gains(visible: VisibleState, w: ScriptedWeights) -> list[float]:
    """The gain of siphoning each cell, less the cost of its spawns."""
    gains = [0.0] * CELLS
    credit = w.credit * next_one(visible.credits, w.enough)
    energy = w.energy * next_one(visible.energy, w.enough)
    for cell, amounts in visible.board.resources.items():
        gains[cell] = credit * amounts[0] + energy * amounts[1]
    for cell, block in visible.board.unsiphoned.items():
        gains[cell] = -w.spawn * block.spawn
        if block.content == Content.QUESTION:
            gains[cell] -= w.question
        elif block.content == Content.PROGRAM and not visible.owned >> block.value & 1:
            gains[cell] += w.programs[block.value] * future(visible.stage, w)
    return gains


def _spawns(visible: VisibleState) -> list[int]:
    """The spawns of each cell that would be siphoned."""
    spawns = [0] * CELLS
    for cell, block in visible.board.unsiphoned.items():
        spawns[cell] = block.spawn
    return spawns
