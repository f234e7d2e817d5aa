"""A run's configuration from all it may come from. Imports no JAX unless `auto_tune` asks for it.

From strong to weak: flags, the file of --config, the checkpoint that is resumed, --auto-tune, what
goes with the size of the batch, defaults.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hackmatrix.options import convert
from hackmatrix.training.config import TrainConfig
from hackmatrix.training.config_file import HINTS, read_config, with_num_minibatches
from hackmatrix.training.scaling import auto_scale_for_batch_size


def resolve(
    flags: Mapping[str, Any],
    file: Path | None = None,
    checkpoint: Mapping[str, Any] | None = None,
    *,
    auto_tune: bool = False,
) -> tuple[TrainConfig, list[str]]:
    """The configuration, and a line on each setting that was chosen for the user.

    Args:
        flags: the fields of `TrainConfig` given on the command line.
        file: of --config.
        checkpoint: the configuration of the checkpoint that is resumed; what this version does
            not know is left out.
        auto_tune: whether to choose for the device.

    Raises:
        UserError: the file can't be read, or a setting is wrong.
    """
    given = dict(flags)
    if file is not None:
        given = read_config(file) | given
    if checkpoint is not None:
        given = _known(checkpoint, given) | given
    notes = []
    if auto_tune:
        tuned = {name: value for name, value in _tuned(given).items() if name not in given}
        notes = [f"tuned for this device: {name} {value}" for name, value in tuned.items()]
        given = tuned | given
    given = with_num_minibatches(given)
    config, scaled = auto_scale_for_batch_size(TrainConfig(**given), given)
    return config, notes + [f"scaled for the batch of {config.batch_size:,}: {s}" for s in scaled]


def _known(checkpoint: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a checkpoint, but for what the `given` ones replace under another name."""
    replaced = {"num_minibatches"} if "batch_size" in given else set()
    return {
        name: convert(HINTS[name], value)
        for name, value in checkpoint.items()
        if name in HINTS and name not in replaced
    }


def _tuned(given: Mapping[str, Any]) -> dict[str, Any]:
    from hackmatrix.training import devices
    from hackmatrix.training.auto_tune import settings_for

    wanted = {name: given[name] for name in _OF_DEVICES if name in given}
    found = devices.prepared(TrainConfig(**wanted))
    return settings_for(found[0].platform, len(found))


_OF_DEVICES = ("device", "num_devices", "tpu_cores")
