"""The options of the benchmarks. Imports no JAX, so that `--help` is fast."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from hackmatrix.core.options import check, option
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.resolve import auto_scale_for_batch_size

NUM_ENVS = 8_192  # from 1,024 to 16,384 games the speed differs by a tenth: `benchmarks.scaling`


@dataclass(frozen=True)
class Options:
    """Options that all benchmarks share."""

    json: bool = option(False, "print one JSON object")

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class EnvOptions(Options):
    """Options of `bench env`."""

    num_envs: int = option(NUM_ENVS, "games in parallel", at_least=1, at_most=2**24)
    num_steps: int = option(64, "steps of each game in a repeat", at_least=1)
    repeats: int = option(7, "timed repeats, after one that compiles", at_least=1)
    play: Literal["random", "harder"] = option(
        "random",
        "random valid actions in new games; or half the games walking to the exit and half at "
        "stages 3 to 8 among many enemies",
    )
    observation: Literal["compact", "features"] = option(
        "compact", "output of each step: the record alone, or float features too"
    )
    engine: Literal["auto", "native", "jax"] = option(
        "auto", "engine; auto is the native one where it plays"
    )


@dataclass(frozen=True)
class UpdateOptions(Options):
    """Options of all benchmarks of a training update."""

    num_envs: int = option(2_048, "games in parallel", at_least=1)
    num_steps: int = option(128, "steps of each game in an update", at_least=1)
    epochs: int | None = option(
        None, "passes over a batch; by default scaled to its size", at_least=1
    )
    minibatches: int | None = option(
        None, "minibatches of a batch; by default scaled to its size", at_least=1
    )
    dtype: Literal["float32", "bfloat16"] = option(
        "float32", "precision of the network's matrix products"
    )
    observation: Literal["classic", "full", "tactical"] = option(
        "classic", "feature layout that the network reads"
    )


@dataclass(frozen=True)
class BenchTrainOptions(UpdateOptions):
    """Options of `bench train`."""

    repeats: int = option(5, "timed updates, after one that compiles", at_least=1)


@dataclass(frozen=True)
class MemoryOptions(UpdateOptions):
    """Options of `bench memory`."""

    updates: int = option(2, "updates of the measured process", at_least=1)


@dataclass(frozen=True)
class CompileOptions(Options):
    """Options of `bench compile`."""

    repeats: int = option(1, "times to compile everything anew", at_least=1)


def train_config(options: UpdateOptions) -> TrainConfig:
    """The settings that `hackmatrix train` would use: scaled for the batch unless given."""
    given = {"update_epochs": options.epochs, "num_minibatches": options.minibatches}
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    chosen |= {"dtype": options.dtype, "observation": options.observation}
    config = TrainConfig.of(num_envs=options.num_envs, num_steps=options.num_steps, **chosen)
    learning, _ = auto_scale_for_batch_size(config.learning, chosen)
    return dataclasses.replace(config, learning=learning)
