"""The policies of the page are those of training: the same probabilities and values."""

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.network import make_network
from hackmatrix.agents.networks.policy import load_policy
from hackmatrix.agents.roster import position_policies as policies
from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.opinion import RecurrentPolicy
from hackmatrix.agents.roster.position_policies import load
from hackmatrix.agents.roster.session_agents import cast, newest_run
from hackmatrix.core.errors import UserError
from hackmatrix.environments.registry import make_environment
from hackmatrix.game.engine import Game
from hackmatrix.runs.params import save_params

pytestmark = pytest.mark.thorough

MLP = NetworkConfig(hidden_dim=8)


def random_params(layout: str, config: NetworkConfig = MLP) -> dict[str, Any]:
    network = make_network(make_environment("HackMatrix-v1", layout), config)
    rng = np.random.default_rng(0)
    shapes: dict[str, Any] = jax.eval_shape(network.init, jax.random.key(0))
    return jax.tree.map(lambda x: np.float32(0.1 * rng.normal(size=x.shape)), shapes)


def about(**settings: Any) -> dict[str, Any]:
    config = {**MLP.__dict__, "observation": "full", **settings}
    return {"environment": "HackMatrix-v1", "config": config}


def positions() -> list[Game]:
    games = [Game.new(seed) for seed in range(6)]
    for game in games[:3]:
        for _ in range(4):
            if game.valid_actions():
                game.step(game.valid_actions()[0])
    return [game for game in games if game.valid_actions()]


@pytest.mark.parametrize(
    ("layout", "activation"),
    [("classic", "relu"), pytest.param("full", "tanh", marks=pytest.mark.thorough)],
)
def test_the_forward_pass_is_the_networks(layout: str, activation: str, tmp_path: Path) -> None:
    path = tmp_path / "params.npz"
    save_params(path, random_params(layout), about(observation=layout, activation=activation))
    policy, ours = load_policy(path), load(path)
    network = jax.jit(policy.make()[1].__call__)
    for game in positions():
        record = game.observation()
        logits, value, _ = network(policy.params, jnp.frombuffer(record, jnp.uint8)[None], ())
        found, worth = ours(record, [True] * 28)
        np.testing.assert_allclose(found, logits[0], rtol=1e-4, atol=1e-4)
        assert worth == pytest.approx(float(value[0]), rel=1e-4, abs=1e-4)
    with_jax = policies._with_jax(policy)(record, None)
    np.testing.assert_allclose(with_jax[0], found, rtol=1e-4, atol=1e-4)


WATCH = """
import sys
from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.game.engine.replay import GameId
from hackmatrix.ui.session.session import Session
for path in sys.argv[1:]:
    session = Session(GameId(0), cast(resolve(path)))
    print(len(session.handle({"do": "agent", "steps": 5})["added"]), "jax" in sys.modules)
"""


NETWORKS = [
    NetworkConfig("mlp", 8, 2, "tanh", layer_norm=True),
    NetworkConfig("separate_critic", 8, 2, layer_norm=True),
    NetworkConfig("cells", 16, 2),
    NetworkConfig("player_centred", 16, 2, layer_norm=True),
    NetworkConfig("gru", 8, 1),
    NetworkConfig("gru", 8, 2, layer_norm=True),
    NetworkConfig("gru", 8, 1, value="chance"),
]


def saved(path: Path, config: NetworkConfig, layout: str) -> Path:
    save_params(path, random_params(layout, config), about(**config.__dict__, observation=layout))
    return path


# What a layout shows takes longest to compile, and all networks but `cells` read it alike.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "config"),
    [
        *(("full", config) for config in NETWORKS),
        *(("tactical", x) for x in NETWORKS if x.architecture != "player_centred"),
    ],
    ids=str,
)
def test_the_forward_pass_of_every_network_is_the_networks(
    config: NetworkConfig, layout: str, tmp_path: Path
) -> None:
    ours = load(saved(tmp_path / "params.npz", config, layout))
    theirs = policies._with_jax(load_policy(tmp_path / "params.npz"))
    memory = carry = None
    game, rng = Game.new(3), random.Random(0)
    for _ in range(6):
        record = game.observation()
        logits, value, carry = theirs(record, carry)
        if isinstance(ours, RecurrentPolicy):
            found, worth, memory = ours.step(record, memory)
            assert memory is not None
        else:
            found, worth = ours(record, [True] * 28)
        np.testing.assert_allclose(found, logits, rtol=1e-3, atol=1e-3)
        assert worth == pytest.approx(value, rel=1e-3, abs=1e-3)
        game.step(rng.choice(game.valid_actions()))


def test_watching_loads_no_jax(tmp_path: Path) -> None:
    files = [saved(tmp_path / f"{i}.npz", NETWORKS[i], "full") for i in range(5)]
    command = [sys.executable, "-c", WATCH, *map(str, files)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.stdout, result.stderr) == (5 * "5 False\n", "")


def test_a_run_gives_all_its_checkpoints(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for name in ("params_10", "params_20", "final_params"):
        save_params(run / f"{name}.npz", random_params("full"), about())
    built_in = ["raw", "scripted", "exit", "random"]
    checkpoints = ["final_params", "params_20", "params_10"]
    assert list(cast(resolve(str(run)))) == [*checkpoints, *built_in]
    other = tmp_path / "newer"
    other.mkdir()
    save_params(other / "final_params.npz", random_params("full"), {"environment": "CartPole-v1"})
    assert newest_run((tmp_path,)) == run  # the other one could not be watched
    assert list(cast(resolve("random"))) == ["random", "shipped", "raw", "scripted", "exit"]
    assert list(cast(resolve("shipped"))) == ["shipped", *built_in]
    (run / "final_params.npz").rename(tmp_path / "exit.npz")
    own = cast(resolve(str(tmp_path / "exit.npz")))
    assert list(own) == ["exit", "raw", "scripted", "random"]
    assert own["exit"]().policy is not cast(resolve("exit"))["exit"]().policy


def test_what_is_no_agent_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run with params"):
        newest_run((tmp_path,))
    with pytest.raises(UserError, match="holds no params of an agent yet"):
        cast(resolve(str(tmp_path)))
    path = tmp_path / "other.npz"
    save_params(path, random_params("full"), {"environment": "CartPole-v1", "config": {}})
    with pytest.raises(UserError, match="plays CartPole-v1"):
        load(path)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"observation": "smell"}, "observation must be one of classic, full, tactical, got 'sme"),
        (
            {"observation": "classic"},
            r"params.Dense_0.kernel is \[1946, 8\], the network mlp .* wants \[1545, 8\]",
        ),
        ({"layer_norm": True}, r"params.LayerNorm_0.bias is missing"),
        ({"architecture": "cells"}, r"params.Dense_0.bias is \[8\], the network cells .* none"),
        ({"architecture": "smell"}, r"is of the network 'smell', which this version lacks"),
    ],
)
def test_both_faces_refuse_a_file_with_the_same_words(
    settings: dict[str, Any], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "other.npz"
    save_params(path, random_params("full"), about(**settings))
    with pytest.raises(UserError, match=words) as plain:
        load(path)
    with pytest.raises(UserError) as in_jax:
        load_policy(path).make()
    assert str(plain.value) == str(in_jax.value)
