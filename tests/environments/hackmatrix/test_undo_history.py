"""A player's memory is what it saw at the positions that are saved for UNDO."""

import random

import jax.numpy as jnp
import numpy as np
import pytest
from lockstep_starts import new, quiet

from hackmatrix.environments.hackmatrix.imagination import UndoMemory
from hackmatrix.game.engine.game import Game
from hackmatrix.game.engine.observation import observe
from hackmatrix.game.rules.actions import FIRST_PROGRAM
from hackmatrix.game.rules.observation import BYTE, RECORD_SIZE, SCALAR
from hackmatrix.game.rules.programs import MAX_SAVED_STATES, ProgramId

UNDO = FIRST_PROGRAM + ProgramId.UNDO
# UNDO does not restore them, so they may be others by then.
_LATER = ("flags", "saved", "next_task", "interval", "pending")
RESTORED = np.ones(RECORD_SIZE, bool)
for _name in _LATER:
    RESTORED[BYTE[_name] : BYTE[_name] + SCALAR[_name].size] = False


@pytest.mark.slow
def test_past_observations_are_those_of_the_saved_positions() -> None:
    rng = random.Random(4)
    looks, undone, full, stages = 0, 0, 0, set()
    for number in range(24):
        state = quiet(rng) if number % 2 else new(rng)
        state.saved = []
        game, memory = Game(state), UndoMemory.empty(1)
        for _ in range(40):
            now = np.frombuffer(observe(state), np.uint8)
            memory = memory.after(jnp.asarray(now)[None])
            count = len(state.saved)
            truth, kept = UndoMemory.of(state), MAX_SAVED_STATES - count
            np.testing.assert_array_equal(
                np.asarray(memory.records)[0, kept:, RESTORED],
                np.asarray(truth.records)[0, kept:, RESTORED],
            )
            assert int(memory.saved[0]) == count
            if not (valid := game.valid_actions()):
                break
            action = UNDO if UNDO in valid and rng.random() < 0.3 else rng.choice(valid)
            looks, undone, full = looks + 1, undone + (action == UNDO), full + (count == 4)
            stages.add(state.stage)
            game.step(action)
    assert looks > 300
    assert undone > 50
    assert full > 50
    assert len(stages) > 4
