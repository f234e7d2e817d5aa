"""The tasks of a multi-task training: a list of environments, as flags and YAML give it.

Imports no JAX.
"""

from typing import Any, Self

from hackmatrix.core.errors import UserError
from hackmatrix.core.version import TOGETHER
from hackmatrix.core.yaml_file import parse_yaml
from hackmatrix.environments.registry import environment_id

_FORM = "must be a list of environments, such as ['CartPole-v1', 'Acrobot-v1']"


class TaskList(tuple[str, ...]):
    """The ids of at least two different environments."""

    __slots__ = ()

    @classmethod
    def of(cls, setting: Any) -> Self:
        """The tasks from a list of names, or from the text of one in Python's or YAML's form.

        Raises:
            UserError: it is something else, has fewer than two names or one of them twice, or no
                environment has such a name.
        """
        names = _parse(setting) if isinstance(setting, str) else setting
        if not isinstance(names, list | tuple) or not all(isinstance(each, str) for each in names):
            raise UserError(f"{_FORM}, got {setting!r:.60}")
        if len(names) < 2:
            raise UserError(f"must name at least two environments, got {list(names)}; --env is one")
        for name in names:
            if TOGETHER in name:
                raise UserError(f"{_FORM}, got {name!r:.60} in it")
        tasks = cls(environment_id(name) for name in names)
        for task in tasks:
            if tasks.count(task) > 1:
                raise UserError(f"names {task} twice; each task is trained in as many games")
        return tasks

    def __str__(self) -> str:
        return str(list(self))

    @property
    def environment(self) -> str:
        """The name of the environment that has these tasks."""
        return TOGETHER.join(self)


def _parse(text: str) -> Any:
    try:
        return parse_yaml(text)
    except ValueError:
        raise UserError(f"{_FORM}, got {text!r:.60}") from None
