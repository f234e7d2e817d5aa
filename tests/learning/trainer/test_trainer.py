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
from hackmatrix.learning.trainer.algorithm import Hyperparameters, Setup, UpdateContext
from hackmatrix.learning.trainer.batches import Batch, with_advantages
from hackmatrix.learning.trainer.config import Course
from hackmatrix.learning.trainer.keys import UpdateKeys
from hackmatrix.learning.trainer.rollout import Rollout, new_games, play
from hackmatrix.learning.trainer.tasks import Spread
from hackmatrix.learning.trainer.trainer import Trainer, TrainState

CONFIG = PPOConfig(num_envs=12, num_steps=10, num_minibatches=3, update_epochs=2)
NETWORK = NetworkConfig(hidden_dim=16, num_layers=1)
KEYS = UpdateKeys(jnp.uint32(0), jnp.int32(0))
HYPER = Hyperparameters.of(dataclasses.replace(CONFIG, gamma=0.9), CONFIG.course)


@pytest.mark.thorough
def test_importing_it_loads_no_game() -> None:
    code = "import sys, hackmatrix.learning.trainer.trainer\n"
    code += "print([name for name in sys.modules if name.startswith('hackmatrix.game')])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


def rollout_of(env: probes.Probe, num_steps: int = 10) -> tuple[Trainer, Any, Rollout]:
    """A trainer, its first params and a rollout of 12 games."""
    trainer = Trainer(env, CONFIG, NETWORK)
    params = trainer.init(0).params
    setup = Setup(env, trainer.network, dataclasses.replace(CONFIG, num_steps=num_steps))

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
    """Position counts 1, 2, 3, ...; the episode ends at 3, by the flags it was made with."""

    feature_size = 1

    def __init__(self, terminated: bool, truncated: bool) -> None:
        self.terminates = terminated
        self.max_episode_steps = 3 if truncated else None
        self.never_truncates = not truncated

    def start(self, key: jax.Array) -> jax.Array:
        return jnp.int32(1)

    def advance(self, key: jax.Array, position: jax.Array, action: jax.Array) -> tuple[Any, ...]:
        return position + 1, position, (position == 3) & self.terminates


@pytest.mark.parametrize(
    ("truncated", "terminated"),
    [
        (True, False),
        (True, True),
        *(pytest.param(False, end, marks=pytest.mark.thorough) for end in (False, True)),
    ],
)
def test_a_final_value_is_kept_only_where_an_episode_is_cut_off(
    terminated: bool, truncated: bool
) -> None:
    trainer, params, rollout = rollout_of(Ends(terminated, truncated), num_steps=7)
    steps = rollout.steps
    last = np.arange(1, 8) % 3 == 0
    np.testing.assert_array_equal(steps.terminated[:, 0], last & terminated)
    np.testing.assert_array_equal(steps.truncated[:, 0], last & truncated)
    if terminated or truncated:  # reset in the same call: the next step starts anew
        np.testing.assert_array_equal(steps.obs[:, 0, 0], [1, 2, 3, 1, 2, 3, 1])
    _, after_last, _ = jax.jit(trainer.network.__call__)(params, jnp.uint8([[4]]))
    expected = np.where(last & truncated & (not terminated), after_last, 0.0)
    np.testing.assert_allclose(steps.final_value[:, 0], expected, rtol=1e-6)


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

    assert network_calls(Ends(True, True)) > network_calls(Ends(True, False))


def test_discounted_returns_and_episode_sums_restart_with_each_episode() -> None:
    _, _, rollout = rollout_of(Ends(True, False), num_steps=7)
    games = 12
    ramp = [1, 0.9 + 2, 0.81 + 1.8 + 3]
    squares = games * (2 * sum(r**2 for r in ramp) + 1)
    assert float(rollout.sum_of_squares) == pytest.approx(squares, rel=1e-6)
    row = summarise(measures.by_name(rollout.measures, LEARNER_METRICS), LEARNER_METRICS)
    assert row["train/num_episodes"] == 2 * games
    assert row["train/mean_episode_return"] == pytest.approx(6)
    assert row["train/mean_episode_length"] == pytest.approx(3)
    assert row["train/mean_reward"] == pytest.approx(13 / 7)


