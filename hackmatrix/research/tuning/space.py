"""The settings that a search may choose: a YAML file with the sections of a configuration file.

A setting has a list of choices, or a range: `{low: 1.0e-4, high: 1.0e-2, log: true}`, with the
optional keys `step` and, for the grid, `points`. Its type is that of the setting.
"""

import itertools
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hackmatrix.core.errors import UserError
from hackmatrix.core.options import convert
from hackmatrix.learning.settings.config import LOGGING, OPTIONS
from hackmatrix.learning.settings.config_file import (
    Settings,
    convert_entry,
    entries,
    names_of,
    number_type,
)

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

BUDGET = "training.total_timesteps"
_POINTS = 4  # of a range in a grid
_KEYS = {"low", "high", "log", "step", "points", "type"}
_MOST = 100_000  # points of a grid
_NOT_SEARCHED = {"seed", "num_seeds", *(n for n, o in OPTIONS.items() if o.section == LOGGING)}


class Choices(NamedTuple):
    """Values to choose from, as texts of JSON: Optuna takes no lists."""

    values: tuple[str, ...]

    def grid(self) -> list[Any]:
        """All values."""
        return list(self.values)

    def distribution(self) -> "BaseDistribution":
        """For Optuna."""
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(self.values)


class SearchRange(NamedTuple):
    """Numbers from low to high."""

    number_type: type
    low: float
    high: float
    log: bool
    step: float | None
    points: int

    def grid(self) -> list[Any]:
        """`points` numbers at equal distances, or at equal ratios; with a step the nearest ones."""
        ends = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        shares = [i / max(1, self.points - 1) for i in range(self.points)]
        values = [ends[0] + share * (ends[1] - ends[0]) for share in shares]
        if self.log:
            values = [math.exp(value) for value in values]
        if self.step is not None:
            values = [self.low + round((v - self.low) / self.step) * self.step for v in values]
        values = [min(self.high, max(self.low, value)) for value in values]
        return list(dict.fromkeys(round(v) if self.number_type is int else v for v in values))

    def distribution(self) -> "BaseDistribution":
        """For Optuna."""
        from optuna.distributions import FloatDistribution, IntDistribution

        if self.number_type is int:
            step = int(self.step or 1)
            return IntDistribution(int(self.low), int(self.high), log=self.log, step=step)
        return FloatDistribution(self.low, self.high, log=self.log, step=self.step)


Space = Mapping[str, Choices | SearchRange]

# Without a file: what matters most in PPO, over ranges that hold good values of most environments.
DEFAULT: Space = {
    "training.lr": SearchRange(float, 1e-4, 1e-2, True, None, _POINTS),
    "training.gamma": Choices(("0.95", "0.98", "0.99", "0.995", "0.998")),
    "training.gae_lambda": Choices(("0.8", "0.9", "0.95", "0.98")),
    "training.ent_coef": SearchRange(float, 1e-4, 0.2, True, None, _POINTS),
    "training.update_epochs": Choices(("1", "2", "4", "8")),
    "training.num_minibatches": Choices(("1", "2", "4", "8")),
    "training.clip_eps": Choices(("0.1", "0.2", "0.3")),
    "training.lr_schedule": Choices(('"constant"', '"linear"')),
}


def read_space(path: Path) -> Space:
    """Reads a file.

    Raises:
        UserError: it can't be read, names an unknown setting, or a range or choice is not valid.
    """
    if not path.is_file():
        raise UserError(f"--search-space {path}: no such file")
    space = {}
    for key, value in entries(path):
        try:
            space[key] = _dimension(key, value)
        except ValueError as error:
            raise UserError(f"{path}: {key} {error}") from None
    if not space:
        raise UserError(f"{path}: names no setting to search")
    _check_names(path, space)
    return space


def settings_of(params: Mapping[str, Any]) -> Settings:
    """The settings of one point of a space, by field of `TrainConfig`.

    Args:
        params: by key, as Optuna gives them.

    Raises:
        UserError: two keys mean the same setting.
    """
    settings: Settings = {}
    for key, value in params.items():
        found = convert_entry(key, json.loads(value) if isinstance(value, str) else value)
        if twice := settings.keys() & found.keys():
            raise UserError(f"the search space names {', '.join(twice)} twice")
        settings |= found
    return settings


def grid_points(space: Space) -> list[dict[str, Any]]:
    """All points of the grid, by key.

    Raises:
        UserError: there are too many.
    """
    values = [dimension.grid() for dimension in space.values()]
    if (count := math.prod(map(len, values))) > _MOST:
        raise UserError(
            f"the grid has {count:,} points, more than {_MOST:,}: give fewer choices or points, or "
            "take --sampler random"
        )
    return [dict(zip(space, each, strict=True)) for each in itertools.product(*values)]


def with_budget(space: Space, total_timesteps: int) -> Space:
    """The space with the length of a run as a dimension, from a thirtieth up to the whole."""
    if BUDGET in space:
        return space
    low = max(1, total_timesteps // 30)
    return {**space, BUDGET: SearchRange(int, low, total_timesteps, True, None, _POINTS)}


def _check_names(path: Path, space: Space) -> None:
    """Raises `UserError` if two keys mean the same setting, or one is not to be searched."""
    keys_by_setting: dict[str, str] = {}
    for key in space:
        for name in names_of(key):
            if name in _NOT_SEARCHED:
                raise UserError(f"{path}: {key} makes no agent better: it is not searched")
            if name in keys_by_setting:
                raise UserError(
                    f"{path}: {keys_by_setting[name]} and {key} mean the same; give one of them"
                )
            keys_by_setting[name] = key


def _dimension(key: str, value: Any) -> Choices | SearchRange:
    if isinstance(value, list) and value:
        for each in value:
            convert_entry(key, each)
        return Choices(tuple(json.dumps(each) for each in value))
    if not isinstance(value, dict) or not {"low", "high"} <= value.keys() <= _KEYS:
        raise ValueError(
            "must be a list of choices, or a range {low: .., high: ..} with log, step, points or "
            f"type, got {value!r:.60}"
        )
    return _range(key, value)


def _range(key: str, entry: Mapping[str, Any]) -> SearchRange:
    bound_type = number_type(key)
    if bound_type is None:
        raise ValueError("has no range: give a list of choices")
    if entry.get("type", bound_type.__name__) != bound_type.__name__:
        raise ValueError(f"is of type {bound_type.__name__}, not {entry['type']!r:.20}")
    log = convert(bool, entry.get("log", False))
    low, high = (convert(bound_type, entry[end]) for end in ("low", "high"))
    for end in (low, high):
        convert_entry(key, end)
    step = None if entry.get("step") is None else convert(bound_type, entry["step"])
    points = convert(int, entry.get("points", _POINTS))
    if not low < high or not 2 <= points <= _MOST or (step is not None and step <= 0):
        raise ValueError(f"needs low below high, a step above 0 and 2 to {_MOST:,} points")
    if step is not None and not math.isclose(steps := (high - low) / step, round(steps)):
        raise ValueError(f"needs a step of which {low:g} to {high:g} is a multiple, got {step:g}")
    if log and (low <= 0 or step is not None):
        raise ValueError("with log: low must be above 0, and there is no step")
    return SearchRange(bound_type, low, high, log, step, points)
