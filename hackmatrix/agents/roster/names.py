"""Names of agents, and the only place where a name becomes an agent; no JAX, no NumPy.

A name is a built-in player's (`built_in.py`), an agent's of this package, a file of params or a
run's folder; with `@N` behind it, a search with N simulations before each action, with the network
of that name. What it names has two faces: `batch_players.py` plays many games, `session_agents.py`
says what it thinks of a position.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from hackmatrix.agents import shipped
from hackmatrix.agents.roster.built_in import BUILT_IN
from hackmatrix.core.errors import UserError
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.environments.registry import environment_id, own_code

SHIPPED, RAW = "shipped", "raw"
# Agents of this package.
PACKAGED = {SHIPPED: shipped.PARAMS, "score": shipped.SCORE_PARAMS, RAW: shipped.RAW_PARAMS}
NAMES = (*BUILT_IN, *PACKAGED)
MAX_SIMULATIONS = 10_000  # of a search before an action; those of 256 games fill gigabytes

A_NETWORK = (
    "a file of params, a checkpoint or a run's folder, local or gs://..., or an agent of this "
    "package: `shipped` wins most, `score` with most points, `raw` reads the board alone"
)
AN_AGENT = (
    f"{A_NETWORK}; or a built-in player: `random` takes random valid actions, `exit` walks to the "
    "exit, `scripted` plays well by rules of thumb; or NAME@32, a search with the network of "
    "NAME and 32 simulations per action"
)
SEARCH = "simulations per action of a search with the agent's network, as in NAME@N"


class AgentName(NamedTuple):
    """An agent that there is."""

    name: str  # without @N
    params: Path | None  # a file or a run's folder; None for a built-in player
    simulations: int | None  # of a search before each action; None without

    def __str__(self) -> str:
        return self.name if self.simulations is None else f"{self.name}@{self.simulations}"

    def label(self, file: Path) -> str:
        """A short name for the network in a file of its params."""
        return self.name if self.name in PACKAGED else file.stem

    def plays_by_rule(self, env: str) -> bool:
        """Whether it plays games of an environment in the Python engine; others do so in JAX."""
        return self.params is None and environment_id(env) == ENVIRONMENT_ID


def resolve(text: str, search: int | None = None, fetched: Callable[[str], str] = str) -> AgentName:
    """The agent of this name.

    Args:
        text: the name.
        search: the number of `--search`, which stands for @N.
        fetched: makes a path of this machine of one that may be in a bucket.

    Raises:
        UserError: there is no such agent, or it has no network to search with.
    """
    name, simulations = _split(text)
    if simulations is not None and search is not None:
        raise UserError(f"{text}: give @{simulations} or --search {search}, not both")
    simulations = simulations if search is None else search
    if name in BUILT_IN:
        if simulations is not None:
            raise UserError(f"{name} has no network to search with")
        return AgentName(name, None, None)
    params = PACKAGED.get(name) or _file_of(name, fetched)
    return AgentName(name, params, simulations)


def params_of(text: str, fetched: Callable[[str], str] = str) -> Path:
    """The params of the network of this name: a file or a run's folder.

    Raises:
        UserError: there is no such agent, or it is more or less than a network.
    """
    agent = resolve(text, fetched=fetched)
    if agent.params is None or agent.simulations is not None:
        raise UserError(f"{text}: is no network: name {A_NETWORK}")
    return agent.params


def _file_of(name: str, fetched: Callable[[str], str]) -> Path:
    """The file of params or the run's folder of this name."""
    from hackmatrix.runs.other_names import params_of_name  # which needs NumPy

    params = params_of_name(Path(fetched(name)))
    if not os.path.exists(params):
        raise UserError(f"{name}: no such file; built-in agents are {', '.join(NAMES)}")
    return params


def _split(text: str) -> tuple[str, int | None]:
    """A name without @N, and N."""
    name, sign, count = text.rpartition("@")
    if not sign or os.path.exists(text):
        return text, None
    if count.isdecimal() and 1 <= int(count[:9]) <= MAX_SIMULATIONS:
        return name, int(count)
    if count.lstrip("+-").isdecimal() or name in NAMES or os.path.exists(name):
        raise UserError(f"{text}: after @ stand the simulations, 1 to {MAX_SIMULATIONS}")
    return text, None


def check_environment(names: Sequence[str], env: str) -> None:
    """Checks that agents may play an environment that the user names.

    `random` plays any. Params name theirs, but none of its code is run that the user has not named
    too.

    Raises:
        UserError: they may not.
    """
    if environment_id(env) == ENVIRONMENT_ID or list(names) == ["random"]:
        return
    play_hackmatrix = {*NAMES} - {"random"}
    if not own_code(env) or not names or play_hackmatrix & {_split(name)[0] for name in names}:
        raise UserError(
            f"--env {env} goes with `random` alone, or with params of an environment of your own: "
            "other built-in players play HackMatrix, other params what they know"
        )
