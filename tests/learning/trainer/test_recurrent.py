"""A recurrent network is injected, remembers, and learns from whole sequences."""

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import probe_environments as probes
import pytest
from memory_network import MemoryNetwork
from small_runs import run_of

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.network import unroll
from hackmatrix.agents.roster.batch_players import network_player
from hackmatrix.core.devices import mesh
from hackmatrix.core.errors import UserError
from hackmatrix.learning.algorithms.config import PPOConfig
from hackmatrix.learning.reporting.metrics import LEARNER_METRICS, summarise
from hackmatrix.learning.run.snapshots import arrays_of
from hackmatrix.learning.settings.config import TrainOptions
from hackmatrix.learning.trainer.batches import Batch, Minibatches, shuffle, with_advantages
from hackmatrix.learning.trainer.keys import UpdateKeys
from hackmatrix.learning.trainer.rollout import Rollout, play
from hackmatrix.learning.trainer.trainer import Trainer
from hackmatrix.research.evaluation.games import play as play_games
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.runs.checkpoints import load_checkpoint

pytestmark = pytest.mark.thorough

CONFIG = PPOConfig(num_envs=32, num_steps=16, num_minibatches=2, lr=5e-3, gamma=0.9, ent_coef=0.0)


class Recall(probes.Probe):
    """Shows a bit in the first step alone; three steps later the action must be that bit."""

    feature_size = 2

    def start(self, key: jax.Array) -> jax.Array:
        return jax.random.bernoulli(key).astype(jnp.int32)

    def observe(self, state: probes.State) -> jax.Array:
        shown = jnp.where(state.time == 0, state.position, 0)
        return jnp.stack([shown, state.time == 3]).astype(jnp.uint8)

    def step(self, key: jax.Array, state: probes.State, action: jax.Array) -> Any:
        last = state.time == 3
        first_obs, first = self.reset(key)
        after = dataclasses.replace(state, time=state.time + 1)
        new = jax.tree.map(lambda a, b: jnp.where(last, a, b), first, after)
        obs = jnp.where(last, first_obs, self.observe(after))
        reward = jnp.where(last & (action == state.position), 1.0, 0.0)
        info = {"final_observation": self.observe(after)}
        return obs, new, reward, last, jnp.bool_(False), info


@functools.cache
def trainer_of_memory() -> Trainer:
    env = Recall()
    return Trainer(env, CONFIG, MemoryNetwork(env))


GRU = NetworkConfig("gru", hidden_dim=16, num_layers=1)


@functools.cache
def trainer_of_gru() -> Trainer:
    return Trainer(Recall(), CONFIG, GRU)


@pytest.mark.slow
@pytest.mark.parametrize("trainer_of", [trainer_of_memory, trainer_of_gru])
def test_what_was_shown_is_remembered_in_training_and_in_evaluation(
    trainer_of: Callable[[], Trainer],
) -> None:
    trainer = trainer_of()
    state = trainer.run(trainer.init(0), 120)
    state, _ = trainer.take_sums(state)
    state, sums = trainer.take_sums(trainer.run(state, 10))
    row = summarise(jax.device_get(sums), LEARNER_METRICS)
    assert row["train/mean_episode_return"] > 0.95  # guessing gets 0.5
    player = network_player("memory", trainer.network, state.params, greedy=True)
    assert play_games(Recall(), player, Limits(episodes=200)).returns.mean() > 0.95


KEYS = UpdateKeys(jnp.uint32(0), jnp.int32(9))


@pytest.fixture(scope="module")
def played() -> tuple[Any, Rollout]:
    """Params, and ten steps of games that are in the midst of episodes of four."""
    trainer = trainer_of_memory()
    state = trainer.init(0)
    setup = trainer.setup._replace(config=dataclasses.replace(CONFIG, num_steps=10))

    @jax.jit
    def ten_steps(games: Any) -> Any:
        numbers = jnp.arange(CONFIG.num_envs)
        return play(setup, trainer.algorithm, state.params, games, KEYS, numbers, trainer.hyper)

    games, _ = ten_steps(state.games)
    assert not games.starts.all()
    return state.params, ten_steps(games)[1]


