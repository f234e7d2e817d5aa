"""The command `hackmatrix analyse`: refusals, the table and the JSON."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.agents.networks.mlp import ActorCritic
from hackmatrix.cli.main import main
from hackmatrix.game.engine import Game
from hackmatrix.game.rules.actions import ACTION_NAMES
from hackmatrix.game.rules.observation import FEATURE_SIZE
from hackmatrix.runs.params import save_params

BOARD = """\
.. .. .. .. .. X.
.. .. .g .. .. ..
.. .. D. .. .. ..
.. .@ .. .. .d ..
.. P. .. .. .. ..
s. .. .. .. .. s.
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no such file"),
        ("abc", "expected 6 lines of board, got 1"),
        (BOARD + "over won", "the game is over, or no action is valid"),
    ],
)
def test_files_without_a_running_game_are_refused(
    text: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "position.txt"
    if text is not None:
        path.write_text(text)
    assert main(["analyse", str(path), "agent.npz"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"hackmatrix analyse: error: {path}: ")
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("command", ["analyse", "evaluate", "watch", "data record"])
def test_a_search_that_no_memory_holds_is_refused(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), "--search", "1e9"]) == 2
    assert "argument --search: must be at least 1 and at most 10000, got 1000000000" in (
        capsys.readouterr().err
    )


@pytest.mark.slow
def test_it_shows_what_both_think(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "position.txt").write_text(BOARD)
    network = ActorCritic(28, hidden_dim=4, num_layers=1)
    params = jax.jit(network.init)(jax.random.key(0), jnp.zeros((1, FEATURE_SIZE["tactical"])))
    about = {"architecture": "mlp", "hidden_dim": 4, "num_layers": 1, "observation": "tactical"}
    about |= {"normalize_rewards": False, "reward": "progress", "gamma": 0.998}
    save_params(tmp_path / "params_1.npz", params, {"config": about})
    argv = ["analyse", str(tmp_path / "position.txt"), str(tmp_path / "params_1.npz")]
    assert main([*argv, "--search", "16", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    names = [ACTION_NAMES[action] for action in Game.from_text(BOARD).valid_actions()]
    assert sorted(each["action"] for each in said["actions"]) == sorted(names)
    assert sum(each["visits"] for each in said["actions"]) == 16
    np.testing.assert_allclose(sum(each["prior"] for each in said["actions"]), 1, rtol=1e-5)
    assert said["network"] == said["actions"][0]["action"]
    assert said["search"] in names
    assert all(each["line"][0] == each["action"] for each in said["actions"])
