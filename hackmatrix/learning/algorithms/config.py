"""The settings of each learning algorithm. Imports no JAX, so that `--help` is fast."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hackmatrix.agents.networks.architectures import ALGORITHM_NAMES, PPO, import_algorithm
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import PRESENCE, Option, option, options_of
from hackmatrix.learning.trainer.config import AlgorithmConfig


@dataclass(frozen=True)
class ActorCriticConfig(AlgorithmConfig):
    """Settings of algorithms that learn a policy and its value."""

    vf_coef: float = option(
        0.5,
        "weight of the value loss",
        at_least=0,
        compiled=False,
        other_keys=("training.value_loss_coef",),
    )
    ent_coef: float = option(
        0.15,
        "weight of the entropy bonus",
        at_least=0,
        compiled=False,
        common=True,
        other_keys=("training.entropy_coef",),
    )
    final_ent_coef: float | None = option(
        None,
        "weight of the entropy bonus at the end of the run, approached exponentially; default "
        "--ent-coef",
        above=0,
        compiled=False,
        other_keys=("training.final_entropy_coef",),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.final_ent_coef is not None and self.ent_coef == 0:
            raise UserError(
                f"--final-ent-coef {self.final_ent_coef} needs --ent-coef above 0, as it is "
                "reached by equal factors"
            )


@dataclass(frozen=True)
class PPOConfig(ActorCriticConfig):
    """Settings of PPO."""

    clip_eps: float = option(
        0.2,
        "clip range of the probability ratio",
        above=0,
        compiled=False,
        other_keys=("training.clip_range",),
    )
    target_kl: float | None = option(
        None,
        "make no further epoch of an update after one whose KL divergence exceeds this",
        above=0,
        compiled=PRESENCE,
    )
    clip_value_loss: float | None = option(
        None,
        "clip range of the values' change in an update, in scaled rewards",
        above=0,
        compiled=PRESENCE,
    )


@dataclass(frozen=True)
class PQNConfig(AlgorithmConfig):
    """Settings of PQN."""

    algorithm: str = option("pqn", "", choices=ALGORITHM_NAMES)
    exploration_initial_eps: float = option(
        1.0, "chance of a random action at first", at_least=0, at_most=1, compiled=False
    )
    exploration_final_eps: float = option(
        0.05, "chance of a random action in the end", at_least=0, at_most=1, compiled=False
    )
    exploration_fraction: float = option(
        0.2,
        "part of the run in which that chance falls, linearly",
        above=0,
        at_most=1,
        compiled=False,
    )


@dataclass(frozen=True)
class ExpertIterationConfig(ActorCriticConfig):
    """Settings of expert iteration."""

    algorithm: str = option("expert_iteration", "", choices=ALGORITHM_NAMES)
    normalize_rewards: bool = option(False, "")
    simulations: int = option(8, "simulations before each action", at_least=1, at_most=2**12)
    search_weight: float = option(
        30.0,
        "logits by which an action gains that returns 1 more",
        above=0,
        compiled=False,
    )


CONFIG_CLASSES: dict[str, type[AlgorithmConfig]] = {
    PPO: PPOConfig,
    "pqn": PQNConfig,
    "expert_iteration": ExpertIterationConfig,
}


def config_class(algorithm: str) -> type[AlgorithmConfig]:
    """The class of an algorithm's settings.

    Raises:
        UserError: there is no such algorithm, it has no settings, or see `import_algorithm`.
    """
    if algorithm in CONFIG_CLASSES:
        return CONFIG_CLASSES[algorithm]
    if algorithm not in ALGORITHM_NAMES:
        AlgorithmConfig(algorithm)  # says what there is
    own: Any = getattr(import_algorithm(algorithm), "Config", None)
    if not (isinstance(own, type) and issubclass(own, AlgorithmConfig)):
        raise UserError(f"algorithm {algorithm}: has no Config, a subclass of `AlgorithmConfig`")
    return own


def convert_own_settings(
    config: type[AlgorithmConfig], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings of an algorithm of the user's own, as its `Config` takes them.

    Raises:
        UserError: it has no such setting, or a value is not valid.
    """
    if settings and config in CONFIG_CLASSES.values():
        raise UserError("--algorithm-settings goes with an --algorithm of your own, module:Class")
    options = options_of(config)
    there = [name for name in options if name not in AlgorithmConfig.__dataclass_fields__]
    values = {}
    for name, value in settings.items():
        if name not in there:
            has = f"has {', '.join(there)}" if there else "has none of its own"
            raise UserError(f"--algorithm-settings: the algorithm {has}, got {name}")
        try:
            values[name] = options[name].convert(value)
        except ValueError as error:
            raise UserError(f"--algorithm-settings: {name} {error}") from None
    return values


def learning_options() -> dict[str, Option]:
    """The settings of all algorithms; those that not all have say whose they are."""
    tables = {name: options_of(config) for name, config in CONFIG_CLASSES.items()}
    options = options_of(AlgorithmConfig)
    for table in tables.values():
        for name, each in table.items():
            if name not in options:
                owners = ", ".join(n for n, own in tables.items() if name in own)
                options[name] = each._replace(meaning=f"{owners}: {each.meaning}")
    return options
