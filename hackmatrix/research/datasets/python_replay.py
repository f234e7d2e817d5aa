"""Plays and replays games of data sets in the plain Python engine.

Imports neither JAX nor NumPy, so that processes start fast.
"""

import zlib
from array import array
from typing import NamedTuple

from hackmatrix.game.engine.actions import is_valid
from hackmatrix.game.engine.game import Game
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.rewards import UNIT
from hackmatrix.research.evaluation.plain_games import PlainGame

# --- The first difference of a replayed game from its recording -----------------------------------


class Difference(NamedTuple):
    """The first one of a game."""

    game: int  # number
    action: int  # from 0 on
    field: str  # action, reward, end or observation
    recorded: str
    replayed: str

    def __str__(self) -> str:
        return (
            f"game {self.game:,}, action {self.action:,}: {self.field} "
            f"{self.recorded} in the data, {self.replayed} when played again"
        )


# --- Plays and replays games of data sets in the plain Python engine ------------------------------


class OracleGame(NamedTuple):
    """A game of a data set."""

    seed: int
    episode: int
    max_steps: int
    actions: bytes
    units: bytes  # int32 for each action: its reward in units of 0.005
    terminated: bool
    final: int  # CRC-32 of the last observation


def play_plain(job: PlainGame) -> OracleGame:
    """The game, played by a built-in player."""
    game = Game.new(job.seed, job.episode)
    actions, units, choose = bytearray(), array("i"), job.choose
    while not game.state.over and len(actions) < job.max_steps:
        action = choose(game.state)
        actions.append(action)
        units.append(sum(game.step(action).parts.values()))
    final = zlib.crc32(game.observation())
    terminated = game.state.over is not None
    which = (job.seed, job.episode, job.max_steps)
    return OracleGame(*which, bytes(actions), units.tobytes(), terminated, final)


def first_difference(recorded: OracleGame) -> Difference | None:
    """Replays a game; None if it is what was recorded."""
    game, units = Game.new(recorded.seed, recorded.episode), array("i", recorded.units)

    def differs(time: int, field: str, there: object, here: object) -> Difference:
        return Difference(recorded.episode, time, field, str(there), str(here))

    last = len(recorded.actions) - 1
    for time, (action, gained) in enumerate(zip(recorded.actions, units, strict=True)):
        if not 0 <= action < NUM_ACTIONS or not is_valid(game.state, action):
            return differs(time, "action", action, "not valid")
        outcome = game.step(action)
        here = sum(outcome.parts.values())
        if here != gained:
            return differs(time, "reward", f"{gained * UNIT:g}", f"{here * UNIT:g}")
        if outcome.done and (time < last or not recorded.terminated):
            return differs(time, "end", "goes on", outcome.ending)
    if recorded.terminated and not game.state.over:
        return differs(last, "end", "ended", "goes on")
    if not game.state.over and last + 1 < recorded.max_steps:
        return differs(last, "end", "cut off", "goes on")
    if zlib.crc32(game.observation()) != recorded.final:
        return differs(last, "observation", f"{recorded.final:08x}", "another")
    return None
