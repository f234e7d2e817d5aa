"""An agent from a file: the network's shape is found from the arrays."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hackmatrix import ENVIRONMENT_ID
from hackmatrix.agents.networks import ActorCritic
from hackmatrix.environments.registry import make_environment
from hackmatrix.errors import UserError
from hackmatrix.interface.environment import Environment
from hackmatrix.rules.actions import NUM_ACTIONS
from hackmatrix.rules.observation import FEATURE_SIZE
from hackmatrix.runs.params import load_params


class Policy(NamedTuple):
    """A network with its params, and what is known of where they come from."""

    path: Path
    network: ActorCritic
    params: dict[str, Any]
    feature_size: int  # length of the vector that the network reads
    about: dict[str, Any]

    @property
    def environment(self) -> str:
        """The id of the environment that it was trained on; HackMatrix unless the file says so."""
        return str(self.about.get("environment", ENVIRONMENT_ID))

    @property
    def observation(self) -> str:
        """The layout, "classic" or "full", of the observations of HackMatrix that it reads.

        Raises:
            UserError: it plays another environment.
        """
        if self.environment != ENVIRONMENT_ID:
            raise UserError(
                f"{self.path}: was trained on {self.environment}, not on {ENVIRONMENT_ID}"
            )
        if (actions := self.network.num_actions) != NUM_ACTIONS:
            raise UserError(
                f"{self.path}: chooses among {actions} actions, HackMatrix has {NUM_ACTIONS}"
            )
        for layout, size in FEATURE_SIZE.items():
            if size == self.feature_size:
                return layout
        raise UserError(
            f"{self.path}: reads {self.feature_size} features; HackMatrix has "
            + " or ".join(f"{size} ({layout})" for layout, size in FEATURE_SIZE.items())
        )

    def make_environment(self) -> Environment:
        """The environment that it was trained on, with its usual time limit.

        Raises:
            UserError: there is none of this name, its package is not installed, or the network
                does not fit it.
        """
        if self.environment == ENVIRONMENT_ID:
            return make_environment(self.environment, self.observation)
        env = make_environment(self.environment)
        here = f"{self.feature_size} features and {self.network.num_actions} actions"
        wanted = f"{env.feature_size} features and {env.num_actions} actions"
        if here != wanted:
            raise UserError(f"{self.path}: is for {here}; {self.environment} has {wanted}")
        return env


def load_policy(path: Path) -> Policy:
    """Reads params of an `ActorCritic` (a file, or a run's folder).

    Raises:
        UserError: the file is missing, damaged, or holds something else.
    """
    exported = load_params(path)
    kernels = _kernels(exported.path, exported.params)
    *trunk, logits, value = [kernel.shape for kernel in kernels]
    feature_size, hidden_dim = trunk[0]
    fitting = [(feature_size, hidden_dim)] + [(hidden_dim, hidden_dim)] * (len(trunk) - 1)
    if trunk != fitting or logits[0] != hidden_dim or value != (hidden_dim, 1):
        shapes = ", ".join(f"{rows} x {cols}" for rows, cols in (*trunk, logits, value))
        raise UserError(f"{exported.path}: layers of {shapes} do not make the network mlp")
    activation = exported.about.get("config", {}).get("activation", "relu")
    network = ActorCritic(logits[1], hidden_dim, len(trunk), activation=activation)
    return Policy(exported.path, network, exported.params, feature_size, exported.about)


def _kernels(path: Path, params: dict[str, Any]) -> list[np.ndarray]:
    """The matrices of Dense_0, Dense_1, ...; at least one of the trunk and the two heads."""
    layers = params.get("params", {}) if set(params) == {"params"} else {}
    names = [f"Dense_{i}" for i in range(len(layers))]
    if len(names) < 3 or set(layers) != set(names):
        raise UserError(f"{path}: holds no params.Dense_0, params.Dense_1, ... of the network mlp")
    for name in names:
        layer = layers[name]
        if not isinstance(layer, dict) or set(layer) != {"kernel", "bias"}:
            raise UserError(f"{path}: params.{name} must be a kernel and a bias")
        kernel, bias = layer["kernel"], layer["bias"]
        if kernel.ndim != 2 or bias.shape != kernel.shape[1:]:
            raise UserError(f"{path}: params.{name} has shapes {kernel.shape} and {bias.shape}")
    return [layers[name]["kernel"] for name in names]
