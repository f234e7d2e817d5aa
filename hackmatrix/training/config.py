"""The configuration of a training run. Imports no JAX, so that `--help` is quick."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hackmatrix.errors import UserError
from hackmatrix.options import check_ranges, flag, option
from hackmatrix.runs.names import check_word

MAX_SEED = 2**31 - 1
DEFAULT_FOLDER = Path("checkpoints")


@dataclass(frozen=True)
class TrainConfig:
    """Every setting of a run. One that exists is valid: making a wrong one raises `UserError`."""

    num_envs: int = option(256, "games played side by side", at_least=1, at_most=2**24)
    num_steps: int = option(128, "actions in each game between updates", at_least=1, at_most=2**20)
    total_timesteps: int = option(
        10_000_000, "actions in all games together, rounded up to whole updates", at_least=1
    )
    lr: float = option(
        2.5e-4, "learning rate of Adam; unless given, scaled for large batches", above=0
    )
    gamma: float = option(0.99, "discount of the next step's value", at_least=0, at_most=1)
    gae_lambda: float = option(0.95, "how far advantages look ahead", at_least=0, at_most=1)
    num_minibatches: int = option(
        4,
        "parts of a batch, one gradient step each; unless given, scaled for large batches",
        at_least=1,
    )
    update_epochs: int = option(
        4, "passes over a batch; unless given, scaled for large batches", at_least=1
    )
    clip_eps: float = option(0.2, "how far a probability ratio counts", above=0)
    vf_coef: float = option(0.5, "weight of the value loss", at_least=0)
    ent_coef: float = option(0.15, "weight of the entropy bonus", at_least=0)
    max_grad_norm: float = option(0.5, "longest gradient, by its global norm", above=0)
    hidden_dim: int = option(256, "width of the network's layers", at_least=1)
    num_layers: int = option(2, "layers of the network's trunk", at_least=1)
    dtype: Literal["float32", "bfloat16"] = option(
        "float32", "precision of the network's products; params and loss stay float32"
    )
    observation: Literal["classic", "full"] = option(
        "full", "what the agent sees: as in the original, or all that a player can work out"
    )
    max_episode_steps: int | None = option(
        None,
        "cut games off after so many actions; never unless given",
        at_least=1,
        at_most=2**31 - 1,
    )
    log_interval: int = option(10, "updates from one line of metrics to the next", at_least=1)
    run_name: str | None = option(
        None, "folder of the run; hackmatrix-jax-{mon}{dd}-{yy}-{n} unless given"
    )
    run_suffix: str | None = option(None, "added to the name of the run")
    checkpoint_dir: Path = option(  # noqa: RUF009, a field, not a value
        DEFAULT_FOLDER, "folder in which runs are kept"
    )
    seed: int = option(0, "the same seed gives the same run", at_least=0, at_most=MAX_SEED)

    def __post_init__(self) -> None:
        check_ranges(self)
        for name in ("run_name", "run_suffix"):
            if (text := getattr(self, name)) is not None:
                check_word(flag(name), text)
        if self.batch_size % self.num_minibatches:
            raise UserError(
                f"--num-minibatches {self.num_minibatches} must divide num_envs x num_steps = "
                f"{self.num_envs} x {self.num_steps} = {self.batch_size}"
            )

    @property
    def batch_size(self) -> int:
        """Transitions of one update."""
        return self.num_envs * self.num_steps

    @property
    def num_updates(self) -> int:
        """Updates of the whole run: `total_timesteps` rounded up."""
        return -(-self.total_timesteps // self.batch_size)
