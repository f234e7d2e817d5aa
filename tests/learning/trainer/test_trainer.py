"""The update as a whole: what a rollout holds, reproducibility, sizes, and no hidden transfers."""

import dataclasses
import functools
import subprocess
import sys
from functools import partial
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import probe_environments as probes
import pytest
from sharing_trainer import SharingTrainer

from hackmatrix.agents.networks import distribution
from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.core.devices.mesh import REPLICATED, on_devices
from hackmatrix.learning.algorithms.config import PPOConfig
from hackmatrix.learning.algorithms.ppo import PPO
from hackmatrix.learning.reporting.metrics import (
    LEARNER_METRICS,
    device_metrics,
    summarise,
)
from hackmatrix.learning.trainer import measures
from hackmatrix.learning.trainer.algorithm import Hyperparameters, UpdateContext
from hackmatrix.learning.trainer.batches import Batch, with_advantages
from hackmatrix.learning.trainer.config import Course
from hackmatrix.learning.trainer.keys import UpdateKeys
from hackmatrix.learning.trainer.rollout import Rollout, new_games, play
from hackmatrix.learning.trainer.tasks import Spread
from hackmatrix.learning.trainer.trainer import Trainer, TrainState

CONFIG = PPOConfig(num_envs=12, num_steps=10, num_minibatches=3, update_epochs=2)
NETWORK = NetworkConfig(hidden_dim=16, num_layers=1)
NORMALISING = dataclasses.replace(CONFIG, normalize_observations=True)
KEYS = UpdateKeys(jnp.uint32(0), jnp.int32(0))
HYPER = Hyperparameters.of(dataclasses.replace(CONFIG, gamma=0.9), CONFIG.course)


@pytest.mark.thorough
def test_importing_it_loads_no_game() -> None:
    code = "import sys, hackmatrix.learning.trainer.trainer\n"
    code += "print([name for name in sys.modules if name.startswith('hackmatrix.game')])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


def rollout_of(env: probes.Probe) -> tuple[Trainer, Any, Rollout]:
    """A trainer, its first params and a rollout of 12 games."""
    trainer = Trainer(env, CONFIG, NETWORK)
    params = trainer.init(0).params
    setup = trainer.setup

    @jax.jit
    def rolled_out(params: Any) -> Rollout:
        numbers = jnp.arange(12)
        games = new_games(setup, KEYS, numbers)
        return play(setup, trainer.algorithm, params, games, KEYS, numbers, HYPER)[1]

    return trainer, params, rolled_out(params)


@functools.cache
def rollout_of_pairing() -> tuple[Trainer, Any, Rollout]:
    return rollout_of(probes.Pairing())


def assert_same(one: Any, other: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(one), jax.device_get(other))


@pytest.mark.thorough
def test_observation_mask_and_log_probability_belong_to_the_moment_of_choice() -> None:
    env = probes.Pairing()
    trainer, params, rollout = rollout_of_pairing()
    steps = rollout.steps
    logits, values, _ = jax.jit(trainer.network.__call__)(params, steps.obs.reshape(-1, 1))
    mask = distribution.unpack_mask(steps.mask.reshape(-1), env.num_actions)
    assert {tuple(row) for row in np.asarray(mask)} == {(1, 1, 0, 0), (0, 0, 1, 1)}
    action = steps.action.reshape(-1)
    assert np.asarray(jnp.take_along_axis(mask, action[:, None].astype(int), axis=1)).all()
    log_probs = distribution.log_probabilities(logits, mask)
    expected = distribution.log_probability(log_probs, action)
    np.testing.assert_allclose(steps.stored["log_prob"].reshape(-1), expected, rtol=1e-6)
    np.testing.assert_allclose(steps.value.reshape(-1), values, rtol=1e-5, atol=1e-6)
    # The reward answers this observation and this action.
    np.testing.assert_array_equal(steps.reward, steps.action % 2 == steps.obs[..., 0] % 2)


