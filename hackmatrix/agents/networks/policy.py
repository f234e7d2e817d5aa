"""Loads a trained policy: makes its network from the settings that are saved beside its params.

For files without settings, such as the original's, an `mlp` is inferred from the arrays' shapes.
JAX is loaded when the network is made, not before.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hackmatrix.agents.networks.architectures import NetworkConfig, plays_greedily
from hackmatrix.core.errors import UserError
from hackmatrix.core.jax_defaults import with_jax_defaults
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.environments.registry import check_code, make, make_environment
from hackmatrix.game.rules.observation import FEATURE_SIZE
from hackmatrix.runs.other_names import params_of_name
from hackmatrix.runs.params import Exported, load_params

if TYPE_CHECKING:
    from hackmatrix.agents.networks.network import Network
    from hackmatrix.environments.interface.environment import Environment

_DICTATED = ("architecture", "hidden_dim", "num_layers", "activation", "layer_norm")


@dataclass(frozen=True, eq=False)  # `jax.jit` tells functions apart by identity
class Policy:
    """Params of a network, and what is needed to rebuild the network."""

    path: Path
    params: dict[str, Any]
    config: NetworkConfig
    environment: str  # id of the environment that it was trained on
    observation: str  # observation layout that it reads; used for HackMatrix only
    about: dict[str, Any]  # the JSON facts saved beside the file; empty without them

    def __repr__(self) -> str:
        return (
            f"Policy({str(self.path)!r}, architecture={self.config.architecture!r}, "
            f"environment={self.environment!r}, observation={self.observation!r})"
        )

    @property
    def greedy(self) -> bool:
        """Whether it is evaluated by its most probable actions, as its learner means it to be."""
        return plays_greedily(self.about.get("config"))

    @with_jax_defaults
    def make(self, named_by_user: str | None = None) -> "tuple[Environment, Network]":
        """Makes the environment it was trained on, with its default time limit, and the network.

        Args:
            named_by_user: the environment that the user names; see `check_code`.

        Raises:
            UserError: there is no such environment, it is code that the user does not name, its
                package is not installed, or the params do not fit it.
        """
        import jax

        from hackmatrix.agents.networks.network import make_network

        check_code(self.environment, named_by_user, f"{self.path}: plays")
        env = make_environment(self.environment, self.observation)
        network = make_network(env, self.config)
        self.check_shapes(shapes_by_name(jax.eval_shape(network.init, jax.random.key(0))))
        return env, network

    @with_jax_defaults
    def __call__(self, params: Any, observation: Any, mask: Any, key: Any) -> Any:
        """An action of one game, sampled, in the form that `hackmatrix.evaluate` plays with.

        Args:
            params: those of this policy, or others of its network.
            observation: of `hackmatrix.make(observation=self.observation)`; of another environment
                than HackMatrix its own.
            mask: bool[A], the valid actions.
            key: a JAX random key.

        Returns:
            int32[], a valid action.

        Raises:
            UserError: the network has a memory, which a single observation does not give it.
        """
        import jax

        from hackmatrix.agents.networks import distribution

        network = _network_of_one(self.environment, self.observation, self.config)
        if network.recurrent:
            raise UserError(
                f"{self.path}: has a memory: give it to hackmatrix.evaluate itself, or call the "
                "network of make()"
            )
        one, masks = jax.tree.map(lambda x: x[None], (observation, mask))
        log_probs = distribution.log_probabilities(network(params, one)[0], masks)
        return distribution.sample(log_probs, masks, jax.random.uniform(key)[None])[0]

    def check_shapes(self, ours: Mapping[str, list[int]]) -> None:
        """Raises `UserError` if the params have other shapes than these, those of its network."""
        theirs = shapes_by_name(self.params)
        for name in sorted({*ours, *theirs}):
            if ours.get(name) != theirs.get(name):
                raise UserError(
                    f"{self.path}: {name} is {theirs.get(name, 'missing')}, the network "
                    f"{self.config.architecture} for {self.environment} wants "
                    f"{ours.get(name, 'none')}"
                )


@cache
def _network_of_one(environment: str, observation: str, config: NetworkConfig) -> "Network":
    """The network of an environment whose observations are what it reads."""
    from hackmatrix.agents.networks.network import make_network

    check_code(environment, None, "the agent plays")
    options = {"observation": observation} if environment == ENVIRONMENT_ID else {}
    return make_network(make(environment, **options), config)


def load_policy(path: Path) -> Policy:
    """Loads params (a file, a run's folder, or another name of them) and their network's settings.

    Raises:
        UserError: the file is missing, damaged, or holds something else.
    """
    return policy_of(load_params(params_of_name(path)))


def settings_of_params(path: Path) -> dict[str, Any]:
    """The settings of a training that the params in a file dictate: its network's, and its layout.

    Raises:
        UserError: see `load_policy`.
    """
    policy = load_policy(path)
    settings = {name: getattr(policy.config, name) for name in _DICTATED}
    if policy.environment == ENVIRONMENT_ID:
        settings["observation"] = policy.observation
    return settings


def policy_of(exported: Exported) -> Policy:
    """The policy of params and the settings of their network.

    Raises:
        UserError: the settings are of no network of this version, or the params of another one.
    """
    about = exported.about
    environment = str(about.get("environment", ENVIRONMENT_ID))
    observation = str(about.get("observation", "full"))
    if settings := about.get("config"):
        config = NetworkConfig.read(exported.path.with_suffix(".json"), settings)
        config = replace(config, symmetric=False)  # only learning knows of weights that are shared
        observation = str(settings.get("observation", observation))
    else:
        config, num_features = _infer_config(exported.path, exported.params)
        if environment == ENVIRONMENT_ID:
            observation = _layout(exported.path, num_features)
    if environment == ENVIRONMENT_ID and observation not in FEATURE_SIZE:
        known = ", ".join(FEATURE_SIZE)
        raise UserError(
            f"{exported.path}: observation must be one of {known}, got {observation!r:.60}"
        )
    return Policy(exported.path, exported.params, config, environment, observation, about)


def _infer_config(path: Path, params: dict[str, Any]) -> tuple[NetworkConfig, int]:
    """Infers the settings of an `mlp` and its number of features from its arrays."""
    kernels = _kernels(path, params)
    *trunk, logits, value = [kernel.shape for kernel in kernels]
    num_features, hidden_dim = trunk[0]
    fitting = [(num_features, hidden_dim)] + [(hidden_dim, hidden_dim)] * (len(trunk) - 1)
    if trunk != fitting or logits[0] != hidden_dim or value != (hidden_dim, 1):
        shapes = ", ".join(f"{rows} x {cols}" for rows, cols in (*trunk, logits, value))
        raise UserError(f"{path}: layers of {shapes} do not make the network mlp")
    return NetworkConfig("mlp", hidden_dim, len(trunk)), num_features


def _layout(path: Path, num_features: int) -> str:
    """HackMatrix's observation layout with this number of features."""
    for layout, size in FEATURE_SIZE.items():
        if size == num_features:
            return layout
    raise UserError(
        f"{path}: reads {num_features} features; HackMatrix has "
        + " or ".join(f"{size} ({layout})" for layout, size in FEATURE_SIZE.items())
    )


def _kernels(path: Path, params: dict[str, Any]) -> list[np.ndarray]:
    """The kernels of Dense_0, Dense_1, ...: at least one trunk layer and the two heads."""
    layers = params.get("params", {}) if set(params) == {"params"} else {}
    names = [f"Dense_{i}" for i in range(len(layers))]
    if len(names) < 3 or set(layers) != set(names):
        raise UserError(f"{path}: holds no params.Dense_0, params.Dense_1, ... of the network mlp")
    for name in names:
        layer = layers[name]
        if not isinstance(layer, dict) or set(layer) != {"kernel", "bias"}:
            raise UserError(f"{path}: params.{name} must be a kernel and a bias")
        kernel, bias = layer["kernel"], layer["bias"]
        if isinstance(kernel, dict) or isinstance(bias, dict):
            raise UserError(f"{path}: params.{name} must be a kernel and a bias")
        if kernel.ndim != 2 or bias.shape != kernel.shape[1:]:
            raise UserError(f"{path}: params.{name} has shapes {kernel.shape} and {bias.shape}")
    return [layers[name]["kernel"] for name in names]


def shapes_by_name(tree: Mapping[str, Any], within: str = "") -> dict[str, list[int]]:
    """The shapes of the arrays in nested dicts, by their keys joined by dots."""
    shapes: dict[str, list[int]] = {}
    for key, value in tree.items():
        name = f"{within}{key}"
        if isinstance(value, Mapping):
            shapes |= shapes_by_name(value, f"{name}.")
        else:
            shapes[name] = list(value.shape)
    return shapes
