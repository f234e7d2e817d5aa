"""Where the scripted player wants to go."""

from collections.abc import Iterator
from typing import NamedTuple

from hackmatrix.agents.scripted.cells import ALL, BIT, NO_PATH, distances, members
from hackmatrix.agents.scripted.values import future, next_one
from hackmatrix.agents.scripted.view import View
from hackmatrix.agents.scripted.weights import Weights
from hackmatrix.game.rules.board import CELLS, CROSS, Content


class Goal(NamedTuple):
    """The cell to go to."""

    worth: float  # what is there, less the way; 0 for the exit
    cell: int
    away: tuple[int, ...]  # walking distance to it from each cell


def best_goal(view: View, w: Weights) -> Goal:
    """The best of the data siphons to fetch and the cells to siphon; else the exit."""
    free = ALL & ~view.board.blocks
    inside = free & ~BIT[view.board.exit]  # a way through the exit would leave the stage
    away = distances(view.cell, inside)
    options = [(worth - w.far * away[cell], cell) for worth, cell in _options(view, inside, w)]
    worth, cell = max((o for o in options if away[o[1]] < NO_PATH), default=(0.0, view.board.exit))
    if worth <= 0:
        worth, cell = 0.0, view.board.exit
    return Goal(worth, cell, distances(cell, free if cell == view.board.exit else inside))


def _options(view: View, inside: int, w: Weights) -> Iterator[tuple[float, int]]:
    """What is worth going to, and its cell."""
    for cell in members(view.board.data_siphons):
        yield w.fetch, cell
    if view.siphons:
        gains, spawns = _gains(view, w), _spawns(view)
        for cell in members(inside):
            cross = CROSS[cell]
            crowd = sum(spawns[c] for c in cross)
            yield sum(gains[c] for c in cross) - w.crowd * crowd * crowd - w.siphon, cell


def _gains(view: View, w: Weights) -> list[float]:
    """What siphoning each cell would give, and cost by its spawns."""
    gains = [0.0] * CELLS
    credit = w.credit * next_one(view.credits, w.enough)
    energy = w.energy * next_one(view.energy, w.enough)
    for cell, amounts in view.board.resources.items():
        gains[cell] = credit * amounts[0] + energy * amounts[1]
    for cell, block in view.board.unsiphoned.items():
        gains[cell] = -w.spawn * block.spawn
        if block.content == Content.QUESTION:
            gains[cell] -= w.question
        elif block.content == Content.PROGRAM and not view.owned >> block.value & 1:
            gains[cell] += w.programs[block.value] * future(view.stage, w)
    return gains


def _spawns(view: View) -> list[int]:
    """The spawns of each cell that would be siphoned."""
    spawns = [0] * CELLS
    for cell, block in view.board.unsiphoned.items():
        spawns[cell] = block.spawn
    return spawns