class Ends(probes.Probe):
    """An episode that begins at 10 is over after two steps; one that begins at 20 is cut off after
    three; one that begins at 30 is over and cut off after three. Rewards are 1, 2 and 3.
    """

    max_episode_steps: int | None = 3

    def start(self, key: jax.Array) -> jax.Array:
        return 10 * jax.random.randint(key, (), 1, 4)

    def advance(self, key: jax.Array, position: jax.Array, action: jax.Array) -> tuple[Any, ...]:
        return position + 1, position % 10 + 1, (position == 11) | (position == 32)


class NeverCutOff(Ends):
    max_episode_steps = None
    never_truncates = True


@functools.cache
def rollout_of_ends() -> tuple[Trainer, Any, Rollout]:
    return rollout_of(Ends())


@pytest.mark.thorough
def test_a_final_value_is_kept_only_where_an_episode_is_cut_off() -> None:
    trainer, params, rollout = rollout_of_ends()
    steps = jax.device_get(rollout.steps)
    position = steps.obs[..., 0]
    assert {11, 22, 32} <= {*position.ravel().tolist()}
    np.testing.assert_array_equal(steps.terminated, np.isin(position, (11, 32)))
    np.testing.assert_array_equal(steps.truncated, np.isin(position, (22, 32)))
    # Reset in the same call: the next step starts anew.
    ended = (steps.terminated | steps.truncated)[:-1]
    following = np.where(ended, position[1:] % 10, position[1:] - position[:-1])
    np.testing.assert_array_equal(following, ~ended)
    _, after_last, _ = jax.jit(trainer.network.__call__)(params, jnp.uint8([[23]]))
    expected = np.where(position == 22, after_last, 0.0)
    np.testing.assert_allclose(steps.final_value, expected, rtol=1e-6)


def test_values_of_final_observations_cost_nothing_where_nothing_is_cut_off() -> None:
    def network_calls(env: probes.Probe) -> int:
        trainer = Trainer(env, CONFIG, NETWORK)
        state = trainer.state_shape()
        jaxpr = jax.make_jaxpr(
            lambda s: play(
                *(trainer.setup, trainer.algorithm, s.params, s.games),
                *(KEYS, jnp.arange(12), HYPER),
            )
        )(state)
        return str(jaxpr).count("dot_general")

    assert network_calls(Ends()) > network_calls(NeverCutOff())


@pytest.mark.thorough
def test_discounted_returns_and_episode_sums_restart_with_each_episode() -> None:
    _, _, rollout = rollout_of_ends()
    steps = jax.device_get(rollout.steps)
    ended = steps.terminated | steps.truncated
    squares, lengths = 0.0, []
    for game in range(12):
        discounted, length = 0.0, 0
        for reward, is_last in zip(steps.reward[:, game], ended[:, game], strict=True):
            discounted, length = 0.9 * discounted + reward, length + 1
            squares += discounted**2
            if is_last:
                lengths.append(length)
                discounted, length = 0.0, 0
    assert float(rollout.sum_of_squares) == pytest.approx(squares, rel=1e-6)
    row = summarise(measures.by_name(rollout.measures, LEARNER_METRICS), LEARNER_METRICS)
    assert row["train/num_episodes"] == len(lengths)
    assert row["train/mean_episode_length"] == pytest.approx(np.mean(lengths))
    returns = {2: 1 + 2, 3: 1 + 2 + 3}
    assert row["train/mean_episode_return"] == pytest.approx(np.mean([returns[n] for n in lengths]))
    assert row["train/mean_reward"] == pytest.approx(steps.reward.mean())


def run_in_chunks(chunks: list[int]) -> TrainState:
    trainer = SharingTrainer(probes.Grid(), NORMALISING, NETWORK)
    state = trainer.init(3)
    for count in chunks:
        state = trainer.run(state, count)
    return state


