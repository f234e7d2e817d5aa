"""The command `hackmatrix` with the tiny grid in place of the game: `python -m grid_command train`.

For tests that have to kill the process, or to start it anew: it compiles in a second.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

from hackmatrix import ENVIRONMENT_ID
from hackmatrix.environments.registry import MAKERS


def make(**_: Any) -> Any:
    import probe_environments as probes

    return probes.Grid()


MAKERS[ENVIRONMENT_ID] = lambda: make


def stall_after(updates: int) -> None:
    """Lets the trainer make so many updates and no more."""
    from hackmatrix.learning.trainer.trainer import Trainer

    run = Trainer.run

    def stalling(self: Trainer, state: Any, num_updates: int) -> Any:
        if num_updates and int(state.update) >= updates:
            time.sleep(600)
        return run(self, state, num_updates)

    Trainer.run = stalling  # type: ignore[method-assign]


def wait_at_gate(updates: int, gate: Path) -> None:
    """Lets the trainer make so many updates, and the others when the file `gate` is gone."""
    from hackmatrix.learning.trainer.trainer import Trainer

    run = Trainer.run

    def waiting(self: Trainer, state: Any, num_updates: int) -> Any:
        while num_updates and int(state.update) >= updates and gate.exists():
            time.sleep(0.02)
        return run(self, state, num_updates)

    Trainer.run = waiting  # type: ignore[method-assign]


if __name__ == "__main__":
    from hackmatrix.cli.main import main

    if (gate := os.environ.get("GATE")) is not None:
        wait_at_gate(int(os.environ["GATE_AT"]), Path(gate))

    if (stall := int(os.environ.get("STALL", "-1"))) >= 0:
        stall_after(stall)
    sys.exit(main())
