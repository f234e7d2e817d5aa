"""`hackmatrix bench train`: what it reports of a training run, and the settings it measures."""

import pytest

from hackmatrix.research.bench.options import UpdateOptions, train_config
from hackmatrix.research.bench.train import Training, megaflops_per_step


def test_the_large_batch_is_scaled_as_hackmatrix_train_does() -> None:
    config = train_config(UpdateOptions())
    assert (config.learning.num_envs, config.learning.num_steps) == (2_048, 128)
    assert (config.learning.update_epochs, config.learning.num_minibatches) == (2, 32)
    options = UpdateOptions(epochs=3, minibatches=16, dtype="bfloat16", observation="full")
    given = train_config(options)
    assert (given.learning.update_epochs, given.learning.num_minibatches) == (3, 16)
    assert (given.network.dtype, given.environment.observation) == ("bfloat16", "full")


def test_products_cost_what_issue_and_paper_say() -> None:
    assert megaflops_per_step(train_config(UpdateOptions())) == pytest.approx(4.98, abs=0.005)
    original = train_config(UpdateOptions(num_envs=256, epochs=4, minibatches=4))
    assert megaflops_per_step(original) == pytest.approx(9.02, abs=0.005)


def test_the_limit_is_the_products_rate_over_their_cost() -> None:
    rates, product_rates = [20e3, 40e3, 30e3], [99.6, 110, 90]
    told = Training(train_config(UpdateOptions()), 9.0, rates, product_rates, {"entropy": 1.25})
    assert told.limit == pytest.approx(20_000, rel=1e-3)
    figures = told.as_dict()
    assert (figures["median"], figures["min"], figures["max"]) == (30e3, 20e3, 40e3)
    assert figures["steps_per_second"] == 30e3
    assert figures["fraction_of_limit"] == pytest.approx(1.5, rel=1e-3)
    assert figures["network"] == [1545, 256, 256]
    text = told.text()
    assert "30,000 training steps/s (median of 3; 20,000 to 40,000)" in text
    assert "reached 150% of it" in text
    assert "entropy 1.25" in text
