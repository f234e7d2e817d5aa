"""What an analysis tells of the simulations."""

import numpy as np

from hackmatrix.agents.search.analysis import sequel
from hackmatrix.agents.search.rollouts import NONE


def test_a_line_goes_on_as_long_as_a_quarter_of_the_simulations_agrees() -> None:
    lines = np.array(
        [
            [1, 2, 3, 4],
            [1, 2, 5, 6],
            [1, 2, NONE, NONE],
            [1, 3, 3, 4],
            [2, 2, 3, 4],
            [3, 2, 3, 4],
            [4, 2, 3, 4],
            [5, 2, 3, 4],
        ],
        np.int8,
    )
    assert sequel(lines) == [1, 2]  # of three that did so no two went on alike


def test_a_line_ends_with_the_game() -> None:
    assert sequel(np.array([[1, NONE, NONE], [1, NONE, NONE], [1, 2, 3]], np.int8)) == [1]
    assert sequel(np.zeros((0, 3), np.int8)) == []
