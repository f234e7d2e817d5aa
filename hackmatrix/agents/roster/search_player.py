"""An agent that searches with a network. JAX is loaded behind the page, not before it."""

import contextlib
import math
import threading
import zlib
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hackmatrix.agents.roster.opinion import Agent, Branch, SearchingPolicy
from hackmatrix.agents.roster.position_policies import network_of
from hackmatrix.core.errors import UserError
from hackmatrix.core.extras import need

if TYPE_CHECKING:
    from hackmatrix.agents.networks.policy import Policy
    from hackmatrix.agents.search.analysis import Analyst

_UNTRIED = -50.0  # a logit


class Searching:
    """Makes the agent; whoever asks for it waits until the search is compiled."""

    def __init__(self, name: str, params: Path, simulations: int) -> None:
        """Reads params, without loading JAX.

        Raises:
            UserError: they can't be searched with, or JAX is not installed.
        """
        need("jax")
        from hackmatrix.agents.search.searchable import check_searchable

        self._name = name
        self._policy, _ = network_of(params)
        check_searchable(self._policy)
        self._simulations = simulations
        self._analyst: Future[Analyst] = Future()
        self._started = threading.Lock()

    def __call__(self) -> Agent:
        """The agent, when it is ready."""
        self.prepare()
        return Agent(self._name, SearchingPolicy(partial(_shares, self._analyst.result())))

    def prepare(self) -> None:
        """Begins to load and compile in a thread, once."""
        if self._started.acquire(blocking=False):
            threading.Thread(target=self._load, daemon=True).start()

    def stop(self) -> None:
        """Whoever waits for it waits no longer, so that the process can end at once."""
        self._settle(error=UserError("the search has ended"))

    def _load(self) -> None:
        try:
            self._settle(_ready_analyst(self._policy, self._simulations))
        except Exception as error:  # whoever waits for it is told
            self._settle(error=error)

    def _settle(self, analyst: "Analyst | None" = None, error: Exception | None = None) -> None:
        with contextlib.suppress(InvalidStateError):  # the first word counts
            if analyst is not None:
                self._analyst.set_result(analyst)
            else:
                self._analyst.set_exception(error)


def _shares(
    analyst: "Analyst", record: bytes, mask: Sequence[bool], saved: Sequence[bytes]
) -> tuple[list[float], float, tuple[Branch, ...]]:
    """Logits of the actions' shares of the simulations, the largest for the one chosen.

    The value is the mean return of the simulations that began with that one.
    """
    analysis = analyst.analyse_seen(record, saved, mask, zlib.crc32(record))
    logits, value, branches = [_UNTRIED] * len(mask), analysis.value, list[Branch]()
    for choice in analysis.choices:
        is_chosen = choice.action == analysis.search
        if choice.visits or is_chosen:
            logits[choice.action] = math.log(choice.visits + is_chosen / 2)
        if choice.value is not None:
            branches.append(Branch(choice.action, choice.visits, choice.value, choice.line))
            value = choice.value if is_chosen else value
    return logits, value, tuple(branches)


def _ready_analyst(policy: "Policy", simulations: int) -> "Analyst":
    from hackmatrix.agents.search.analysis import Analyst
    from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
    from hackmatrix.game.engine import Game

    enable_compilation_cache()
    analyst = Analyst(policy, simulations)
    analyst.analyse(Game.new(0))  # compiles
    return analyst
