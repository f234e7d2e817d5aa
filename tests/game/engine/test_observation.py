"""The record and its features: answers worked out by hand from section 12 of the rules."""

import pytest

from hackmatrix.game.engine import Game
from hackmatrix.game.foresight.features import features

POSITION = """
    .. .. .. .. .c X.
    .. .. .. .. .. ..
    .+ .. .d .. .. ..
    .. ?. .. P. .. ..
    .. Dg .. .. .. ..
    .@ s. D. .. .. ..
    stage 3 turn 4
    player hp 2 credits 300 energy 6 siphons 1 attack 2 score 9
    owned HACK PUSH
    flags calm
    cell 0,0 siphoned center
    cell 0,1 credits 2
    cell 0,2 siphoned points 4 energy 3
    cell 1,1 points 7 spawn 12 credits 1
    cell 2,1 points 6 spawn 6
    cell 2,3 program WARP spawn 5
    enemy daemon 3,2 hp 1 stunned from_siphon
    enemy virus 3,2
    enemy glitch 1,1 from_schedule
    enemy cryptog 5,4 last 4,4
    transmission virus 3,0 turns 20
"""

# (row, col): the bytes of the six planes
BYTES = {
    (0, 0): (0, 0, 0b001100, 0b1010_00_00, 0, 0),
    (0, 1): (0, 1 << 7, 0b010000, 0b1010_00_10, 0, 0),  # 11 steps from the exit
    (0, 2): (0, 1 << 7, 0b000101, 0b1010_11_00, 4, 0),
    (1, 0): (0, 1 << 7, 0, 9 << 4, 0, 0),
    (1, 1): (0b0_0_0_10_011, 0, 0b01_000001, 0b1010_00_00, 7, 12),
    (2, 1): (0, 0, 0b000011, 0b1010_00_00, 0, 0),
    (2, 3): (0, 0, 0b000010, 0b1010_00_00, 3, 5),
    (3, 0): (0, 0b1_000_100_1, 0, 7 << 4, 0, 0),
    (3, 2): (0b0_1_1_01_010, 0, 0b10_000000, 5 << 4, 0, 0),
    (4, 4): (0b1000_0000, 0, 0, 2 << 4, 0, 0),
    (5, 4): (0, 0, 0, 1 << 4, 0, 0),
    (5, 5): (0, 0, 0b100000, 0, 0, 0),
}


@pytest.fixture(scope="module")
def record() -> bytes:
    return Game.from_text(POSITION).observation()


def test_the_bytes_of_cells(record: bytes) -> None:
    seen = {
        (row, col): tuple(record[36 * plane + row * 6 + col] for plane in range(6))
        for row, col in BYTES
    }
    assert seen == BYTES


def test_the_bytes_of_the_numbers(record: bytes) -> None:
    assert list(record[216:222]) == [0, 2, 3, 2, 0, 0]  # cell, hp, stage, flags, ATK+, saved
    assert list(record[222:232]) == [300 - 256, 1, 6, 0, 1, 0, 2, 0, 9, 0]
    assert record[232:234] == bytes([4, 0])
    assert list(record[240:]) == [1, 0, 1 << 6, 0]  # PUSH is program 0, HACK 22


def test_the_features(record: bytes) -> None:
    x = features(record, "full")
    assert len(x) == 1946
    assert x[:10] == [0, 0, 2 / 3, 1, 6 / 50, 2 / 7, 1 / 10, 1 / 2, 0, 1]
    assert [i for i in range(23) if x[10 + i]] == [0, 22]

    def of_cell(row: int, col: int) -> dict[int, float]:
        at = row * 6 + col
        classic, extra = x[33 + 42 * at :][:42], x[1545 + 10 * at :][:10]
        return {i: number for i, number in enumerate([*classic, *extra]) if number}

    # The 42 channels of the classic layout, then the 10 of the full one.
    assert of_cell(0, 0) == {41: 1, 47: 1, 51: 1}
    assert of_cell(0, 1) == {37: 2 / 3, 39: 1, 50: 1, 51: 1}
    assert of_cell(0, 2) == {7: 1, 10: 4 / 9, 11: 1, 38: 1, 47: 1, 50: 1, 51: 1}
    assert of_cell(1, 1) == {2: 1, 4: 2 / 3, 7: 1, 10: 7 / 9, 35: 1, 49: 1 / 3, 51: 1}
    assert of_cell(2, 1) == {9: 1, 51: 1}
    assert of_cell(2, 3) == {8: 1, 12 + 3: 1, 35: 5 / 9, 51: 1}
    assert of_cell(3, 0) == {36: 1, 46: 1, 50: 1, 51: 7 / 10}
    assert of_cell(3, 2) == {1: 1, 4: 1 / 3, 5: 1, 6: 1, 49: 2 / 3, 51: 5 / 10}
    assert of_cell(4, 4) == {48: 1, 51: 2 / 10}
    assert of_cell(5, 5) == {40: 1}

    step, turn, until_task, interval, *capped = x[1905:1915]
    next_task, every = record[234] + 256 * record[235], record[236]
    assert (step, turn) == (0, 4 / 20)
    assert until_task == min((next_task - 4) / 12, 1)
    assert interval == every / 12
    assert capped == [0, 0, 9 / 50, 0, 1, 6 / 20]
    assert x[1915:1923] == [0, 0, 1, 0, 0, 0, 0, 0]
    assert [i for i in range(23) if x[1923 + i]] == [0, 22]


def test_show_tells_what_comes_and_where_cryptogs_are() -> None:
    record = Game.from_text(POSITION.replace("flags calm", "flags show step")).observation()
    assert record[219] == 0b101
    assert record[36 + 18] == 0b1_001_100_1  # a virus
    assert record[34] == 0b0_0_0_10_100  # a cryptog
    x = features(record, "full")
    assert (x[8], x[9], x[1905]) == (1, 0, 1)
    assert x[1545 + 10 * 18 :][:4] == [1, 0, 0, 0]