def test_learning_meets_the_very_policy_that_acted(played: tuple[Any, Rollout]) -> None:
    params, rollout = played
    steps, network = rollout.steps, trainer_of_memory().network
    logits, values = unroll(network, params, steps.obs, steps.starts, rollout.first_carry)
    log_probs = jax.nn.log_softmax(logits)
    chosen = jnp.take_along_axis(log_probs, steps.action[..., None].astype(int), axis=-1)[..., 0]
    np.testing.assert_allclose(chosen, steps.stored["log_prob"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(values, steps.value, rtol=1e-4, atol=1e-5)


def test_the_first_gradient_step_changes_nothing_of_the_ratio() -> None:
    env = Recall()
    config = dataclasses.replace(CONFIG, update_epochs=1, num_minibatches=1, lr=1e-6)
    trainer = Trainer(env, config, MemoryNetwork(env))
    _, sums = trainer.take_sums(trainer.run(trainer.init(0), 3))
    row = summarise(jax.device_get(sums), LEARNER_METRICS)
    assert row["train/approx_kl"] == pytest.approx(0, abs=1e-6)
    assert row["train/clip_frac"] == 0


def test_a_batch_keeps_its_sequences(played: tuple[Any, Rollout]) -> None:
    trainer = trainer_of_memory()
    batch = with_advantages(played[1], trainer.hyper)
    assert batch.samples.action.shape == (10, CONFIG.num_envs)
    assert batch.carry.shape == (CONFIG.num_envs, 16)

    def minibatches(batch: Batch) -> Minibatches:
        return shuffle(trainer.setup, batch, KEYS, jnp.int32(0), measure_advantages=True)

    one_device = jax.tree.map(lambda x: x[None], batch)
    (indices,), (mean, deviation) = jax.vmap(minibatches, axis_name=mesh.AXIS)(one_device)
    for games, *of_these in zip(indices, mean[0], deviation[0], strict=True):
        advantages = batch.samples.advantage[:, games]
        expected = [jnp.mean(advantages), jnp.std(advantages)]
        np.testing.assert_allclose(of_these, expected, rtol=1e-5)


def test_the_carry_is_part_of_a_checkpoint() -> None:
    state = trainer_of_memory().init(0)
    assert arrays_of(state)["games.carry"].shape == (CONFIG.num_envs, 16)


def test_minibatches_need_equally_many_games() -> None:
    env = Recall()
    config = PPOConfig(num_envs=6, num_steps=16, num_minibatches=4)
    with pytest.raises(UserError, match="--num-minibatches 4 must divide --num-envs 6"):
        Trainer(env, config, MemoryNetwork(env))


def test_observations_that_it_does_not_read_as_features_are_not_normalised() -> None:
    env = Recall()
    config = dataclasses.replace(CONFIG, normalize_observations=True)
    with pytest.raises(UserError, match="--normalize-observations works with networks"):
        Trainer(env, config, MemoryNetwork(env))


@pytest.mark.slow
def test_a_resumed_run_goes_on_with_what_it_remembered(tmp_path: Path) -> None:
    settings = {"architecture": "gru", "num_minibatches": 2, "env": Recall()}
    run_of(tmp_path / "whole", total_timesteps=6 * 64, save_interval=3, **settings)
    run_of(tmp_path / "stopped", total_timesteps=3 * 64, **settings)
    folder = tmp_path / "stopped" / "mine"
    arrays, _ = load_checkpoint(folder / "checkpoints" / "3")
    assert np.abs(arrays["games.carry"]).max() > 0
    run_of(
        tmp_path / "stopped",
        TrainOptions(resume=str(folder)),
        total_timesteps=6 * 64,
        env=settings["env"],
    )
    arrays, expected = (
        load_checkpoint(tmp_path / name / "mine" / "checkpoints" / "6")[0]
        for name in ("stopped", "whole")
    )
    for name in arrays:
        assert arrays[name].tobytes() == expected[name].tobytes(), name
