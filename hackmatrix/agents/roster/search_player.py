"""An agent that searches with a network, in a process beside the page."""

import contextlib
import math
import multiprocessing
import signal
import threading
import zlib
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hackmatrix.agents.roster.opinion import Agent, Branch, SearchingPolicy
from hackmatrix.agents.roster.position_policies import network_of
from hackmatrix.core.errors import UserError
from hackmatrix.core.imports import need

if TYPE_CHECKING:
    from hackmatrix.agents.search.analysis import Analyst

# --- A search in a process of its own: a page answers while it loads JAX, compiles and thinks -----


_UNTRIED = -50.0  # a logit

Shares = tuple[list[float], float, tuple[Branch, ...]]


class SearchProcess:
    """The process; `ask` it once `wait` has returned."""

    def __init__(self, params: Path, simulations: int) -> None:
        """Starts it."""
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_answer, args=(theirs, params, simulations), daemon=True
        )
        self._process.start()
        theirs.close()
        self._turn = threading.Lock()

    def wait(self) -> None:
        """Waits until the search is compiled.

        Raises:
            UserError: the process has ended.
        """
        self._receive()

    def ask(self, record: bytes, mask: Sequence[bool], saved: Sequence[bytes]) -> Shares:
        """Logits of the actions' shares of the simulations, the largest for the one chosen.

        The value is the mean return of the simulations that began with that one.

        Raises:
            UserError: the process has ended.
        """
        with self._turn:
            with contextlib.suppress(OSError):  # `_receive` tells
                self._pipe.send((record, mask, saved))
            answer: Shares = self._receive()
            return answer

    def stop(self) -> None:
        """Ends it at once, whatever it does."""
        self._process.kill()

    def _receive(self) -> Any:
        try:
            answer = self._pipe.recv()
        except (EOFError, OSError):
            raise UserError("the process that searches has ended: start again") from None
        if isinstance(answer, Exception):
            raise answer
        return answer


def _answer(pipe: Connection, params: Path, simulations: int) -> None:
    """The process: searches each position that it is sent, until nobody can send another."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the page, which ends this too
    with contextlib.suppress(EOFError, OSError):
        try:
            analyst = _analyst(params, simulations)
        except Exception as error:  # whoever waits is told
            pipe.send(error)
            return
        pipe.send(None)
        while True:
            pipe.send(shares(analyst, *pipe.recv()))


def _analyst(params: Path, simulations: int) -> "Analyst":
    from hackmatrix.agents.roster.position_policies import network_of
    from hackmatrix.agents.search.analysis import Analyst
    from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
    from hackmatrix.game.engine import Game

    enable_compilation_cache()
    analyst = Analyst(network_of(params)[0], simulations)
    analyst.analyse(Game.new(0))  # compiles
    return analyst


def shares(
    analyst: "Analyst", record: bytes, mask: Sequence[bool], saved: Sequence[bytes]
) -> Shares:
    """An answer of `ask`: the analysis of a position, made here."""
    analysis = analyst.analyse_record(record, saved, mask, zlib.crc32(record))
    logits, value, branches = [_UNTRIED] * len(mask), analysis.value, list[Branch]()
    for choice in analysis.choices:
        is_chosen = choice.action == analysis.search
        if choice.visits or is_chosen:
            logits[choice.action] = math.log(choice.visits + is_chosen / 2)
        if choice.value is not None:
            branches.append(Branch(choice.action, choice.visits, choice.value, choice.line))
            value = choice.value if is_chosen else value
    return logits, value, tuple(branches)


# --- An agent that searches with a network, in a process beside the page --------------------------


class Searching:
    """Makes the agent; whoever asks for it waits until the search is compiled."""

    def __init__(self, name: str, params: Path, simulations: int) -> None:
        """Reads params, without loading JAX.

        Raises:
            UserError: they can't be searched with, or JAX is not installed.
        """
        need("jax")
        from hackmatrix.agents.search.searchable import check_searchable

        policy, _ = network_of(params)
        check_searchable(policy)
        self._name = name
        self._begin = partial(SearchProcess, params, simulations)
        self._process: SearchProcess | None = None
        self._ready: Future[SearchProcess] = Future()
        self._started = threading.Lock()

    def __call__(self) -> Agent:
        """The agent, when it is ready."""
        self.prepare()
        return Agent(self._name, SearchingPolicy(self._ready.result().ask))

    def prepare(self) -> None:
        """Begins to load and compile, once."""
        if self._started.acquire(blocking=False):
            self._process = self._begin()
            threading.Thread(target=self._wait, args=(self._process,), daemon=True).start()

    def stop(self) -> None:
        """Ends the search; whoever waits for it waits no longer."""
        with contextlib.suppress(InvalidStateError):
            self._ready.set_exception(UserError("the search has ended"))
        if self._process is not None:
            self._process.stop()

    def _wait(self, process: SearchProcess) -> None:
        with contextlib.suppress(InvalidStateError):  # it was stopped
            try:
                process.wait()
            except Exception as error:  # whoever waits for it is told
                self._ready.set_exception(error)
            else:
                self._ready.set_result(process)
