"""A run's configuration from all it may come from. Imports no JAX unless `auto_tune` asks for it.

From strong to weak: flags, the file of --config, the checkpoint that is resumed, --auto-tune, what
goes with the size of the batch, defaults.
"""

from collections.abc import Mapping
from typing import Any

from hackmatrix.options import convert
from hackmatrix.settings.batch_scaling import auto_scale_for_batch_size
from hackmatrix.settings.config import TrainConfig
from hackmatrix.settings.config_file import BATCH_SIZE, HINTS, with_num_minibatches


def resolve(
    flags: Mapping[str, Any],
    in_file: Mapping[str, Any] | None = None,
    resumed: Mapping[str, Any] | None = None,
    *,
    auto_tune: bool = False,
) -> tuple[TrainConfig, list[str]]:
    """The configuration, and a line on each setting that was chosen for the user.

    Args:
        flags: the fields of `TrainConfig` given on the command line.
        in_file: what the file of --config gives, see `read_config`.
        resumed: the configuration of the run that is resumed; what this version does not know is
            left out.
        auto_tune: whether to choose for the device.

    Raises:
        UserError: a setting is wrong.
    """
    given = {**(in_file or {}), **flags}
    if resumed is not None:
        given = _known(resumed, given) | given
    notes = []
    if auto_tune:
        tuned = {name: value for name, value in _tuned(given).items() if name not in given}
        notes = [f"tuned for this device: {name} {value}" for name, value in tuned.items()]
        notes = notes or ["nothing to tune for this device: all of it is given"]
        given = tuned | given
    given = with_num_minibatches(given)
    accumulation = given.get("gradient_accumulation_steps", 1)
    unscaled = TrainConfig(**given | {"gradient_accumulation_steps": 1})
    config, scaled = auto_scale_for_batch_size(unscaled, given, accumulation)
    return config, notes + [f"scaled for the batch of {config.batch_size:,}: {s}" for s in scaled]


def _known(resumed: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a resumed run, but for what the `given` ones replace under another name."""
    replaced = {"num_minibatches"} if BATCH_SIZE in given else set()
    return {
        name: convert(HINTS[name], value)
        for name, value in resumed.items()
        if name in HINTS and name not in replaced
    }


def _tuned(given: Mapping[str, Any]) -> dict[str, Any]:
    from hackmatrix.settings.auto_tune import settings_for
    from hackmatrix.settings.devices import available_devices

    wanted = TrainConfig(**{name: given[name] for name in _OF_DEVICES if name in given})
    found = available_devices(wanted)
    count = wanted.num_devices or (wanted.tpu_cores if found[0].platform == "tpu" else None)
    return settings_for(found[0].platform, count or len(found))


_OF_DEVICES = ("device", "num_devices", "tpu_cores")
