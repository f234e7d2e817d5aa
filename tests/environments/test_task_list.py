"""The list of tasks, as flags and files give it."""

from typing import Any

import pytest

from hackmatrix.core.errors import UserError
from hackmatrix.environments.task_list import TaskList

BOTH = ("CartPole-v1", "HackMatrix-v1")


@pytest.mark.parametrize(
    "setting",
    [
        "['CartPole-v1', 'HackMatrix']",
        "[CartPole-v1, HackMatrix]",
        ["CartPole-v1", "HackMatrix"],
    ],
)
def test_it_is_read_as_python_or_yaml_writes_it(setting: Any) -> None:
    tasks = TaskList.of(setting)
    assert tasks == BOTH
    assert TaskList.of(str(tasks)) == tasks
    assert tasks.environment == "CartPole-v1+HackMatrix-v1"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("CartPole-v1", "must be a list of environments, such as"),
        ("!!python/object/apply:os.getcwd []", "must be a list of environments, such as"),
        ("['CartPole-v1', 3]", "must be a list of environments, such as"),
        (["CartPole-v1+Acrobot-v1", "HackMatrix"], "must be a list of environments, such as"),
        (None, "must be a list of environments, such as"),
        ("['CartPole-v1']", "must name at least two environments"),
        (["HackMatrix", "CartPole-v1", "HackMatrix-v1"], "names HackMatrix-v1 twice"),
        ("['CartPole-v1', 'Cartpole-v1']", "did you mean CartPole-v1?"),
    ],
)
def test_other_lists_are_refused_in_one_line(setting: Any, message: str) -> None:
    with pytest.raises(UserError) as error:
        TaskList.of(setting)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
