"""An agent that searches with a network, in a process beside the page."""

import contextlib
import threading
from concurrent.futures import Future, InvalidStateError
from functools import partial
from pathlib import Path

from hackmatrix.agents.roster.opinion import Agent, SearchingPolicy
from hackmatrix.agents.roster.position_policies import network_of
from hackmatrix.agents.roster.search_process import SearchProcess
from hackmatrix.core.errors import UserError
from hackmatrix.core.extras import need


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
