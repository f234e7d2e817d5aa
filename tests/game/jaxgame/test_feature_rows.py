"""Table rows and dense part add up to the features of the Python engine."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import legal_states

from hackmatrix.game.engine.observation import observe
from hackmatrix.game.engine.saving import state_from_dict
from hackmatrix.game.foresight.features import features
from hackmatrix.game.jaxgame.feature_rows import HackMatrixFeatureRows
from hackmatrix.game.rules.observation import FEATURE_SIZE, RECORD_SIZE


@functools.cache
def feature_rows(layout: str) -> HackMatrixFeatureRows:
    return HackMatrixFeatureRows(layout)


@settings(max_examples=60, deadline=None)
@given(legal_states(ended=True), st.sampled_from(["classic", "full"]))
def test_they_add_up_to_the_features_of_any_legal_state(data: dict, layout: str) -> None:
    record = observe(state_from_dict(data))
    split = feature_rows(layout)
    dense, rows = split(jnp.frombuffer(record, jnp.uint8))
    got = np.zeros(FEATURE_SIZE[layout])
    got[split.dense_columns] = dense
    rows = np.asarray(rows)
    assert rows.min() >= 0
    np.add.at(got, split.columns[rows], split.weights[rows])
    np.testing.assert_allclose(got, features(record, layout), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("layout", ["classic", "full"])
def test_every_row_but_the_first_is_a_feature_vector_of_its_own(layout: str) -> None:
    split = feature_rows(layout)
    assert not split.weights[0].any()
    vectors = set()
    for columns, weights in zip(split.columns[1:], split.weights[1:], strict=True):
        there = weights != 0
        assert len(set(columns[there])) == there.sum()
        vectors.add(tuple(sorted(zip(columns[there], weights[there], strict=True))))
    # Only a siphoned mark without a block shows nothing in the classic layout.
    assert len(vectors) >= len(split.weights) - 37


@pytest.mark.parametrize("layout", ["classic", "full"])
def test_an_empty_board_needs_no_rows(layout: str) -> None:
    _, rows = jax.jit(feature_rows(layout))(jnp.zeros(RECORD_SIZE, jnp.uint8))
    assert not rows.any()