@pytest.mark.thorough
def test_the_length_of_a_call_changes_nothing_bit_for_bit() -> None:
    whole = run_in_chunks([12])
    assert int(whole.update) == 12
    assert_same(whole, run_in_chunks([1] * 12))
    assert_same(whole, run_in_chunks([0, 5, 4, 3]))


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    trainer = SharingTrainer(probes.Grid(), NORMALISING, NETWORK)
    one, same, other = (trainer.run(trainer.init(seed), 3) for seed in (1, 1, 2))
    assert_same(one, same)
    with pytest.raises(AssertionError):
        assert_same(one.params, other.params)
    # The games of a resumed run are not those of its beginning.
    first, later = (trainer.init(1, update).games.env_state.position for update in (0, 7))
    assert first.tolist() != later.tolist()


class Careless(probes.Pairing):
    """Starts at a Python number, which the first step makes an array of a type."""

    def start(self, key: jax.Array) -> jax.Array:
        return jnp.asarray(0)


@pytest.mark.thorough
def test_a_run_starts_with_its_update_compiled_which_meets_the_policy_that_acted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    env = Careless()
    assert env.reset(jax.random.key(0))[1].position.aval.weak_type
    config = dataclasses.replace(CONFIG, update_epochs=1, num_minibatches=1, lr=1e-6)
    trainer = Trainer(env, config, NETWORK)
    with jax.log_compiles():
        state = trainer.start(3)
        assert_same(state, trainer.init(3))
        state = trainer.run(trainer.run(state, 0), 1)
    compiled = [record.getMessage() for record in caplog.records]
    assert sum(message.startswith("Compiling jit(_updates)") for message in compiled) == 1

    row = summarise(jax.device_get(trainer.take_sums(state)[1]), LEARNER_METRICS)
    assert row["train/approx_kl"] == pytest.approx(0, abs=1e-6)
    assert row["train/clip_frac"] == 0
    assert row["train/entropy"] == pytest.approx(np.log(2), abs=1e-3)  # two of four are valid
    assert row["train/entropy_frac"] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("xp", [np, jnp])
def test_the_learning_rate_follows_its_schedule(xp: ModuleType) -> None:
    course = Course(CONFIG.batch_size, 7 * CONFIG.batch_size)
    progress = np.arange(7) / 7
    expected = {"linear": 1 - progress, "cosine": (1 + np.cos(np.pi * progress)) / 2}
    for schedule, shares in (expected | {"constant": np.ones(7)}).items():
        config = dataclasses.replace(CONFIG, lr=0.1, lr_schedule=schedule)
        hyper = Hyperparameters.of(config, course)
        rates = [float(hyper.learning_rate(update, xp)) for update in range(7)]
        assert rates == pytest.approx(0.1 * shares)
    # After four updates the batches are twice as large: two more such updates, of eight in all.
    resumed = Course(2 * CONFIG.batch_size, 8 * CONFIG.batch_size, 4, 4 * CONFIG.batch_size)
    hyper = Hyperparameters.of(dataclasses.replace(CONFIG, lr_schedule="linear", lr=1), resumed)
    assert [float(hyper.learning_rate(update, xp)) for update in (4, 5)] == [0.5, 0.25]


@pytest.mark.parametrize("xp", [np, jnp])
def test_the_entropy_bonus_falls_exponentially(xp: ModuleType) -> None:
    course = Course(CONFIG.batch_size, 4 * CONFIG.batch_size)
    config = dataclasses.replace(CONFIG, ent_coef=0.16, final_ent_coef=0.01)
    hyper = Hyperparameters.of(config, course)
    weights = [float(hyper.entropy_coef(update, xp)) for update in range(5)]
    assert weights == pytest.approx([0.16, 0.08, 0.04, 0.02, 0.01])
    constant = dataclasses.replace(CONFIG, ent_coef=0.16)
    assert Hyperparameters.of(constant, course).entropy_coef(3, xp) == pytest.approx(0.16)


