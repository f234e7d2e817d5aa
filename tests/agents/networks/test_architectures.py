"""Every architecture of the table is there, and is what the table says."""

import sys
import types
from pathlib import Path
from typing import Any

import jax
import probe_environments as probes
import pytest
from memory_network import MemoryNetwork
from paths import DOCS

from hackmatrix.agents.networks.architectures import (
    ARCHITECTURES,
    MULTI_TASK,
    Architecture,
    NetworkConfig,
)
from hackmatrix.agents.networks.network import make_network
from hackmatrix.environments.interface.environment import Environment
from hackmatrix.environments.registry import make_environment
from hackmatrix.environments.tasks import MultiTask
from hackmatrix.learning.settings.config import TrainConfig

# They read the board of HackMatrix, which takes seconds to trace; tests of their own ask them.
BOARDS = ("cells", "player_centred")


def environment_for(name: str) -> Environment:
    if name == MULTI_TASK:
        return MultiTask([probes.Grid(), probes.Pairing()])
    return make_environment("HackMatrix-v1") if name in BOARDS else probes.Grid()


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_an_architecture_makes_a_network(name: str) -> None:
    env = environment_for(name)
    network = make_network(env, NetworkConfig(name, hidden_dim=8, num_layers=1))
    assert network.recurrent == ARCHITECTURES[name].recurrent
    assert network.num_actions == env.num_actions
    if name in BOARDS:
        return

    def answer() -> Any:
        observation, _ = jax.vmap(env.reset)(jax.random.split(jax.random.key(0), 3))
        params = network.init(jax.random.key(1))
        return network(params, observation, network.initial_carry(3))

    logits, values, carry = jax.eval_shape(answer)
    assert (logits.shape, values.shape) == ((3, env.num_actions), (3,))
    assert jax.tree.structure(carry) == jax.tree.structure(network.initial_carry(3))


def test_a_row_of_the_table_is_all_that_a_new_one_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("memory")
    module.make = lambda env, config: MemoryNetwork(env, config.hidden_dim)
    monkeypatch.setitem(sys.modules, "memory", module)
    monkeypatch.setitem(ARCHITECTURES, "memory", Architecture("memory", recurrent=True))
    config = TrainConfig.of(
        num_envs=8, num_steps=4, num_minibatches=4, hidden_dim=3, architecture="memory"
    )
    assert config.num_groups == 2  # of 4 games, one for each minibatch
    assert isinstance(make_network(probes.Grid(), config.network), MemoryNetwork)


def test_every_architecture_is_documented() -> None:
    text = (DOCS / "networks.md").read_text()
    assert all(f"\n## {name}\n" in text for name in ARCHITECTURES)


def test_settings_of_a_run_hold_those_of_its_network() -> None:
    config = TrainConfig.of(hidden_dim=8, activation="tanh", layer_norm=True)
    assert config.network == NetworkConfig("mlp", 8, 2, "tanh", "float32", layer_norm=True)
    assert NetworkConfig.read(Path("params.json"), config.as_dict()) == config.network
