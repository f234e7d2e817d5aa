"""The state of a run between two updates."""

from typing import NamedTuple

from hackmatrix.learning.trainer.trainer import TrainState


class LoopState(NamedTuple):
    """The trainer's state and the host's counters, between two updates."""

    train: TrainState
    update: int  # number of updates since the run's start
    last_logged: int  # update of the last row of metrics; `train.sums` cover the updates after it