@pytest.mark.slow
def test_the_params_to_export_are_averages_over_the_last_part_of_the_updates() -> None:
    config = dataclasses.replace(NORMALISING, params_average=0.5, lr=0.1)
    trainer = Trainer(probes.Grid(), config, NETWORK)
    state = trainer.init(3)
    assert_same(state.averages, state.params)
    expected = None
    for update, share in enumerate([1, 1, 1 / 1.5, 1 / 2, 1 / 2.5], 1):
        state = trainer.run(state, 1)
        new = jax.device_get(state.params)
        if expected is None:
            expected = new
        expected = jax.tree.map(lambda mean, x, w=share: (1 - w) * mean + w * x, expected, new)
        assert int(state.update) == update
        averages = jax.device_get(state.averages)
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-6), averages, expected)
    with pytest.raises(AssertionError):
        assert_same(averages, state.params)
    exported = trainer.network_params(state)["params"]["Dense_1"]  # behind the normalisation
    assert_same(exported, averages["params"]["Dense_1"])
    # What is learned does not depend on them.
    alone = dataclasses.replace(config, params_average=None)
    trainer = SharingTrainer(probes.Grid(), alone, NETWORK)
    assert_same(trainer.run(trainer.init(3), 5).params, state.params)


class GridInIntegers(probes.Grid):
    """The same features as integers, which rollouts store."""

    class Integers:
        scales = np.full(probes.Grid.feature_size, 0.5, np.float32)

        def __call__(self, observation: Any) -> jnp.ndarray:
            return 2 * jax.nn.one_hot(observation[0], probes.Grid.feature_size, dtype=jnp.int8)

    feature_integers = Integers()


@pytest.mark.slow
def test_features_as_integers_are_learned_from_as_the_features() -> None:
    plain, integers = (
        SharingTrainer(env, NORMALISING, NETWORK) for env in (probes.Grid(), GridInIntegers())
    )
    assert integers.state_shape().games.obs.dtype == jnp.int8
    params = [trainer.run(trainer.init(0), 2).params for trainer in (plain, integers)]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), *params)


def test_the_loss_is_that_of_the_paper_by_hand() -> None:
    env = probes.Pairing()
    trainer, params, rollout = rollout_of_pairing()
    noise = np.random.default_rng(0)  # makes another policy than the one that acted
    params = jax.tree.map(lambda p: p + 0.1 * noise.normal(size=p.shape), params)
    config = dataclasses.replace(CONFIG, clip_eps=0.02, ent_coef=0.1, vf_coef=0.7)
    hyper = Hyperparameters.of(config, config.course)
    scaled = rollout.steps.replace(reward=rollout.steps.reward / 2.0)
    batch = with_advantages(rollout.replace(steps=scaled), hyper)
    algorithm = PPO(trainer.setup._replace(config=config))

    def loss(params: Any, batch: Batch) -> Any:
        batch = batch._replace(advantage_spread=Spread.of(batch.samples.advantage, None))
        return algorithm.loss(params, batch, hyper, config.ent_coef)

    total, parts = on_devices(loss, trainer.mesh, REPLICATED, REPLICATED)(params, batch)

    batch = batch.samples
    logits, values, _ = jax.jit(trainer.network.__call__)(params, batch.obs)
    logits, values = np.float64(logits), np.float64(values)
    mask = np.asarray(distribution.unpack_mask(batch.mask, env.num_actions))
    weights = np.exp(logits) * mask
    probs = weights / weights.sum(axis=1, keepdims=True)
    chosen = probs[np.arange(len(probs)), np.asarray(batch.action)]
    ratio = chosen / np.exp(np.float64(batch.stored["log_prob"]))
    raw = np.float64(batch.advantage)
    advantage = (raw - raw.mean()) / raw.std()
    surrogate = np.minimum(ratio * advantage, np.clip(ratio, 0.98, 1.02) * advantage)
    vf_loss = 0.5 * ((values - raw - np.float64(batch.value)) ** 2).mean()
    entropy = -(probs * np.log(np.where(probs > 0, probs, 1))).sum(axis=1).mean()

    assert parts["pg_loss"] == pytest.approx(-surrogate.mean(), rel=1e-4, abs=1e-6)
    assert parts["vf_loss"] == pytest.approx(vf_loss, rel=1e-4)
    assert parts["entropy"] == pytest.approx(entropy, rel=1e-4)
    assert total == pytest.approx(-surrogate.mean() + 0.7 * vf_loss - 0.1 * entropy, rel=1e-4)
    assert parts["clip_frac"] == pytest.approx((np.abs(ratio - 1) > 0.02).mean(), abs=1e-6)
    assert 0 < parts["clip_frac"] < 1
    kl = (ratio - 1 - np.log(ratio)).mean()
    assert parts["approx_kl"] == pytest.approx(kl, rel=1e-3)


