"""Behaviour cloning, and trainings that start from its params."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from made_data import GRID, change, of_an_expert, recorded, use_grid

from hackmatrix.agents.networks.network import make_network
from hackmatrix.agents.networks.policy import load_policy
from hackmatrix.cli.main import main
from hackmatrix.environments.registry import make_environment
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.research.datasets.clone import ClonePlan, clone
from hackmatrix.research.datasets.folder import open_data_set
from hackmatrix.runs.checkpoints import checkpoints_of, load_checkpoint
from hackmatrix.runs.params import save_params

SETTINGS = """\
model: {hidden_sizes: [32]}
environment: {name: Grid-v0, num_envs: 8, normalize_rewards: false}
training: {num_steps: 8, gamma: 0.9, total_timesteps: 64}
logging: {tensorboard: false, wandb: false}
"""
CONFIG = TrainConfig.of(
    env=GRID, hidden_dim=32, num_layers=1, gamma=0.9, normalize_rewards=False, num_envs=8
)
PLAN = ClonePlan(positions=10_000, lr=1e-2, epochs=8, batch=64, seed=1)


@pytest.fixture(autouse=True)
def _grid(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_grid(monkeypatch)
    monkeypatch.chdir(tmp_path)
    Path("grid.yaml").write_text(SETTINGS)


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The one line that a command refuses with."""

    def run(*argv: str) -> str:
        capsys.readouterr()
        assert main([*argv]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        return error

    return run


@pytest.mark.slow
def test_an_expert_is_cloned_with_its_values() -> None:
    data = open_data_set(of_an_expert(Path("data"), 600))
    cloned = clone(data, CONFIG, PLAN)
    assert cloned.games == 600
    assert cloned.agreement > 0.95
    assert cloned.cross_entropy < 0.2
    # Those of 2 x 4 starts do not arrive in time, which a value can't know.
    assert cloned.value_error < 0.6 * cloned.returns


@pytest.mark.thorough
def test_values_are_returns_in_the_units_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    data = open_data_set(of_an_expert(Path("data"), 40))
    seen: list[Any] = []

    def learn(_: Any, params: Any, lessons: Any, **__: Any) -> tuple[Any, None]:
        seen.append(lessons)
        return params, None

    monkeypatch.setattr("hackmatrix.research.datasets.clone.learn", learn)
    clone(data, CONFIG.but(normalize_rewards=True), PLAN)
    (shard,) = data.shards()
    expected, so_far = [], []
    for start, length in zip(shard.starts, shard.lengths, strict=True):
        rewards = shard.rewards[start : start + length]
        for time in range(length):
            later = 0.9 ** np.arange(length - time)
            expected.append(float(rewards[time:] @ later))
            so_far.append(float(rewards[: time + 1] @ 0.9 ** np.arange(time, -1, -1.0)))
    deviation = np.sqrt(np.mean(np.square(so_far)))
    kept = np.repeat(np.arange(40) % 20 != 0, shard.lengths)  # the others are held out
    assert len(seen[0].mask) == kept.sum()
    values = np.sort(np.array(expected)[kept]) / deviation
    np.testing.assert_allclose(np.sort(seen[0].value), values, rtol=1e-5)


@pytest.mark.slow
def test_a_training_starts_from_it(capsys: pytest.CaptureFixture[str]) -> None:
    recorded(Path("data"))
    settings = ["--config", "grid.yaml"]
    assert main(["clone", "data", "it.npz", *settings, "--epochs", "1", "--batch", "32"]) == 0
    assert "--config grid.yaml --init-from it.npz" in capsys.readouterr().out
    policy = load_policy(Path("it.npz"))
    assert (policy.environment, policy.config.hidden_dim) == (GRID, 32)
    assert policy.about["cloned"]["data"]["agent"] == "random"

    # A learning rate of almost 0 leaves the params as they were.
    flags = ["--init-from", "it.npz", "--num-seeds", "2", "--lr", "1e-30", "--run-name", "run"]
    assert main(["train", *settings, *flags]) == 0
    assert "params of it.npz" in capsys.readouterr().out
    for agent in (0, 1):
        started = load_policy(Path(f"checkpoints/run/seed_{agent}/final_params.npz"))
        assert started.about["config"]["init_from"] == "it.npz"
        jax.tree.map(np.testing.assert_array_equal, started.params, policy.params)
    arrays, _ = load_checkpoint(checkpoints_of(Path("checkpoints/run"))[-1].path)
    assert max(int(value.max()) for name, value in arrays.items() if "count" in name) <= 16


@pytest.mark.slow
def test_cloning_goes_on(refused: Callable[..., str]) -> None:
    of_an_expert(Path("data"), 200)
    how = ["clone", "data", "--config", "grid.yaml", "--batch", "32"]
    assert main([*how, "it.npz", "--epochs", "8", "--lr", "0.01"]) == 0
    settings = SETTINGS.replace("[32]", "[32], value: chance").replace("8,", "8, reward: win,", 1)
    Path("chance.yaml").write_text(settings)
    how[3] = "chance.yaml"
    further = [*how, "chance.npz", "--init-from", "it.npz", "--epochs", "1", "--lr", "1e-30"]
    assert main(further) == 0
    before, after = load_policy(Path("it.npz")), load_policy(Path("chance.npz"))
    jax.tree.map(np.testing.assert_array_equal, before.params, after.params)
    assert (before.config.value, after.config.value) == ("return", "chance")

    train = ["train", "--config", "chance.yaml", "--run-name", "run", "--init-from"]
    assert "it.npz: was trained with --value return" in refused(*train, "it.npz")
    assert main([*train, "chance.npz"]) == 0
    Path("chance.yaml").write_text(settings.replace("[32]", "[16]"))
    assert main([*how, "wide.npz", "--init-from", "it.npz", "--epochs", "1"]) == 0
    assert load_policy(Path("wide.npz")).config.hidden_dim == 32  # as the params have it


@pytest.mark.thorough
def test_params_that_do_not_fit_are_refused(refused: Callable[..., str]) -> None:
    about = {"format": 1, "environment": GRID, "config": CONFIG.as_dict()}
    shapes = jax.eval_shape(
        make_network(make_environment(GRID), CONFIG.network).init, jax.random.key(0)
    )
    params = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
    save_params(Path("it.npz"), params, about)
    start = ["train", "--config", "grid.yaml", "--init-from", "it.npz", "--run-name", "run"]
    assert "configuration wants [16]" in refused(*start, "--hidden-dim", "16")
    assert "--activation relu" in refused(*start, "--activation", "tanh")
    assert "was trained on Grid-v0" in refused(*start, "--env", "CartPole-v1")
    assert "without --resume" in refused(*start, "--resume", "it.npz")
    assert "nobody.npz: no such file" in refused(*start[:3], "--init-from", "nobody.npz")
    assert not Path("checkpoints/run").exists()


@pytest.mark.thorough
def test_wrong_games_are_not_learned(refused: Callable[..., str]) -> None:
    change(of_an_expert(Path("data"), 30), "actions", 5, 200)
    clone_it = ["clone", "data", "it.npz", "--config", "grid.yaml"]
    assert "`hackmatrix data verify` says where" in refused(*clone_it)


@pytest.mark.thorough
def test_what_is_not_written(refused: Callable[..., str]) -> None:
    of_an_expert(Path("data"), 30)
    clone_it = ["clone", "data", "it.npz", "--config", "grid.yaml", "--epochs", "2"]
    assert "--lr 1e+30: the params became NaN" in refused(*clone_it, "--lr", "1e30")
    assert not Path("it.npz").exists()
    assert "its first 1 games" in refused(*clone_it, "--positions", "1")
    Path("it.json").write_text("mine")
    assert "it.json: exists already" in refused(*clone_it)
    assert Path("it.json").read_text() == "mine"
    Path("it.json").rename("it.npz")
    assert "it.npz: exists already" in refused(*clone_it)
    assert "there is no folder nowhere" in refused("clone", "data", "nowhere/it.npz")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("model: {architecture: gru}\n", "can't learn single positions"),
        ("environment: {name: CartPole-v1}\n", "its games are of Grid-v0, not of CartPole-v1"),
        ("environment: {name: Grid-v0, normalize_observations: true}\n", "as they are"),
        (
            "environment: {name: HackMatrix, multi_task: true, task_list: [Grid-v0, HackMatrix]}\n",
            "games of several tasks can't be cloned",
        ),
    ],
)
def test_runs_that_can_not_start_from_a_data_set(
    settings: str, words: str, refused: Callable[..., str]
) -> None:
    if "name" not in settings:
        settings += "environment: {name: Grid-v0}\n"
    of_an_expert(Path("data"), 30)
    Path("other.yaml").write_text(settings)
    assert words in refused("clone", "data", "it.npz", "--config", "other.yaml")
    assert not Path("it.npz").exists()
