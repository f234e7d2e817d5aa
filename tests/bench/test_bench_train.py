"""`bench.train` and `bench.memory`: what they report of a training run."""

import jax
import probe_environments as probes
import pytest

from hackmatrix.bench import memory, train
from hackmatrix.bench.settings import train_config
from hackmatrix.bench.train import Training, megaflops_per_step
from hackmatrix.bench.update_parts import PARTS, seconds_of_parts
from hackmatrix.learner.trainer import Trainer
from hackmatrix.settings.config import TrainConfig

LARGE = (2_048, 128, None, None, "float32", "classic")


def test_the_large_batch_is_scaled_as_hackmatrix_train_does() -> None:
    config = train_config(*LARGE)
    assert (config.update_epochs, config.num_minibatches) == (2, 32)
    given = train_config(2_048, 128, 3, 16, "bfloat16", "full")
    assert (given.update_epochs, given.num_minibatches) == (3, 16)
    assert (given.dtype, given.observation) == ("bfloat16", "full")


def test_products_cost_what_issue_and_paper_say() -> None:
    assert megaflops_per_step(train_config(*LARGE)) == pytest.approx(4.98, abs=0.005)
    original = train_config(256, 128, 4, 4, "float32", "classic")
    assert megaflops_per_step(original) == pytest.approx(9.02, abs=0.005)


def test_the_limit_is_the_products_rate_over_their_cost() -> None:
    seconds = dict.fromkeys(PARTS, 0.5)
    rates, product_rates = [20e3, 40e3, 30e3], [99.6, 110, 90]
    told = Training(train_config(*LARGE), 9.0, rates, product_rates, seconds, {"entropy": 1.25})
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
    assert all(f"{line} " in text for line in PARTS.values())


def test_every_part_of_an_update_is_timed() -> None:
    config = TrainConfig(num_envs=4, num_steps=3, num_minibatches=2, update_epochs=2, hidden_dim=8)
    env = probes.Grid()
    trainer = Trainer(env, config)
    seconds = seconds_of_parts(env, trainer, trainer.init(0), repeats=1)
    assert set(seconds) == set(PARTS)
    assert all(s > 0 for s in seconds.values())


@pytest.mark.slow
def test_training_is_reported_as_it_ran() -> None:
    measured = train.measure(num_envs=8, num_steps=4, epochs=3, minibatches=2, repeats=2)
    told = measured.as_dict()
    assert (told["num_envs"], told["num_steps"]) == (8, 4)
    assert (told["epochs"], told["minibatches"], told["repeats"]) == (3, 2, 2)
    assert 0 < told["min"] <= told["median"] <= told["max"]
    assert 0 < told["product_gflops"] < 1e6
    assert 0 < told["entropy"] < 3.4  # ln 28 and a little
    assert told["vf_loss"] > 0


def test_memory_counts_every_buffer_of_a_rollout() -> None:
    config = train_config(8, 4, None, None, "float32", "classic")
    record = 243
    # action, mask, log-probability, value, reward, two flags, final value, advantage
    numbers = 1 + 4 * 4 + 2 + 4 + 4
    after_last = 8 * 4  # values float32[8]
    measures = memory._rollout_bytes(config) - 8 * 4 * (record + numbers) - after_last
    assert 0 < measures < 500
    large = memory._rollout_bytes(train_config(*LARGE)) / (2_048 * 128)
    assert large <= 400


@pytest.mark.slow
def test_memory_of_a_fresh_process() -> None:
    told = memory.measure(num_envs=8, num_steps=4, updates=1).as_dict()
    assert (told["num_envs"], told["num_steps"]) == (8, 4)
    assert 50e6 < told["peak_rss"] < 2e9
    assert told["xla_temporary"] > 8 * 4 * 243
    assert told["device"] == jax.devices()[0].device_kind
