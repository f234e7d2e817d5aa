"""Configuration files: YAML with the sections model, environment and so on.

A key is the name of a setting of `TrainConfig`, in its section, or another trainer's name for it
(`n_epochs`, `clip_range`, `hidden_sizes`, ...).
"""

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from hackmatrix.core.errors import UserError
from hackmatrix.core.options import convert
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.core.yaml_file import config_file, mapping_of, read_yaml
from hackmatrix.environments.registry import environment_id
from hackmatrix.learning.settings.config import OPTIONS, TrainConfig
from hackmatrix.learning.trainer.config import AlgorithmConfig

Settings = dict[str, Any]

DEFAULT = "best"  # the settings of a new run without a file
BATCH_SIZE = "batch_size"  # minibatch size; converted to num_minibatches when the batch is known

_FIELDS = {f"{option.section}.{option.key}": name for name, option in OPTIONS.items()}
_OTHER_NAMES = {key: name for name, option in OPTIONS.items() for key in option.other_keys}


def _layers(sizes: Any) -> Settings:
    if not isinstance(sizes, list) or not sizes or len(set(map(str, sizes))) > 1:
        raise ValueError(f"must be a list of equal widths, as [256, 256], got {sizes!r}")
    return {"hidden_dim": convert(int, sizes[0]), "num_layers": len(sizes)}


def _architecture(name: Any) -> Settings:
    return {"architecture": OPTIONS["architecture"].convert("mlp" if name == "ppo" else name)}


_CONVERSIONS: dict[str, Callable[[Any], Settings]] = {
    "model.hidden_sizes": _layers,
    "model.architecture": _architecture,
    "training.batch_size": lambda size: {BATCH_SIZE: convert(int, size)},
}
_DECIDED = {
    "model.hidden_sizes": ("hidden_dim", "num_layers"),
    "model.architecture": ("architecture",),
    "training.batch_size": ("num_minibatches",),
}
_KEYS = {**_FIELDS, **_OTHER_NAMES, **dict.fromkeys(_CONVERSIONS)}
_SECTIONS = tuple(dict.fromkeys(key.split(".")[0] for key in _KEYS))


def default_settings(flags: Mapping[str, Any], name: str = DEFAULT) -> Settings:
    """The settings of a new run without a file: those of a file that is made for HackMatrix.

    Raises:
        UserError: the flags name no environment.
    """
    is_another = environment_id(flags.get("env", ENVIRONMENT_ID)) != ENVIRONMENT_ID
    return {} if is_another or flags.get("multi_task") else read_config(Path(name))


def read_config(path: Path) -> Settings:
    """Reads the settings in a file, by name, and `batch_size` if given.

    Args:
        path: of the file; or a name of `core/yaml_file.py`, of one that comes with the package.

    Raises:
        UserError: the file can't be read or is not YAML of this form, a name is unknown or given
            twice, or a value is not valid.
    """
    settings: Settings = {}
    named: dict[str, str] = {}
    path = config_file(path)
    for key, value in entries(path):
        try:
            values = convert_entry(key, value)
        except ValueError as error:
            raise UserError(f"{path}: {key} {error}") from None
        for name in values:
            meant = "num_minibatches" if name == BATCH_SIZE else name
            if meant in named:
                raise UserError(f"{path}: {named[meant]} and {key} mean the same; give one of them")
            named[meant] = key
        settings |= values
    return settings


def with_num_minibatches(settings: Mapping[str, Any]) -> Settings:
    """Replaces `batch_size` by `num_minibatches`.

    Raises:
        UserError: the batch is not a multiple of `batch_size`.
    """
    settings = dict(settings)
    size = settings.pop(BATCH_SIZE, None)
    if size is None or "num_minibatches" in settings:
        return settings
    num_envs = settings.get("num_envs", AlgorithmConfig.num_envs)
    num_steps = settings.get("num_steps", AlgorithmConfig.num_steps)
    if size < 1 or num_envs * num_steps % size:
        raise UserError(
            f"training.batch_size {size}, the size of a minibatch, must divide num_envs x "
            f"num_steps = {num_envs} x {num_steps} = {num_envs * num_steps}"
        )
    return settings | {"num_minibatches": num_envs * num_steps // size}


def dump_config(config: TrainConfig) -> str:
    """YAML text from which `read_config` reads the same configuration."""
    settings = config.as_dict()
    sections: dict[str, dict[str, Any]] = {}
    for key, name in _FIELDS.items():
        section, _, short = key.partition(".")
        if name in settings:
            sections.setdefault(section, {})[short] = settings[name]
    return yaml.safe_dump(sections, sort_keys=False)


def entries(path: Path) -> list[tuple[str, Any]]:
    """The file's keys as "section.name", all of them known, with their values as YAML has them.

    Raises:
        UserError: the file can't be read or is not YAML of this form, or a name is unknown.
    """
    pairs: list[tuple[str, Any]] = []
    for section, keys in read_yaml(path, "--config").items():
        if section not in _SECTIONS:
            raise UserError(
                f"{path}: unknown section {_shorten(section)}, {_nearest(str(section))}"
            )
        for name, value in mapping_of(path, f"section {section}", keys).items():
            key = f"{section}.{name}"
            if key not in _KEYS:
                raise UserError(f"{path}: unknown setting {_shorten(key)}, {_nearest(key)}")
            pairs.append((key, value))
    return pairs


def convert_entry(key: str, value: Any) -> Settings:
    """The settings of `TrainConfig` that a known key sets.

    Raises:
        ValueError: the value is not valid; the message continues a sentence that begins with the
            key.
    """
    if key in _CONVERSIONS:
        return _CONVERSIONS[key](value)
    name = _KEYS[key]
    assert name is not None
    return {name: OPTIONS[name].convert(value)}


def names_of(key: str) -> tuple[str, ...]:
    """The settings of `TrainConfig` that a known key decides."""
    name = _KEYS[key]
    return _DECIDED[key] if name is None else (name,)


def number_type(key: str) -> type | None:
    """The type of the numbers of a range, int or float, that a known key takes; else None."""
    name = _KEYS[key]
    kind = int if key == f"training.{BATCH_SIZE}" else name and OPTIONS[name].value_type
    return kind if kind in (int, float) else None


def _nearest(key: str) -> str:
    """A hint: the same name in another section, else the most similar name."""
    section, _, name = key.rpartition(".")
    if not section:
        near = difflib.get_close_matches(key, _SECTIONS, n=1)
        return f"did you mean {near[0]}?" if near else f"there are {', '.join(_SECTIONS)}"
    elsewhere = [known for known in _KEYS if known.partition(".")[2] == name]
    names = {known.partition(".")[2]: known for known in reversed(_KEYS)}
    near = [names[each] for each in difflib.get_close_matches(name, names, n=1)]
    near = elsewhere or difflib.get_close_matches(key, _KEYS, n=1, cutoff=0.8) or near
    return f"did you mean {near[0]}?" if near else "see `hackmatrix train --help`"


def _shorten(name: Any) -> str:
    return " ".join(str(name).split())[:60]
