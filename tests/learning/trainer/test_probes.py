"""Each probe environment is learned to its known answer."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import probe_environments as probes
import pytest

from hackmatrix.agents.networks import distribution
from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.feature_network import FeatureNetwork
from hackmatrix.agents.networks.mlp import ActorCritic
from hackmatrix.learning.algorithms.config import PPOConfig
from hackmatrix.learning.reporting.metrics import LEARNER_METRICS, summarise
from hackmatrix.learning.trainer.trainer import Trainer, TrainState

GAMMA = 0.9
CONFIG = PPOConfig(
    num_envs=32,
    num_steps=16,
    num_minibatches=2,
    lr=3e-3,
    gamma=GAMMA,
    ent_coef=0.0,
)


def trained(
    env: probes.Probe, updates: int, dtype: Literal["float32", "bfloat16"] = "float32"
) -> tuple[Trainer, TrainState]:
    trainer = Trainer(env, CONFIG, NetworkConfig(hidden_dim=32, num_layers=1, dtype=dtype))
    return trainer, trainer.run(trainer.init(0), updates)


def answers(trainer: Trainer, state: TrainState, positions: list[int]) -> tuple[np.ndarray, ...]:
    """Probabilities [P, A] with every action valid, and values [P] in units of the rewards."""
    logits, values, _ = trainer.network(state.params, jnp.array(positions, jnp.uint8)[:, None])
    return np.asarray(jax.nn.softmax(logits)), np.asarray(values * state.reward_scale.deviation)


@pytest.mark.slow
def test_the_policy_depends_on_the_observation_also_in_few_bits() -> None:
    trainer, state = trained(probes.Policy(), 200, "bfloat16")
    assert {leaf.dtype.name for leaf in jax.tree.leaves(state.params)} == {"float32"}
    probabilities, values = answers(trainer, state, [0, 1])
    assert probabilities[0, 0] > 0.98
    assert probabilities[1, 1] > 0.98
    np.testing.assert_allclose(values, 1.0, atol=0.05)


@pytest.mark.thorough
def test_observation_and_action_are_paired() -> None:
    trainer, state = trained(probes.Pairing(), 150)
    state, _ = trainer.take_sums(state)
    _, sums = trainer.take_sums(trainer.run(state, 20))
    row = summarise(sums, LEARNER_METRICS)
    assert row["train/mean_reward"] > 0.95  # guessing earns 0.5


class UniformNetwork(FeatureNetwork):
    """Plays all valid actions alike, whatever it learns; only its values change."""

    def __call__(self, *args: object) -> tuple[jax.Array, jax.Array, object]:
        logits, values, carry = super().__call__(*args)
        return jnp.zeros_like(logits), values, carry


def grid_values(trainer: Trainer, state: TrainState) -> np.ndarray:
    _, values = answers(trainer, state, list(range(probes.Grid.goal)))
    return values


def relative_error(values: np.ndarray, truth: np.ndarray) -> float:
    return float((np.abs(values - truth) / truth).mean())


GRID_CONFIG = PPOConfig(
    num_envs=256,
    num_steps=32,
    num_minibatches=2,
    update_epochs=2,
    lr=1e-3,
    gamma=GAMMA,
    ent_coef=0.0,
)


@pytest.mark.slow
def test_values_of_random_moves_in_the_grid_are_those_of_dynamic_programming() -> None:
    env = probes.Grid()
    network = UniformNetwork(env, ActorCritic(env.num_actions, 64, 1), reads_features=True)
    trainer = Trainer(env, GRID_CONFIG, network)
    state = trainer.run(trainer.init(0), 100)
    values = []  # of several updates: one wavers with the last games seen
    for _ in range(5):
        state = trainer.run(state, 10)
        values.append(grid_values(trainer, state))
    truth = env.values(GAMMA, optimal=False)[: env.goal]
    assert relative_error(np.mean(values, axis=0), truth) < 0.05


@pytest.mark.slow
def test_the_grid_is_solved_and_its_values_are_those_of_dynamic_programming() -> None:
    env = probes.Grid()
    trainer = Trainer(env, GRID_CONFIG, NetworkConfig(hidden_dim=64, num_layers=1))
    state = trainer.run(trainer.init(0), 100)
    truth = env.values(GAMMA, optimal=True)[: env.goal]
    assert relative_error(grid_values(trainer, state), truth) < 0.05

    cells = jnp.arange(env.goal)
    mask = jax.vmap(env.valid)(cells)
    logits, _, _ = trainer.network(state.params, cells.astype(jnp.uint8)[:, None])
    greedy = distribution.most_probable(distribution.log_probabilities(logits, mask), mask)
    after = np.asarray(cells + jnp.asarray(env.moves)[greedy])
    distance = 8 - (np.arange(25) // 5 + np.arange(25) % 5)
    assert (distance[after] == distance[: env.goal] - 1).all()  # each move is on a shortest way
