"""A trainer that takes over what an earlier one has compiled.

Most of the time of a tiny run goes into tracing, lowering and loading programs that an earlier run
of the same process had too.
"""

import inspect
from collections.abc import Sequence
from typing import Any

import jax

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.core.options import options_of
from hackmatrix.environments.hackmatrix.env import HackMatrixEnv
from hackmatrix.environments.interface.environment import Environment
from hackmatrix.learning.trainer.config import AlgorithmConfig, Course
from hackmatrix.learning.trainer.trainer import Trainer

_PROGRAMS: dict[Any, Any] = {}
_OPTIONS = [*inspect.signature(HackMatrixEnv).parameters]


class SharingTrainer(Trainer):
    def __init__(
        self,
        env: Environment,
        config: AlgorithmConfig,
        network: NetworkConfig,
        devices: Sequence[jax.Device] | None = None,
        course: Course | None = None,
        *,
        agents: range = range(1),
        detect_anomaly: bool = False,
    ) -> None:
        super().__init__(
            env, config, network, devices, course, agents=agents, detect_anomaly=detect_anomaly
        )
        is_game = isinstance(env, HackMatrixEnv)
        options = tuple(getattr(env, name) for name in _OPTIONS) if is_game else ()
        if vars(env) and not options:  # it may have been made with other ones
            return
        how = (*self.mesh.devices.flat, detect_anomaly)
        compiled = (name for name, each in options_of(type(config)).items() if each.compiled)
        structure = type(config), *(getattr(config, name) for name in compiled)
        key = (type(env), options, structure, network, len(agents), *how)
        self._init, self._run = _PROGRAMS.setdefault(key, (self._init, self._run))
