"""Which of flags, file, params and defaults a setting is taken from."""

from pathlib import Path

import numpy as np
import pytest
from made_places import params_of_the_original

from hackmatrix.agents import shipped
from hackmatrix.core.errors import UserError
from hackmatrix.environments.curriculum.levels import Curriculum
from hackmatrix.environments.task_list import TaskList
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.learning.settings.resolve import resolve
from hackmatrix.runs.params import save_params

FILE = read_config(Path("train_config"))  # of CartPole
TASKS = TaskList.of("['CartPole-v1', 'Acrobot-v1', 'MountainCar-v0']")


def test_tasks_on_the_command_line_replace_the_environment_of_a_file() -> None:
    config, notes = resolve({"multi_task": True, "task_list": TASKS}, FILE)
    assert config.environment.name == "CartPole-v1+Acrobot-v1+MountainCar-v0"
    assert "--multi-task replaces env CartPole-v1 of the file" in notes


def test_a_curriculum_on_the_command_line_replaces_the_environment_of_a_file() -> None:
    curriculum = Curriculum.of("curriculum")
    config, notes = resolve({"curriculum": curriculum}, FILE)
    assert (config.environment.env, config.environment.curriculum) == ("HackMatrix", curriculum)
    assert "--curriculum replaces env CartPole-v1 of the file" in notes
    with pytest.raises(UserError, match="levels of HackMatrix, and --env is CartPole-v1"):
        resolve({"curriculum": curriculum, "env": "CartPole-v1"}, FILE)


def test_an_environment_on_the_command_line_replaces_tasks_and_curriculum_of_a_file() -> None:
    several = {"multi_task": True, "task_list": TASKS}
    config, notes = resolve({"env": "Acrobot-v1"}, several)
    assert config.environment.name == "Acrobot-v1"
    assert "--env replaces multi_task True of the file" in notes


@pytest.fixture
def params(tmp_path: Path) -> Path:
    path = tmp_path / "params_40.npz"
    save_params(path, {"params": params_of_the_original()}, {})
    path.with_suffix(".json").unlink()
    return path


def test_the_network_is_that_of_the_params_from_which_a_run_starts(params: Path) -> None:
    best = read_config(Path("best"))
    for flags, source in (({}, params), ({"init_from": params}, None)):
        config, notes = resolve(flags, best, params=source)
        assert config.environment.observation == "classic"
        assert (config.network.hidden_dim, config.network.num_layers) == (8, 2)
        assert f"as in {params}: observation classic" in notes
        assert config.learning.lr == best["lr"]
    assert np.load(params)["params.Dense_0.kernel"].shape == (1545, 8)


def test_flags_come_before_the_params(params: Path) -> None:
    config, _ = resolve({"hidden_dim": 16}, params=params)
    assert config.network.hidden_dim == 16  # which its loading refuses, by name


def test_a_run_starts_from_an_agent_of_the_package_by_its_name() -> None:
    config, notes = resolve({"init_from": Path("raw")}, read_config(Path("best")))
    assert config.run.init_from == shipped.RAW_PARAMS
    assert config.network.architecture == "player_centred"
    assert f"as in {shipped.RAW_PARAMS}: architecture player_centred" in notes
