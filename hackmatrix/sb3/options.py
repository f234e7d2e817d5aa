"""The options of `hackmatrix sb3`, without Stable-Baselines3, whose import takes seconds."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hackmatrix.bridge.client import VARIABLE
from hackmatrix.errors import UserError
from hackmatrix.options import check, option

Backend = Literal["python", "process", "jax"]

# The settings of MaskablePPO: those that the original documents, and those of its script.
PRESETS: dict[str, dict[str, Any]] = {
    "documented": {
        "n_steps": 2048,
        "batch_size": 64,
        "n_epochs": 10,
        "ent_coef": 0.1,
        "vf_coef": 0.5,
        "policy_kwargs": {},
    },
    "original": {
        "n_steps": 4096,
        "batch_size": 64,
        "n_epochs": 20,
        "ent_coef": 0.3,
        "vf_coef": 1.0,
        "policy_kwargs": {"net_arch": {"pi": [256, 256, 128], "vf": [256, 256, 128]}},
    },
}
SHARED = {"learning_rate": 3e-4, "gamma": 0.99, "gae_lambda": 0.95, "clip_range": 0.2}


class _Player:
    """Who plays, as some of the options say it."""

    backend: Backend | None
    game_binary: str | None
    debug: bool
    info: bool

    @property
    def player(self) -> str:
        """The backend: a binary, given or named by the environment, makes it the process."""
        named = self.game_binary or os.environ.get(VARIABLE)
        return self.backend or ("process" if named else "python")

    def of_game(self, *, evaluation: bool = False) -> dict[str, Any]:
        """The options of a single game."""
        player = "python" if evaluation and self.player == "jax" else self.player
        if player != "process":
            return {"backend": player}
        flags = {"--debug": self.debug, "--info": self.info}
        first = [flag for flag, given in flags.items() if given][:1]
        return {"backend": player, "game_binary": self.game_binary, "game_flags": first}

    def _check_player(self) -> None:
        if self.game_binary is not None and self.backend not in (None, "process"):
            raise UserError(f"--game-binary goes with --backend process, not with {self.backend}")


@dataclass(frozen=True)
class Sb3TrainOptions(_Player):
    """The options of `hackmatrix sb3 train`."""

    timesteps: int = option(
        1_000_000, "steps to train for; a resumed run goes on counting its own", at_least=1
    )
    save_freq: int = option(10_000, "steps between checkpoints", at_least=1)
    eval_freq: int = option(5_000, "steps between evaluations; 0 for none", at_least=0)
    log_dir: Path = option(Path("./logs"), "folder of logs: metrics, history, trackers")
    model_dir: Path = option(Path("./models"), "folder of models")
    resume: Path | None = option(None, "a saved model to continue from")
    run_suffix: str | None = option(None, "added to the name of the run after a dash")
    debug: bool = option(False, "the game process, or Stable-Baselines3, says all on stderr")
    info: bool = option(False, "the game process, or Stable-Baselines3, says more on stderr")
    num_envs: int = option(1, "games in parallel", at_least=1, at_most=65_536)
    max_episode_steps: int = option(1_000, "actions after which a game is truncated", at_least=1)
    wandb: bool = option(True, "log to Weights & Biases, where one is logged in")
    preset: Literal["documented", "original"] = option(
        "documented", "settings of MaskablePPO: as the original documents them, or as its script"
    )
    backend: Backend | None = option(
        None,
        "who plays: the engine in this process (python), a game process, or the JAX engine; "
        "process if HACKMATRIX_BINARY names one, else python",
    )
    game_binary: str | None = option(
        None, "binary of a game process, and so --backend process; else HACKMATRIX_BINARY's"
    )
    n_steps: int | None = option(
        None,
        "steps of each game in an update; the preset's, divided by the games on the JAX engine",
        at_least=2,
    )
    batch_size: int | None = option(None, "steps of a minibatch; the preset's", at_least=2)
    seed: int = option(0, "seed of the network, the actions and the games", at_least=0)

    def __post_init__(self) -> None:
        check(self)
        self._check_player()

    def of_algorithm(self) -> dict[str, Any]:
        """The settings of MaskablePPO."""
        settings = {**SHARED, **PRESETS[self.preset]}
        if self.player == "jax":  # else a batch of many games would not fit into memory
            settings["n_steps"] = max(settings["n_steps"] // self.num_envs, 16)
            settings["batch_size"] = max(
                settings["batch_size"], settings["n_steps"] * self.num_envs // 32
            )
        given = {"n_steps": self.n_steps, "batch_size": self.batch_size}
        return settings | {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class WatchOptions(_Player):
    """The options of `hackmatrix sb3 watch`."""

    model: Path | None = option(None, "the saved model; also the first argument, without a flag")
    latest: bool = option(False, "the newest model in the folder of models")
    model_dir: Path = option(Path("./models"), "folder of models")
    episodes: int = option(3, "games to play", at_least=1)
    max_steps: int = option(500, "actions after which a game is cut off", at_least=1)
    debug: bool = option(False, "the game process says all on stderr")
    info: bool = option(False, "the game process says more on stderr")
    backend: Backend | None = option(None, "who plays, as for `hackmatrix sb3 train`")
    game_binary: str | None = option(None, "binary of a game process, and so --backend process")
    delay: float = option(0.3, "seconds between actions on a terminal", at_least=0, at_most=60)
    seed: int = option(0, "seed of the first game", at_least=0)

    def __post_init__(self) -> None:
        check(self)
        self._check_player()
