"""The layout `tactical` natively, equal to that of the Python engine."""

import random

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lockstep_starts import full, new, next_to_the_exit, quiet, rich
from strategies import legal_states

from hackmatrix.game.engine import Game
from hackmatrix.game.engine.observation import observe
from hackmatrix.game.engine.saving import state_from_dict
from hackmatrix.game.foresight.features import features
from hackmatrix.game.foresight.python_layout import tactical_numbers
from hackmatrix.game.native import batch, xla
from hackmatrix.game.rules.tactical import GROUPS, START


def assert_equal(records: list[bytes]) -> None:
    array = np.frombuffer(b"".join(records), np.uint8).reshape(len(records), -1)
    got = batch.tactical_numbers(array)
    for record, numbers in zip(records, got, strict=True):
        expected = tactical_numbers(record)
        for group in GROUPS:
            span = slice(START[group.name], START[group.name] + group.size)
            assert numbers[span].tolist() == expected[span], group.name


def played(rng: random.Random, games: int) -> list[bytes]:
    records = []
    for start in (new, rich, rich, quiet, full, next_to_the_exit):
        for _ in range(games):
            game = Game(start(rng))
            for _ in range(rng.randrange(4)):
                if valid := game.valid_actions():
                    game.step(rng.choice(valid))
            records.append(game.observation())
    return records


def test_the_same_while_playing() -> None:
    assert_equal(played(random.Random(0), games=30))


@pytest.mark.slow
def test_the_same_while_playing_much() -> None:
    assert_equal(played(random.Random(1), games=2_000))


@settings(max_examples=60, deadline=None)
@given(st.lists(legal_states(ended=True), min_size=2, max_size=2))
def test_the_same_of_any_legal_state(states: list[dict]) -> None:
    assert_equal([observe(state_from_dict(data)) for data in states])


def test_the_same_in_a_compiled_program() -> None:
    records = np.frombuffer(b"".join(played(random.Random(2), 2)), np.uint8).reshape(12, -1)
    got = jax.jit(xla.tactical_numbers)(records)
    np.testing.assert_array_equal(got, batch.tactical_numbers(records))


@pytest.mark.parametrize("layout", ["classic", "full"])
def test_features_are_those_of_the_python_engine(layout: str) -> None:
    """To the last bit: both divide with one rounding."""
    records = played(random.Random(5), 8)
    made = batch.features(
        np.frombuffer(b"".join(records), np.uint8).reshape(len(records), -1), layout
    )
    expected = np.array([features(record, layout) for record in records], np.float32)
    np.testing.assert_array_equal(made, expected)
    assert len(records) > 20
