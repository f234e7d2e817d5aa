"""The options of `hackmatrix sb3`, without Stable-Baselines3, whose import takes seconds."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hackmatrix.core.errors import UserError
from hackmatrix.core.imports import install_command
from hackmatrix.core.options import check, option
from hackmatrix.game import native
from hackmatrix.game.rules.training_reward import REWARDS
from hackmatrix.integrations.process.client import START_TIMEOUT, TIMEOUT, VARIABLE


@contextlib.contextmanager
def packages() -> Iterator[None]:
    """Turns a missing package into an error that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "a package").partition(".")[0]
        raise UserError(
            f"{package} is not installed: {install_command('sb3')} brings it "
            "(before it, `pip install torch==2.13.0` where there is only a CPU)"
        ) from error


Backend = Literal["python", "process", "jax", "native"]
OF_MANY = ("jax", "native")  # these play all games in this process
Layout = Literal["dict", "classic", "full", "tactical"]


class Preset(NamedTuple):
    """Settings of MaskablePPO, and what options are where they are not given."""

    settings: dict[str, Any]
    observation: Layout = "dict"
    reward: str = "game"
    backend: Backend | None = None
    num_envs: int = 1
    rate_falls: bool = False  # the learning rate, to 0 by the end of the training


_SHARED = {"learning_rate": 3e-4, "gamma": 0.99, "gae_lambda": 0.95, "clip_range": 0.2}
PRESETS = {
    "documented": Preset(  # as the original documents them
        _SHARED
        | {
            "n_steps": 2048,
            "batch_size": 64,
            "n_epochs": 10,
            "ent_coef": 0.1,
            "vf_coef": 0.5,
            "policy_kwargs": {},
        }
    ),
    "original": Preset(  # as its script has them
        _SHARED
        | {
            "n_steps": 4096,
            "batch_size": 64,
            "n_epochs": 20,
            "ent_coef": 0.3,
            "vf_coef": 1.0,
            "policy_kwargs": {"net_arch": {"pi": [256, 256, 128], "vf": [256, 256, 128]}},
        }
    ),
    "tactical": Preset(  # those of `hackmatrix train --config quick`, for a run of 500,000 steps
        {
            "learning_rate": 1e-3,
            "gamma": 0.998,
            "gae_lambda": 0.95,
            "clip_range": 0.2,
            "n_steps": 4096,
            "batch_size": 512,
            "n_epochs": 4,
            "ent_coef": 0.01,
            "vf_coef": 0.5,
            "policy_kwargs": {"net_arch": [256, 256]},
        },
        observation="tactical",
        reward="progress",
        backend="jax",
        num_envs=64,
        rate_falls=True,
    ),
}


class _Player:
    """Who plays, as some of the options say it."""

    backend: Backend | None
    game_binary: str | None
    game_timeout: float
    game_start_timeout: float
    debug: bool
    info: bool

    @property
    def player(self) -> str:
        """The backend: a binary, given or named by the environment, makes it the process."""
        named = self.game_binary or os.environ.get(VARIABLE)
        return self.backend or ("process" if named else "python")

    def of_player(self, *, evaluation: bool = False) -> dict[str, Any]:
        """The options of a single game that say who plays it."""
        alone = self.player == "native" or (evaluation and self.player == "jax")
        player = "python" if alone else self.player
        if player != "process":
            return {"backend": player}
        flags = {"--debug": self.debug, "--info": self.info}
        first = [flag for flag, given in flags.items() if given][:1]
        return {
            "backend": player,
            "game_binary": self.game_binary,
            "game_flags": first,
            "game_timeout": self.game_timeout,
            "game_start_timeout": self.game_start_timeout,
        }

    def _check_player(self) -> None:
        if self.game_binary is not None and self.backend not in (None, "process"):
            raise UserError(f"--game-binary goes with --backend process, not with {self.backend}")
        if self.backend == "native" and not native.available:
            raise UserError("--backend native: it was left out at the installation; jax plays too")


