"""Pickles and `.npz` files as the original writes them: watched, evaluated, resumed from."""

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from made_places import params_of_the_original

from hackmatrix.agents.networks.policy import load_policy
from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.position_policies import load
from hackmatrix.cli.watch import check_network
from hackmatrix.core.errors import UserError
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.observation import observe

FILES = ("checkpoint_40.pkl", "params_40.npz")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run's folder of the original, with the whole state pickled, and the params beside it."""
    run = tmp_path / "checkpoints" / "run-name"
    run.mkdir(parents=True)
    params = params_of_the_original()
    state = {"params": {"params": params}, "opt_state": [], "metrics": {}, "last_logged_step": 40}
    (run / "checkpoint_40.pkl").write_bytes(pickle.dumps(state))
    arrays: dict[str, Any] = {
        f"params.{layer}.{name}": array
        for layer, of_layer in params.items()
        for name, array in of_layer.items()  # type: ignore[attr-defined]
    }
    np.savez(run / "params_40.npz", allow_pickle=False, **arrays)
    return run


def command(folder: Path, line: str) -> str:
    words = [sys.executable, "-m", "hackmatrix", *line.split()]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", FILES)
def test_the_network_is_found_by_its_arrays(name: str, run: Path) -> None:
    policy = load_policy(run / name)
    assert policy.observation == "classic"
    assert (policy.config.architecture, policy.config.hidden_dim) == ("mlp", 8)
    assert policy.config.num_layers == 2


def test_both_files_are_the_same_agent(run: Path) -> None:
    record = observe(Game.new(7).state)
    pickled, exported = (load(run / name)(record, [True] * 28) for name in FILES)
    assert pickled == exported


@pytest.mark.parametrize("name", FILES)
def test_a_training_begins_with_it(name: str, run: Path) -> None:
    line = f"train --resume checkpoints/run-name/{name} --lr 0.1 --print-config"
    settings = yaml.safe_load(command(run.parents[1], line))
    assert settings["environment"]["observation"] == "classic"
    assert settings["model"]["hidden_dim"] == 8
    assert settings["training"]["lr"] == 0.1


def test_width_and_depth_may_be_named_as_they_are(run: Path) -> None:
    agent = resolve(str(run / "checkpoint_40.pkl"))
    check_network(agent, 8, 2)
    check_network(resolve("scripted"), None, None)
    for named, width, depth, error in (
        (agent, 16, None, "by its arrays, --hidden-dim is 8: leave it out"),
        (agent, None, 3, "by its arrays, --num-layers is 2: leave it out"),
        (resolve("scripted"), 16, 2, "--hidden-dim: scripted has no network"),
    ):
        with pytest.raises(UserError, match=error):
            check_network(named, width, depth)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_it_is_evaluated_and_trained_on(name: str, run: Path) -> None:
    folder, file = run.parents[1], f"checkpoints/run-name/{name}"
    result = json.loads(command(folder, f"evaluate {file} --episodes 4 --max-steps 20 --json"))
    assert result["episodes"] == 4
    trained = command(
        folder,
        f"train --resume {file} --num-envs 4 --num-steps 4 --num-minibatches 1 --no-wandb "
        "--total-timesteps 32 --run-name on",
    )
    assert f"params of {file}; optimizer, normalisation, games and counters start afresh" in trained
    assert "done after 2 updates" in trained
