"""The names of `import hackmatrix`: few, and light until they are used."""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import hackmatrix
from hackmatrix.core.errors import UserError
from hackmatrix.game.engine import Game


def test_the_import_is_light_and_every_name_is_there() -> None:
    code = (
        "import sys, hackmatrix\n"
        "heavy = {'jax', 'numpy', 'flax', 'yaml'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "[getattr(hackmatrix, name) for name in hackmatrix.__all__]\n"
        "assert not {'jax', 'numpy'} & set(sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_game_and_its_picture() -> None:
    assert hackmatrix.Game is Game
    assert hackmatrix.draw(hackmatrix.Game.new(stream=7)).startswith("<svg")
    with pytest.raises(AttributeError, match="has no attribute 'game_over'"):
        hackmatrix.game_over  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.thorough
def test_an_agent_is_trained_loaded_and_evaluated(tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    file.write_text(
        "environment: {name: CartPole-v1, num_envs: 2}\n"
        "training: {num_steps: 8, num_minibatches: 1, total_timesteps: 64}\n"
        "model: {hidden_dim: 8}\nlogging: {tensorboard: false}\n"
    )
    # Settings that are given win.
    outcome = hackmatrix.train(
        config=file, total_timesteps=32, checkpoint_dir=tmp_path / "runs", wandb=False
    )
    assert (outcome.timesteps, outcome.run.parent) == (32, tmp_path / "runs")
    agent = hackmatrix.load_agent(outcome.run)
    assert agent.environment == "CartPole-v1"
    seen = jnp.zeros(4)
    action = agent(agent.params, seen, jnp.ones(2, bool), jax.random.key(0))
    assert int(action) in (0, 1)
    report = hackmatrix.evaluate(outcome.run, episodes=4, max_steps=50)
    assert report.episodes == 4
    assert report.means()["mean_return"] >= 8


def test_a_file_of_settings_that_can_not_be_used_is_told(tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    file.write_text("environment: {name: 'frog:Frog'}\n")
    with pytest.raises(UserError, match=r"my.yaml: trains on frog:Frog, code that runs only if"):
        hackmatrix.train(config=file)
    with pytest.raises(UserError, match=r"no.yaml"):
        hackmatrix.train(config="no.yaml")


def test_without_a_path_it_is_the_agent_of_the_package() -> None:
    assert hackmatrix.load_agent().environment == hackmatrix.ENVIRONMENT_ID


def test_the_scripted_player_is_evaluated() -> None:
    assert hackmatrix.evaluate("scripted", episodes=2, max_steps=5).truncated == 2


def test_wrong_input_is_told() -> None:
    with pytest.raises(UserError, match="--num-envs must be at least 1"):
        hackmatrix.train(num_envs=0)
    with pytest.raises(TypeError, match="colour"):
        hackmatrix.train(colour="red")
    with pytest.raises(TypeError, match="no setting n_envs, did you mean num_envs"):
        hackmatrix.train(n_envs=3)
    with pytest.raises(UserError, match="no-such"):
        hackmatrix.evaluate("no-such.npz")
