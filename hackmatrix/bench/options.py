"""The options of the benchmarks. Imports no JAX, so that `--help` is quick."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hackmatrix.options import check_ranges, option

NUM_ENVS = 8_192  # from 1,024 to 16,384 they differ by a tenth: `hackmatrix bench scaling`
RESULTS = Path("benchmarks")


@dataclass(frozen=True)
class Options:
    """What all benchmarks have."""

    json: bool = option(False, "print one JSON object")

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True)
class EnvOptions(Options):
    """`bench env`."""

    num_envs: int = option(NUM_ENVS, "games at once", at_least=1, at_most=2**24)
    num_steps: int = option(64, "steps of each game in a repeat", at_least=1)
    repeats: int = option(7, "timed repeats, after one that compiles", at_least=1)
    play: Literal["random", "harder"] = option(
        "random",
        "random valid actions from new games on; or half the games walking to the exit and half at "
        "stages 3 to 8 among many enemies",
    )
    observation: Literal["compact", "features"] = option(
        "compact", "what each step makes: the record alone, or its float features too"
    )


@dataclass(frozen=True)
class UpdateOptions(Options):
    """What both benchmarks of training have."""

    num_envs: int = option(2_048, "games at once", at_least=1)
    num_steps: int = option(128, "steps of each game in an update", at_least=1)
    epochs: int | None = option(
        None, "passes over a batch; scaled for the batch unless given", at_least=1
    )
    minibatches: int | None = option(
        None, "parts of a batch; scaled for the batch unless given", at_least=1
    )
    dtype: Literal["float32", "bfloat16"] = option("float32", "precision of the network's products")
    observation: Literal["classic", "full"] = option("classic", "what the network reads")


@dataclass(frozen=True)
class TrainOptions(UpdateOptions):
    """`bench train`."""

    repeats: int = option(5, "timed updates, after one that compiles", at_least=1)


@dataclass(frozen=True)
class MemoryOptions(UpdateOptions):
    """`bench memory`."""

    updates: int = option(2, "updates of the process that is watched", at_least=1)


@dataclass(frozen=True)
class CompileOptions(Options):
    """`bench compile`."""

    repeats: int = option(1, "times that everything is compiled anew", at_least=1)


@dataclass(frozen=True)
class ScalingOptions(Options):
    """`bench scaling`."""

    output: Path = option(RESULTS, "folder for the figures and the plots")
    repeats: int = option(5, "timed repeats of each, in turn", at_least=1)
    max_envs: int = option(65_536, "the most games at once", at_least=64, at_most=2**24)
    max_enemies: int = option(16, "the most enemies on a board", at_least=0, at_most=32)
    num_envs: int = option(NUM_ENVS, "games at once where enemies are counted", at_least=1)


@dataclass(frozen=True)
class PeersOptions(Options):
    """`bench peers`."""

    output: Path = option(RESULTS, "folder for the table and the plot")
    repeats: int = option(7, "timed repeats of each, in turn", at_least=1)
    seconds: float = option(0.5, "about how long one repeat takes", above=0)


@dataclass(frozen=True)
class ProfileOptions(Options):
    """`bench profile`."""

    what: Literal["env", "train"] = option("env", "steps of the environment, or a training update")
    num_envs: int = option(2_048, "games at once", at_least=1)
    num_steps: int = option(16, "steps of each game", at_least=1)
    play: Literal["random", "harder"] = option("random", "as for `bench env`; not for training")
    output: Path | None = option(None, "folder to keep the profile in, for other viewers")


@dataclass(frozen=True)
class SeedsOptions(Options):
    """`bench seeds`."""

    config: Path | None = option(None, "settings of an agent, as for `hackmatrix train`")
    num_seeds: int = option(4, "agents in one program", at_least=2, at_most=1024)
    updates: int = option(1, "updates of each agent in a repeat", at_least=1)
    repeats: int = option(3, "timed repeats of each, in turn", at_least=1)


@dataclass(frozen=True)
class TrackersOptions(Options):
    """`bench trackers`."""

    config: Path | None = option(None, "settings of a run, as for `hackmatrix train`")
    timesteps: int = option(1_000_000, "length of the run", at_least=1)
    rows: int = option(500, "rows of metrics told to each", at_least=1, at_most=1_000)
    repeats: int = option(3, "times that each is told them", at_least=1)


@dataclass(frozen=True)
class ClassicOptions(Options):
    """`bench classic`."""

    output: Path = option(RESULTS, "folder for the figures and the plot")
    num_seeds: int = option(10, "agents of each environment", at_least=2, at_most=1024)
    episodes: int = option(100, "games that each of them plays at the end", at_least=1)
    configs: Path = option(Path("configs"), "folder of the files to train by")
