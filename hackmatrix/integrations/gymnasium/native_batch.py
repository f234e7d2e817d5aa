"""A batch of games for a vector environment, played by the native engine in NumPy arrays."""

from typing import NamedTuple

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from hackmatrix.core.processes import num_cores
from hackmatrix.environments.hackmatrix.observations import observations_of
from hackmatrix.game.engine.state import State
from hackmatrix.game.native import batch
from hackmatrix.game.native.conversion import state_to_engine
from hackmatrix.game.native.layout import Array, Games
from hackmatrix.integrations.gymnasium.batches import BatchSettings, BatchStep, Begun

_FACTS = (
    "reward_parts",
    "episode_return",
    "episode_length",
    "stage",
    "score",
    "programs_owned",
    "won",
)


class _Played(NamedTuple):
    """The games between two steps."""

    games: Games
    waiting: Array  # bool[N], games that are over; the next step begins what is in their places


class NativeBatch:
    """Plays N games; see `batches.Batch`."""

    def __init__(self, settings: BatchSettings) -> None:
        self._settings = settings
        self._threads = num_cores()

    def begin(self, streams: NDArray[np.uint32]) -> Begun:
        """Begins the first game of each stream."""
        games = batch.reset(streams, np.zeros_like(streams), threads=self._threads)
        return self._begin(games, np.zeros(len(streams), np.bool_))

    def replace(
        self, chosen: NDArray[np.bool_], begun: Begun, games: _Played, mask: Array
    ) -> Begun:
        """The games, of which those that are chosen have just begun."""
        del mask
        for of_all, new in zip(games.games, begun.games.games, strict=True):
            of_all[chosen] = new[chosen]
        return self._begin(games.games, games.waiting & ~chosen)

    def _begin(self, games: Games, waiting: Array) -> Begun:
        records, mask = batch.observe(games, threads=self._threads)
        return Begun(_Played(games, waiting), batch.flags(mask), self._observe(records))

    def play(self, games: _Played, actions: NDArray[np.int32]) -> tuple[_Played, BatchStep]:
        """Takes an action in each game; `games` is used up."""
        mode = self._settings.mode
        step = batch.step(
            games.games,
            actions,
            held=games.waiting,
            max_episode_steps=self._settings.max_episode_steps,
            auto_reset=mode != AutoresetMode.DISABLED,
            reward=self._settings.reward,
            threads=self._threads,
        )
        over = step.terminated | step.truncated
        ended = np.flatnonzero(over)
        mask, final = batch.flags(step.mask), None
        if mode == AutoresetMode.SAME_STEP:
            final = self._observe(step.final_observation) if ended.size else None
        else:  # where no action counts, a player may choose any
            mask[ended] = True
            step.observation[ended] = step.final_observation[ended]
        return _Played(games.games, over & (mode == AutoresetMode.NEXT_STEP)), BatchStep(
            observation=self._observe(step.observation),
            final_observation=final,
            mask=mask,
            reward=step.reward,
            terminated=step.terminated,
            truncated=step.truncated,
            facts={name: getattr(step, name) for name in _FACTS},
        )

    def state(self, games: _Played, index: int) -> State:
        """One of the games, in the Python engine."""
        return state_to_engine(games.games, index)

    def snapshot(self, games: _Played) -> _Played:
        """The games in arrays that can be pickled, and that no step changes."""
        return _Played(Games(*(x.copy() for x in games.games)), games.waiting)

    def _observe(self, records: Array) -> Array:
        layout = self._settings.observation
        layout = "classic" if layout == "dict" else layout
        return observations_of(records, layout, threads=self._threads)
