"""Table rows and dense part add up to the features of the Python engine."""

import functools

import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import legal_states

from hackmatrix.game.engine.observation import observe
from hackmatrix.game.engine.saving import state_from_dict
from hackmatrix.game.foresight.features import features
from hackmatrix.game.jaxgame.feature_rows import HackMatrixFeatureRows
from hackmatrix.game.rules.observation import FEATURE_SIZE


@functools.cache
def feature_rows(layout: str) -> HackMatrixFeatureRows:
    return HackMatrixFeatureRows(layout)


@settings(max_examples=25, deadline=None)
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
