"""The inputs of the network `cells` in each layout: features of cells, of actions, of the game."""

from typing import NamedTuple

import numpy as np

from hackmatrix.game.rules.actions import NUM_DIRECTIONS
from hackmatrix.game.rules.board import CELLS
from hackmatrix.game.rules.observation import (
    CELL_FEATURES,
    CLASSIC_SIZE,
    EXTRA_CELL_FEATURES,
    FEATURE_SIZE,
    PLAYER_FEATURES,
)
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.tactical import GROUPS, START, STRIKES

Indices = np.ndarray  # of features

NOWHERE = -1  # the index of a feature that an action does not have: it reads 0


class Reading(NamedTuple):
    """Places of a layout's features, by what they are about."""

    size: int  # number of features
    # The first feature of cell 0 and the number of features of a cell, of each stretch of the
    # layout that has some of all cells one after another; empty: the layout has no board.
    board: tuple[tuple[int, int], ...]
    game: Indices  # int[G], those of the whole game
    directions: Indices  # int[J, 4], what J features say of each direction
    siphon: Indices  # int[J', 1], of siphoning
    programs: Indices  # int[J'', 23], of each program


def reading_of(layout: str) -> Reading:
    """The inputs that are read of an observation in this layout."""
    return _tactical() if layout == "tactical" else _raw(full=layout == "full")


def _raw(*, full: bool) -> Reading:
    """The raw layouts show the board; of directions and siphoning its cells tell."""
    size = FEATURE_SIZE["full" if full else "classic"]
    programs = np.arange(len(PROGRAMS))
    board = [(PLAYER_FEATURES + len(PROGRAMS), CELL_FEATURES)]
    of_programs = [PLAYER_FEATURES + programs]  # owned
    if full:
        board.append((CLASSIC_SIZE, EXTRA_CELL_FEATURES))
        of_programs.append(size - len(PROGRAMS) + programs)  # owned and affordable
    of_cells = [np.arange(first, first + CELLS * count) for first, count in board]
    game = np.setdiff1d(np.arange(size), np.concatenate(of_cells))
    nothing = np.zeros((0, NUM_DIRECTIONS), int)
    return Reading(size, tuple(board), game, nothing, nothing[:, :1], np.array(of_programs))


def _tactical() -> Reading:
    """The layout `tactical` has no board, but says more of each action than cells would."""

    def rows(names: list[str], size: int, first: int = 0) -> list[np.ndarray]:
        return [START[name] + first + np.arange(size) for name in names]

    names = [group.name for group in GROUPS]
    window = [name for name in names if name.startswith("cell_")]
    directions = [
        *rows([name for name in names if name.startswith("go_")], NUM_DIRECTIONS),
        *rows(window, NUM_DIRECTIONS),  # the next cell in each direction,
        *rows(window, NUM_DIRECTIONS, first=NUM_DIRECTIONS),  # and the one behind it
    ]
    siphon = rows([name for name in names if name.startswith(("here_", "best_"))], 1)
    programs = rows([g.name for g in GROUPS if g.size == len(PROGRAMS)], len(PROGRAMS))
    for struck in rows([g.name for g in GROUPS if g.size == len(STRIKES)], len(STRIKES)):
        row = np.full(len(PROGRAMS), NOWHERE)
        row[list(STRIKES)] = struck
        programs.append(row)
    size = FEATURE_SIZE["tactical"]
    read = map(np.array, (directions, siphon, programs))
    return Reading(size, (), np.arange(size), *read)