@dataclass(frozen=True)
class Sb3TrainOptions(_Player):
    """The options of `hackmatrix sb3 train`."""

    timesteps: int = option(
        1_000_000, "steps to train; a resumed run continues its count", at_least=1
    )
    save_freq: int = option(10_000, "steps between checkpoints", at_least=1)
    eval_freq: int = option(5_000, "steps between evaluations; 0 for none", at_least=0)
    log_dir: Path = option(Path("./logs"), "folder of logs: metrics, history, trackers")
    model_dir: Path = option(Path("./models"), "folder of models")
    resume: Path | None = option(None, "a saved model to continue from")
    run_suffix: str | None = option(None, "suffix of the run's name, after a dash")
    debug: bool = option(
        False, "print a line for each step of a game process; Stable-Baselines3 at its most verbose"
    )
    info: bool = option(
        False, "print a line for each game of a game process; Stable-Baselines3 more verbose"
    )
    num_envs: int | None = option(
        None, "games in parallel; by default the preset's", at_least=1, at_most=65_536
    )
    max_episode_steps: int = option(1_000, "actions after which a game is truncated", at_least=1)
    wandb: bool = option(True, "log to Weights & Biases, if you are logged in")
    preset: str = option(
        "documented",
        "settings of MaskablePPO: those that the original documents, those of its script, or "
        "those that learn most, with the observation tactical and the reward progress on the JAX "
        "engine",
        choices=PRESETS,
    )
    observation: Layout | None = option(None, "what the agent observes; by default the preset's")
    reward: str | None = option(
        None,
        "reward to train with: the game's own, or progress through its stages; by default the "
        "preset's; evaluations and the history always have the game's",
        choices=REWARDS,
    )
    backend: Backend | None = option(
        None,
        "engine: in this process (python), a game process, or all games at once (native, or jax, "
        "which is native where that is there); by default the preset's, else process if "
        "HACKMATRIX_BINARY names one, else python",
    )
    game_binary: str | None = option(
        None,
        "binary of a game process, implies --backend process; by default HACKMATRIX_BINARY",
    )
    game_timeout: float = option(
        TIMEOUT, "seconds to wait for an answer of the game process", above=0
    )
    game_start_timeout: float = option(
        START_TIMEOUT, "seconds to wait for its first answer", above=0
    )
    n_steps: int | None = option(
        None,
        "steps of each game in an update; by default the preset's",
        at_least=2,
    )
    batch_size: int | None = option(
        None, "steps of a minibatch; by default the preset's", at_least=2
    )
    seed: int = option(0, "seed of the network, the actions and the games", at_least=0)

    def __post_init__(self) -> None:
        check(self)
        self._check_player()

    @property
    def player(self) -> str:
        """The backend: that of the preset, unless another is given."""
        named = self.backend or self.game_binary
        return super().player if named else PRESETS[self.preset].backend or super().player

    @property
    def games(self) -> int:
        """The number of games in parallel."""
        return self.num_envs or PRESETS[self.preset].num_envs

    def of_game(self, *, evaluation: bool = False) -> dict[str, Any]:
        """Observation layout and reward of a game; an evaluation has the game's own reward."""
        preset = PRESETS[self.preset]
        return {
            "observation": self.observation or preset.observation,
            "reward": "game" if evaluation else self.reward or preset.reward,
        }

    def of_algorithm(self) -> dict[str, Any]:
        """The settings of MaskablePPO, nothing of this package: saved models are read without it.

        Raises:
            ModuleNotFoundError: Stable-Baselines3 is not installed.
        """
        preset = PRESETS[self.preset]
        settings = dict(preset.settings)
        if preset.rate_falls:
            from stable_baselines3.common.utils import LinearSchedule  # its import takes seconds

            settings["learning_rate"] = LinearSchedule(settings["learning_rate"], 0.0, 1.0)
        if self.player == "jax":  # else a batch of many games would not fit into memory
            settings["n_steps"] = max(settings["n_steps"] // self.games, 16)
            settings["batch_size"] = max(
                settings["batch_size"], settings["n_steps"] * self.games // 32
            )
        given = {"n_steps": self.n_steps, "batch_size": self.batch_size}
        return settings | {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class SB3WatchOptions(_Player):
    """The options of `hackmatrix sb3 watch`."""

    model: Path | None = option(None, "saved model; also accepted as the first argument")
    latest: bool = option(False, "the newest model in the folder of models")
    model_dir: Path = option(Path("./models"), "folder of models")
    episodes: int = option(3, "games to play", at_least=1)
    max_steps: int = option(500, "actions after which a game is cut off", at_least=1)
    debug: bool = option(False, "print a line for each step of a game process")
    info: bool = option(False, "print a line for each game of a game process")
    backend: Backend | None = option(None, "engine, as for `hackmatrix sb3 train`")
    game_binary: str | None = option(
        None, "binary of a game process, which implies --backend process"
    )
    game_timeout: float = option(
        TIMEOUT, "seconds to wait for an answer of the game process", above=0
    )
    game_start_timeout: float = option(
        START_TIMEOUT, "seconds to wait for its first answer", above=0
    )
    delay: float = option(0.3, "seconds between actions on a terminal", at_least=0, at_most=60)
    seed: int = option(0, "seed of the first game", at_least=0)

    def __post_init__(self) -> None:
        check(self)
        self._check_player()