def run_in_chunks(chunks: list[int]) -> TrainState:
    trainer = SharingTrainer(probes.Grid(), CONFIG, NETWORK)
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
    trainer = SharingTrainer(probes.Grid(), CONFIG, NETWORK)
    one, same, other = (trainer.run(trainer.init(seed), 3) for seed in (1, 1, 2))
    assert_same(one, same)
    with pytest.raises(AssertionError):
        assert_same(one.params, other.params)


def test_the_first_gradient_step_meets_the_policy_that_acted() -> None:
    config = dataclasses.replace(CONFIG, update_epochs=1, num_minibatches=1, lr=1e-6)
    trainer = Trainer(probes.Pairing(), config, NETWORK)
    _, sums = trainer.take_sums(trainer.run(trainer.init(0), 1))
    row = summarise(jax.device_get(sums), LEARNER_METRICS)
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


@pytest.mark.parametrize("xp", [np, jnp])
def test_the_entropy_bonus_falls_exponentially(xp: ModuleType) -> None:
    course = Course(CONFIG.batch_size, 4 * CONFIG.batch_size)
    config = dataclasses.replace(CONFIG, ent_coef=0.16, final_ent_coef=0.01)
    hyper = Hyperparameters.of(config, course)
    weights = [float(hyper.entropy_coef(update, xp)) for update in range(5)]
    assert weights == pytest.approx([0.16, 0.08, 0.04, 0.02, 0.01])
    constant = dataclasses.replace(CONFIG, ent_coef=0.16)
    assert Hyperparameters.of(constant, course).entropy_coef(3, xp) == pytest.approx(0.16)


@pytest.mark.thorough
def test_the_params_to_export_are_averages_over_the_last_part_of_the_updates() -> None:
    config = dataclasses.replace(CONFIG, params_average=0.5, lr=0.1)
    trainer = Trainer(probes.Grid(), config, NETWORK)
    state = trainer.init(3)
    assert_same(trainer.network_params(state), state.params)
    expected = None
    for update, share in enumerate([1, 1, 1 / 1.5, 1 / 2, 1 / 2.5], 1):
        state = trainer.run(state, 1)
        new = jax.device_get(state.params)
        if expected is None:
            expected = new
        expected = jax.tree.map(lambda mean, x, w=share: (1 - w) * mean + w * x, expected, new)
        assert int(state.update) == update
        averages = jax.device_get(trainer.network_params(state))
        jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-6), averages, expected)
    with pytest.raises(AssertionError):
        assert_same(averages, state.params)
    # What is learned does not depend on them.
    alone = dataclasses.replace(config, params_average=None)
    trainer = Trainer(probes.Grid(), alone, NETWORK)
    assert_same(trainer.run(trainer.init(3), 5).params, state.params)


class GridInIntegers(probes.Grid):
    """The same features as integers, which rollouts store."""

    class Integers:
        scales = np.full(probes.Grid.feature_size, 0.5, np.float32)

        def __call__(self, observation: Any) -> jnp.ndarray:
            return 2 * jax.nn.one_hot(observation[0], probes.Grid.feature_size, dtype=jnp.int8)

    feature_integers = Integers()


@pytest.mark.thorough
@pytest.mark.parametrize("normalize", [False, True])
def test_features_as_integers_are_learned_from_as_the_features(normalize: bool) -> None:
    config = dataclasses.replace(CONFIG, normalize_observations=normalize)
    plain, integers = (
        SharingTrainer(env, config, NETWORK) for env in (probes.Grid(), GridInIntegers())
    )
    assert integers.state_shape().games.obs.dtype == jnp.int8
    params = [trainer.run(trainer.init(0), 2).params for trainer in (plain, integers)]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), *params)


@pytest.mark.thorough
def test_the_last_epoch_is_reported() -> None:
    # The first epoch of one minibatch meets the policy that acted, the last one another policy.
    config = dataclasses.replace(CONFIG, update_epochs=4, num_minibatches=1, lr=1e-2)
    trainer = Trainer(probes.Policy(), config, NETWORK)
    _, sums = trainer.take_sums(trainer.run(trainer.init(0), 1))
    assert summarise(jax.device_get(sums), LEARNER_METRICS)["train/approx_kl"] > 1e-5


