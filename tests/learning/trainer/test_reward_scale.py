"""The running deviation of returns against one pass over everything."""

import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.learning.trainer.tasks import RewardScale


def test_it_is_the_deviation_from_zero_of_all_steps_so_far() -> None:
    random = np.random.default_rng(0)
    returns = random.normal(loc=3.0, scale=100.0, size=(50, 1_000))
    scale = RewardScale.create()
    for batch in returns:
        scale = scale.updated(jnp.float32((batch**2).sum()), batch.size)
    assert float(scale.count) == returns.size
    assert float(scale.deviation) == pytest.approx(np.sqrt((returns**2).mean()), rel=1e-5)


def test_without_rewards_nothing_is_divided() -> None:
    assert RewardScale.create().deviation == 1
    assert RewardScale.create().updated(jnp.float32(0), 100).deviation == 1


def test_a_game_that_always_pays_the_same_is_scaled_to_one() -> None:
    scale = RewardScale.create().updated(jnp.float32(100 * 500.0**2), 100)
    assert float(500 / scale.deviation) == pytest.approx(1.0)


def test_counts_beyond_float32_still_move_it() -> None:
    scale = RewardScale(mean_square=jnp.float32(1.0), count=jnp.float32(1e10))
    assert float(scale.updated(jnp.float32(1e9), 262_144).mean_square) > 1.0
