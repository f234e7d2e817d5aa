"""Something happens to a run between two of its updates."""

from collections.abc import Callable

import numpy as np
import pytest

from hackmatrix.learning.trainer.trainer import Trainer, TrainState


def after_update(
    patch: pytest.MonkeyPatch, update: int, act: Callable[[TrainState], TrainState | None]
) -> None:
    """Lets `act` do something after this update of every run; it may return another state."""
    run = Trainer.run

    def with_act(self: Trainer, state: TrainState, count: int) -> TrainState:
        if count and np.max(state.update) == update:
            changed = act(state)
            state = state if changed is None else changed
        return run(self, state, count)

    patch.setattr(Trainer, "run", with_act)