@pytest.mark.thorough
def test_each_update_shuffles_anew() -> None:
    trainer = Trainer(probes.Discount(), CONFIG, NETWORK)  # where chance is in the shuffling only
    one, same, later = trainer.init(0), trainer.init(0), trainer.init(0)
    later = dataclasses.replace(later, update=jnp.int32(5))
    one, same, later = (trainer.run(state, 1) for state in (one, same, later))
    assert_same(one.params, same.params)
    with pytest.raises(AssertionError):
        assert_same(one.params, later.params)


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


@pytest.mark.slow
def test_rewards_are_scaled_for_learning_and_reported_as_they_are() -> None:
    class Thousandfold(probes.Policy):
        def advance(self, *args: Any) -> tuple[Any, ...]:
            position, reward, terminated = super().advance(*args)
            return position, 1000 * reward, terminated

    config = dataclasses.replace(CONFIG, max_grad_norm=1e6)
    rows = []
    for env in (probes.Policy(), Thousandfold()):
        trainer = Trainer(env, config, NETWORK)
        _, sums = trainer.take_sums(trainer.run(trainer.init(0), 4))
        rows.append(summarise(jax.device_get(sums), LEARNER_METRICS))
    small, large = rows
    assert large["train/mean_reward"] == pytest.approx(1000 * small["train/mean_reward"])
    assert large["train/reward_scale"] == pytest.approx(1000 * small["train/reward_scale"])
    for name in ("train/vf_loss", "train/pg_loss", "train/entropy", "train/explained_variance"):
        assert large[name] == pytest.approx(small[name], rel=1e-3, abs=1e-5)


def test_a_transition_is_stored_in_few_bytes() -> None:
    _, _, rollout = rollout_of_pairing()
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(rollout.steps)) / (12 * 10)
    record = 1  # byte of observation
    assert size - record <= 24


def test_one_program_serves_every_length_of_call_and_moves_nothing_to_the_host() -> None:
    trainer = SharingTrainer(probes.Grid(), CONFIG, NETWORK)
    state = trainer.run(trainer.init(0), 1)
    counts = [jnp.int32(n) for n in (2, 3)]
    with jax.transfer_guard("disallow"):
        for count in counts:
            state = trainer._run(state, count, trainer.hyper)
    assert int(state.update) == 6
    assert trainer._run._cache_size() == 1


def test_a_run_starts_in_the_state_of_its_seed_with_its_update_compiled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trainer = Trainer(probes.Grid(), CONFIG, NETWORK)
    with jax.log_compiles():
        state = trainer.start(3)
        assert_same(state, trainer.init(3))
        trainer.run(state, 1)
    compiled = [record.getMessage() for record in caplog.records]
    assert sum(message.startswith("Compiling jit(_updates)") for message in compiled) == 1


class Careless(probes.Grid):
    """Starts at a Python number, which the first step makes an array of a type."""

    def start(self, key: jax.Array) -> jax.Array:
        return jnp.asarray(0)


@pytest.mark.thorough
def test_python_numbers_in_a_state_compile_nothing_anew() -> None:
    _, first = Careless().reset(jax.random.key(0))
    assert first.position.aval.weak_type
    trainer = Trainer(Careless(), CONFIG, NETWORK)
    state = trainer.run(trainer.init(0), 0)
    assert int(trainer.run(state, 1).update) == 1
    assert trainer._run._cache_size() == 1


def test_the_state_that_was_run_is_used_up() -> None:
    trainer = SharingTrainer(probes.Grid(), CONFIG, NETWORK)
    state = trainer.init(0)
    trainer.run(state, 1)
    assert state.params["params"]["Dense_0"]["kernel"].is_deleted()


def test_every_metric_of_an_update_is_finite() -> None:
    trainer = SharingTrainer(probes.Grid(), CONFIG, NETWORK)
    state, sums = trainer.take_sums(trainer.run(trainer.init(0), 5))
    assert set(sums) == {metric.name for metric in device_metrics(LEARNER_METRICS)}
    row = summarise(sums, LEARNER_METRICS)
    assert all(np.isfinite(v) for v in row.values() if v is not None)
    assert not np.asarray(state.sums).any()
