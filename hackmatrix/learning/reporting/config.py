"""The settings of metrics, alarms, evaluations and trackers. Imports no JAX."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from hackmatrix.core.options import check, option


@dataclass(frozen=True)
class ReportConfig:
    """Reports of a run: their contents, times and receivers. No compiled program reads it."""

    SECTION: ClassVar = "logging"

    on_unhealthy: Literal["warn", "stop"] = option(
        "warn",
        "what a critical alarm does: print a warning, or also stop the run",
        compiled=False,
        section="training",
        common=True,
    )
    log_interval: int = option(10, "updates between lines of metrics", at_least=1, compiled=False)
    eval_interval: int | None = option(
        None, "updates between evaluations; default none", at_least=1, compiled=False, common=True
    )
    eval_episodes: int = option(
        256, "games of an evaluation, none of them trained on", at_least=1, compiled=False
    )
    tensorboard: bool = option(
        True, "write event files for TensorBoard", compiled=False, common=True
    )
    wandb: bool = option(
        True, "log to Weights & Biases, if installed and logged in", compiled=False, common=True
    )
    project: str = option("hackmatrix", "project at Weights & Biases", compiled=False)
    entity: str | None = option(None, "team at Weights & Biases; default your own", compiled=False)
    artifact: bool = option(True, "upload checkpoints to Weights & Biases", compiled=False)

    def __post_init__(self) -> None:
        check(self)
