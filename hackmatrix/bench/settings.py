"""The settings with which training is measured."""

from typing import Any

from hackmatrix.settings.batch_scaling import auto_scale_for_batch_size
from hackmatrix.settings.config import TrainConfig


def train_config(
    num_envs: int,
    num_steps: int,
    epochs: int | None,
    minibatches: int | None,
    dtype: str,
    observation: str,
) -> TrainConfig:
    """As `hackmatrix train` would have them: scaled for the batch where None is given."""
    given = {"update_epochs": epochs, "num_minibatches": minibatches}
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    chosen |= {"dtype": dtype, "observation": observation}
    config = TrainConfig(num_envs=num_envs, num_steps=num_steps, **chosen)
    return auto_scale_for_batch_size(config, chosen)[0]
