"""What a run carries from one update to the next."""

from typing import NamedTuple

from hackmatrix.learner.trainer import TrainState


class LoopState(NamedTuple):
    """A run between two updates: the trainer's state, and what the host counts beside it."""

    train: TrainState
    update: int  # updates made since the run's start
    last_logged: int  # the update of the last row of metrics; `train.sums` begin after it
