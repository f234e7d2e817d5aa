"""Two MLPs: what the value learns leaves the policy alone."""

import jax
import jax.numpy as jnp
import numpy as np
import probe_environments as probes
import pytest

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.mlp import ActorCritic
from hackmatrix.agents.networks.network import make_network
from hackmatrix.agents.networks.separate_critic import ActorAndCritic
from hackmatrix.learning.reporting.metrics import LEARNER_METRICS, summarise
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.trainer.trainer import Trainer

pytestmark = pytest.mark.thorough

CONFIG = NetworkConfig("separate_critic", hidden_dim=8, num_layers=2)
FEATURES = jax.random.normal(jax.random.key(1), (5, 40))


@pytest.fixture(scope="module")
def params() -> dict[str, dict[str, dict[str, jax.Array]]]:
    return jax.jit(ActorAndCritic(28, CONFIG).init)(jax.random.key(0), FEATURES)


def test_each_half_is_an_mlp(params: dict[str, dict[str, dict[str, jax.Array]]]) -> None:
    logits, value = ActorAndCritic(28, CONFIG).apply(params, FEATURES)
    mlp, layers = ActorCritic(28, 8, 2), params["params"]
    heads = {"Dense_2": layers["Dense_4"], "Dense_3": layers["Dense_5"]}
    for first, found, place in ((0, logits, 0), (2, value, 1)):
        own = {f"Dense_{i}": layers[f"Dense_{first + i}"] for i in (0, 1)} | heads
        expected = mlp.apply({"params": own}, FEATURES)[place]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("place", "layers"),
    [(0, {"Dense_0", "Dense_1", "Dense_4"}), (1, {"Dense_2", "Dense_3", "Dense_5"})],
    ids=["logits", "value"],
)
def test_their_gradients_meet_nowhere(
    params: dict[str, dict[str, dict[str, jax.Array]]], place: int, layers: set[str]
) -> None:
    network = ActorAndCritic(28, CONFIG)
    gradients = jax.grad(lambda p: jnp.sum(network.apply(p, FEATURES)[place] ** 2))(params)
    kernels = {name: layer["kernel"] for name, layer in gradients["params"].items()}
    assert {name for name, kernel in kernels.items() if jnp.any(kernel != 0)} == layers


@pytest.mark.slow
def test_it_learns() -> None:
    config = TrainConfig.of(
        num_envs=64,
        num_steps=16,
        num_minibatches=4,
        architecture="separate_critic",
        hidden_dim=16,
        lr=0.003,
        total_timesteps=10**6,
    )
    env = probes.Pairing()
    trainer = Trainer(env, config.learning, make_network(env, config.network))
    state, _ = trainer.take_sums(trainer.run(trainer.init(0), 150))
    _, sums = trainer.take_sums(trainer.run(state, 20))
    reward = summarise(jax.device_get(sums), LEARNER_METRICS)["train/mean_reward"]
    assert reward is not None
    assert reward > 0.95  # guessing earns 0.5
