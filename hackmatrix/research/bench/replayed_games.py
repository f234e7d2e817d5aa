"""Replays games of a benchmark on the Python engine, action by action."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np

from hackmatrix.game.engine import Game
from hackmatrix.game.engine.state import State
from hackmatrix.game.rules.actions import ACTION_NAMES
from hackmatrix.game.rules.rewards import UNIT

Array = np.ndarray | jax.Array  # NumPy when replayed, JAX when recorded


class ReplayError(Exception):
    """The Python engine plays the timed games differently."""


class Record(NamedTuple):
    """Actions and results of some of the timed games; arrays [steps, games, ...]."""

    mask: Array  # uint32, valid actions as bits, before the action
    action: Array  # int32
    parts: Array  # float32[..., 15]
    reward: Array  # float32
    ended: Array  # bool
    observation: Array  # uint8[..., RECORD_SIZE], after the action and auto-reset


@dataclass
class ReplayTotals:
    """Totals over the replayed games."""

    games: int = 0
    steps: int = 0
    enemies: int = 0  # sum over steps of the number on the board before the step
    stages: int = 0  # boards generated, those of new games included
    stage: int = 0  # sum over steps of the stage before the step


class ReplayStart(NamedTuple):
    """The start of a recorded game."""

    make: Callable[[], State]  # returns a new copy at each call
    again_after: int | None  # steps after which the game was reset to its start; None: never


def new_game(stream: int) -> ReplayStart:
    """The first game of a stream."""
    return ReplayStart(lambda: Game.new(stream).state, None)


def position(state: State, again_after: int) -> ReplayStart:
    """A position, to which the game is reset every `again_after` steps."""
    return ReplayStart(lambda: copy.deepcopy(state), again_after)


def replay(record: Record, starts: Sequence[ReplayStart]) -> ReplayTotals:
    """Replays the recorded actions on the Python engine and compares all recorded values.

    Args:
        record: arrays [steps, G, ...] of G games from their start.
        starts: the starts of the G games.

    Raises:
        ReplayError: something differs.
    """
    seen = ReplayTotals()
    for number, start in enumerate(starts):
        seen.games += 1
        _replay(Record(*(array[:, number] for array in record)), start, seen)
    return seen


def _replay(record: Record, start: ReplayStart, totals: ReplayTotals) -> None:
    steps = len(record.action)
    for step in range(steps):
        if step % (start.again_after or steps) == 0:
            game = Game(start.make())
        state, action = game.state, int(record.action[step])
        name = f"{state.dice.stream}/{state.dice.episode}, action {state.dice.clock}"
        totals.steps += 1
        totals.enemies += len(state.enemies)
        totals.stage += state.stage
        mask = sum(1 << valid for valid in game.valid_actions())
        outcome = game.step(action)
        after = game
        if outcome.done:
            game = Game.new(state.dice.stream, state.dice.episode + 1)
        totals.stages += outcome.done or outcome.stage_completed
        expected = {
            "mask": mask,
            "parts": list(outcome.parts.values()),
            "reward": sum(outcome.parts.values()),
            "ended": outcome.done,
            "observation": list(game.observation()),
        }
        got = {
            "mask": int(record.mask[step]),
            "parts": _units(record.parts[step]),
            "reward": _units(record.reward[step]),
            "ended": bool(record.ended[step]),
            "observation": np.asarray(record.observation[step]).tolist(),
        }
        for what, value in expected.items():
            if got[what] != value:
                raise ReplayError(
                    f"the Python engine plays game {name}, {ACTION_NAMES[action]}, differently: "
                    f"{what} is {value}, not {got[what]}, and then\n{after.to_text()}"
                )


def _units(rewards: Array) -> object:
    return np.rint(np.asarray(rewards, np.float64) / UNIT).astype(int).tolist()
