"""A trainer that takes over what an earlier one has compiled.

Most of the time of a tiny run goes into tracing, lowering and loading programs that an earlier run
of the same process had too.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax

from hackmatrix.environments.interface.environment import Environment
from hackmatrix.learning.ppo.trainer import Trainer
from hackmatrix.learning.settings.config import LOGGING, Course, TrainConfig

# Settings that no compiled program reads.
_OUTSIDE = {"seed", "on_unhealthy"} | {
    field.name for field in dataclasses.fields(TrainConfig) if field.metadata["section"] == LOGGING
}
_PROGRAMS: dict[Any, Any] = {}


class SharingTrainer(Trainer):
    def __init__(
        self,
        env: Environment,
        config: TrainConfig,
        devices: Sequence[jax.Device] | None = None,
        course: Course | None = None,
        *,
        detect_anomaly: bool = False,
        made_from_config: bool = False,
    ) -> None:
        del made_from_config  # nothing is kept on disk
        super().__init__(env, config, devices, course, detect_anomaly=detect_anomaly)
        if vars(env):  # it may have been made with other options
            return
        settings = {k: v for k, v in vars(config).items() if k not in _OUTSIDE}
        if config.lr_schedule == "constant":
            course = settings["total_timesteps"] = None
        how = (*self.mesh.devices.flat, detect_anomaly)
        key = (type(env), *settings.items(), course, *how)
        self._init, self._run = _PROGRAMS.setdefault(key, (self._init, self._run))