@pytest.mark.slow
def test_accumulated_gradients_are_those_of_the_minibatches_together() -> None:
    # Without normalised advantages the mean of two minibatches' gradients is that of both.
    trainer, params, rollout = rollout_of_pairing()
    # Equal advantages are 0 when normalised, so that only the entropy is learned from.
    nothing = dict.fromkeys(("reward", "value", "final_value"), jnp.zeros_like(rollout.steps.value))
    rollout = rollout.replace(
        steps=rollout.steps.replace(**nothing), last_value=jnp.zeros_like(rollout.last_value)
    )

    def learned(minibatches: int, together: int) -> Any:
        config = dataclasses.replace(
            CONFIG,
            num_minibatches=minibatches,
            gradient_accumulation_steps=together,
            update_epochs=1,
            max_grad_norm=1e6,
            vf_coef=0.0,
            ent_coef=0.5,
        )
        algorithm = PPO(trainer.setup._replace(config=config))

        def update(params: Any, rollout: Rollout, hyper: Hyperparameters) -> Any:
            context = UpdateContext(KEYS, hyper, hyper.learning_rate(0), lambda params: params)
            return algorithm.update(algorithm.init(params, 12), rollout, context).state

        hyper = Hyperparameters.of(config, config.course)
        return on_devices(update, trainer.mesh, REPLICATED, REPLICATED)(params, rollout, hyper)

    accumulated, whole = learned(4, 4), learned(1, 1)
    assert int(accumulated.opt_state[1].count) == 1
    is_close = partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-6)
    jax.tree.map(is_close, accumulated.params, whole.params)
    assert int(learned(4, 2).opt_state[1].count) == 2


def test_a_transition_is_stored_in_few_bytes() -> None:
    _, _, rollout = rollout_of_pairing()
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(rollout.steps)) / (12 * 10)
    record = 1  # byte of observation
    assert size - record <= 24


def test_one_program_serves_every_length_of_call_and_moves_nothing_to_the_host() -> None:
    trainer = SharingTrainer(probes.Grid(), NORMALISING, NETWORK)
    state = trainer.run(trainer.init(0), 1)
    counts = [jnp.int32(n) for n in (2, 3)]
    with jax.transfer_guard("disallow"):
        for count in counts:
            state = trainer._run(state, count, trainer.hyper)
    assert int(state.update) == 6
    assert trainer._run._cache_size() == 1


def test_the_state_that_was_run_is_used_up() -> None:
    trainer = SharingTrainer(probes.Grid(), NORMALISING, NETWORK)
    state = trainer.init(0)
    trainer.run(state, 1)
    assert state.params["params"]["Dense_0"]["kernel"].is_deleted()


def test_every_metric_of_an_update_is_finite() -> None:
    trainer = SharingTrainer(probes.Grid(), NORMALISING, NETWORK)
    state, sums = trainer.take_sums(trainer.run(trainer.init(0), 5))
    assert set(sums) == {metric.name for metric in device_metrics(LEARNER_METRICS)}
    row = summarise(sums, LEARNER_METRICS)
    assert all(np.isfinite(v) for v in row.values() if v is not None)
    assert not np.asarray(state.sums).any()
