"""Plays and replays evaluation games of HackMatrix, in the plain Python engine on all cores.

Imports neither JAX nor NumPy, so that the processes start fast.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from typing import NamedTuple, TypeVar

from hackmatrix.agents.roster.built_in import BUILT_IN
from hackmatrix.core.processes import num_cores
from hackmatrix.core.streams import below
from hackmatrix.game import native
from hackmatrix.game.engine.state import State
from hackmatrix.game.rules.chance import EVALUATION_STREAM
from hackmatrix.research.evaluation.accounts import Account, account

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")
_WORTH_A_PROCESS = 32  # games; fewer are played before processes have started


class PlayedReplay(NamedTuple):
    """A game that was played, by its seed and number."""

    seed: int
    episode: int
    actions: bytes


class PlainGame(NamedTuple):
    """A game that a built-in player is to play by its rule."""

    player: str
    seed: int
    episode: int
    max_steps: int
    forbidden: frozenset[int] = frozenset()  # actions that it may not take

    @property
    def choose(self) -> Callable[[State], int]:
        """The player's choice."""
        rule = BUILT_IN[self.player].choose
        return lambda state: rule(state, self.forbidden)


def replays(games: Sequence[PlayedReplay]) -> list[Account]:
    """The accounts of games that were played; the native engine's are the same, and come sooner."""
    if not native.available:
        return on_all_cores(_replay, games)
    from hackmatrix.research.evaluation.native_replays import native_replays

    streams = [EVALUATION_STREAM + game.seed for game in games]
    numbers, actions = [game.episode for game in games], [game.actions for game in games]
    return native_replays(streams, numbers, actions)


def play_games(games: Sequence[PlainGame]) -> list[Account]:
    """The accounts of games, played by a built-in player."""
    return on_all_cores(_play, games, unit="games")


def _replay(game: PlayedReplay) -> Account:
    actions = iter(game.actions)
    stream = EVALUATION_STREAM + game.seed
    return account(stream, game.episode, lambda _: next(actions), len(game.actions))


def _play(game: PlainGame) -> Account:
    return account(EVALUATION_STREAM + game.seed, game.episode, game.choose, game.max_steps)


def on_all_cores(
    function: Callable[[_Job], _Result],
    jobs: Sequence[_Job],
    *,
    unit: str | None = None,
    worth: int = _WORTH_A_PROCESS,
) -> list[_Result]:
    """The results of a function for many jobs, in processes if there are enough jobs for them.

    Args:
        function: a function of a module, for processes.
        jobs: its arguments.
        unit: what a job is called on the terminal, which then counts those that are done.
        worth: so many jobs take longer than a process to start.
    """
    if len(jobs) < 2 * worth:
        return list(_with_progress(map(function, jobs), len(jobs), unit))
    processes = min(num_cores(), len(jobs) // worth)
    # Not forked: this process may have threads of JAX.
    executor = ProcessPoolExecutor(processes, get_context("spawn"), _depend_on_parent)
    try:
        results = executor.map(function, jobs, chunksize=max(1, worth // 4))
        return list(_with_progress(results, len(jobs), unit))
    finally:
        executor.shutdown(cancel_futures=True)


def _with_progress(results: Iterator[_Result], total: int, unit: str | None) -> Iterator[_Result]:
    """The results as they come; a terminal shows how many there are, once a second at most."""
    terminal = below(sys.stderr)
    if unit is None or not terminal.isatty():
        yield from results
        return
    due = 0.0
    for number, result in enumerate(results, 1):
        if (now := time.monotonic()) >= due:
            due = now + 1
            terminal.write(f"\r{number:,} of {total:,} {unit}")
            terminal.flush()
        yield result
    terminal.write("\r\x1b[K")
    terminal.flush()


def _depend_on_parent() -> None:
    """Lets this process end with the command, and not by itself.

    Ctrl+C ends the command, which ends its processes; they need not say so too. A command that is
    killed can't end them: they would wait for games for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
