"""Learning of several tasks: as many games of each, rewards and advantages in units of each."""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import probe_environments as probes
import pytest
from jax.sharding import PartitionSpec

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.core.devices import mesh
from hackmatrix.core.errors import UserError
from hackmatrix.environments.interface.environment import Step
from hackmatrix.environments.tasks import MultiTask
from hackmatrix.learning.algorithms.config import PPOConfig
from hackmatrix.learning.reporting.metrics import summarise
from hackmatrix.learning.run.snapshots import arrays_of, state_of
from hackmatrix.learning.trainer.tasks import RewardScale, Spread, of_games, sum_over_games
from hackmatrix.learning.trainer.trainer import Trainer

pytestmark = pytest.mark.thorough

NETWORK = NetworkConfig("multi_task", hidden_dim=16, num_layers=1)
CONFIG = PPOConfig(
    num_envs=6,
    num_steps=8,
    num_minibatches=2,
    lr=1e-2,
    ent_coef=0.01,
    normalize_observations=True,
)
ONE = mesh.mesh_of(jax.devices()[:1])


class Dear(probes.Policy):
    """The rewards are a thousand times as large."""

    def step(self, key: jax.Array, state: Any, action: jax.Array) -> Step:
        observation, state, reward, *others = super().step(key, state, action)
        return observation, state, 1000 * reward, *others  # type: ignore[return-value]


@pytest.fixture(scope="module")
def trainer() -> Trainer:
    return Trainer(MultiTask([probes.Pairing(), Dear()]), CONFIG, NETWORK)


@pytest.fixture(scope="module")
def state(trainer: Trainer) -> dict[str, np.ndarray]:
    """After three updates."""
    return arrays_of(trainer.gathered(trainer.run(trainer.init(0), 3)))


def test_rewards_are_scaled_for_each_task(state: dict[str, np.ndarray]) -> None:
    np.testing.assert_array_equal(state["games.env_state.task"], [0, 1, 0, 1, 0, 1])
    np.testing.assert_array_equal(state["reward_scale.count"], [3 * 3 * 8] * 2)
    pairing, dear = np.sqrt(state["reward_scale.mean_square"])
    assert dear == pytest.approx(1000)
    assert pairing < 10


def test_features_are_normalised_for_each_task(state: dict[str, np.ndarray]) -> None:
    np.testing.assert_array_equal(state["feature_scale.count"], [72, 72, 0, 0])
    mean, variance = state["feature_scale.mean"], state["feature_scale.variance"]
    np.testing.assert_allclose(variance[:2], mean[:2] * (1 - mean[:2]), atol=1e-5)  # they are bits
    assert (mean[:2] > 0.2).all()
    np.testing.assert_array_equal(mean[2:], 0)


def test_a_state_from_a_checkpoint_goes_on_bit_for_bit(
    trainer: Trainer, state: dict[str, np.ndarray]
) -> None:
    restored = state_of(trainer.state_shape(portable=True), state, Path("there"))
    one = arrays_of(trainer.run(trainer.on_devices(restored), 2))
    other = arrays_of(trainer.run(trainer.init(0), 5))
    for name, array in other.items():
        assert one[name].tobytes() == array.tobytes(), name


def test_both_tasks_are_learned_though_one_pays_a_thousand_times_as_much(trainer: Trainer) -> None:
    state, _ = trainer.take_sums(trainer.run(trainer.init(0), 30))
    _, sums = trainer.take_sums(trainer.run(state, 10))
    row = summarise(jax.device_get(sums), trainer.metrics)
    assert row["task/Dear/mean_return"] > 900  # type: ignore[operator]
    assert row["task/Pairing/mean_return"] > 6.5  # type: ignore[operator]


def test_exported_params_read_raw_features(trainer: Trainer) -> None:
    state = trainer.run(trainer.init(0), 2)
    scale, layers = state.feature_scale, state.params
    assert scale is not None
    features = np.array([[1, 0, 1, 0], [0, 1, 0, 1]], np.float32)
    deviation = np.where(scale.count > 0, np.sqrt(np.asarray(scale.variance) + 1e-4), 1)
    of_task = np.array([[1, 0, 1, 1], [0, 1, 1, 1]])
    normal = (features - scale.mean) / deviation * of_task
    apply = trainer.network.module.apply  # type: ignore[attr-defined]
    answers = apply(trainer.network_params(state), jnp.asarray(features))
    for got, wanted in zip(answers, apply(layers, jnp.asarray(normal)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("of_tasks", [True, False])
def test_advantages_are_normalised_among_those_of_their_task(of_tasks: bool) -> None:
    random = np.random.default_rng(0)
    number = random.integers(3, size=(4, 50)) * of_tasks
    values = (random.normal(size=(4, 50)) * [[1.0]] + number * 10) * 10.0**number
    tasks = jnp.asarray(np.eye(3, dtype=np.float32)[number]) if of_tasks else None

    def normalised(values: jax.Array, tasks: jax.Array | None) -> jax.Array:
        """Each of the four minibatches by itself."""
        spread = Spread.of(values, tasks)
        return jax.vmap(Spread.normalised)(spread, values, tasks)

    specs = PartitionSpec(None, mesh.AXIS)
    got = np.asarray(mesh.on_devices(normalised, ONE, specs, specs)(jnp.float32(values), tasks))
    for row, of_row, numbers in zip(got, values, number, strict=True):
        for task in np.unique(number):
            mine = of_row[numbers == task]
            expected = (mine - mine.mean()) / mine.std()
            np.testing.assert_allclose(row[numbers == task], expected, rtol=1e-3, atol=1e-3)


def test_sums_and_values_of_tasks() -> None:
    tasks = jnp.asarray(np.eye(2, dtype=np.float32)[[0, 1, 0]])
    np.testing.assert_array_equal(sum_over_games(jnp.array([1.0, 2.0, 4.0]), tasks), [5, 2])
    np.testing.assert_array_equal(of_games(jnp.array([3.0, 7.0]), tasks), [3, 7, 3])
    assert RewardScale.create(2).deviation.tolist() == [1, 1]


def test_each_task_needs_a_game() -> None:
    config = dataclasses.replace(CONFIG, num_envs=1)
    with pytest.raises(UserError, match="--num-envs 1: each of 2 tasks needs a game"):
        Trainer(MultiTask([probes.Pairing(), Dear()]), config, NETWORK)


def test_the_network_needs_tasks() -> None:
    with pytest.raises(UserError, match="--architecture multi_task goes with --multi-task"):
        Trainer(
            probes.Pairing(), dataclasses.replace(CONFIG, normalize_observations=False), NETWORK
        )
