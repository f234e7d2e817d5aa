"""Agents that need no file."""

from collections.abc import Callable, Sequence

from hackmatrix.agents.roster.opinion import Agent
from hackmatrix.game.rules.board import NEIGHBOUR
from hackmatrix.game.rules.observation import FIELD, PLANE, number_of

_NEVER = -1e9  # a logit


def random_policy(record: bytes, mask: Sequence[bool]) -> tuple[list[float], None]:
    """Every valid action is equally likely."""
    del record
    return [0.0] * len(mask), None


def exit_policy(record: bytes, mask: Sequence[bool]) -> tuple[list[float], None]:
    """Walks the shortest way to the exit and attacks what stands there; else any valid action."""
    around = NEIGHBOUR[number_of(record, "cell")]
    distances = {
        direction: FIELD["exit_distance"].of(record[PLANE["resource"] + cell])
        for direction, cell in enumerate(around)
        if cell is not None and mask[direction]
    }
    if not distances:
        return [-_NEVER * (action == mask.index(True)) for action in range(len(mask))], None
    nearest = min(distances, key=distances.__getitem__)
    return [0.0 if action == nearest else _NEVER for action in range(len(mask))], None


BUILT_IN = {"exit": exit_policy, "random": random_policy}


def built_in(name: str) -> Callable[[], Agent]:
    """What makes a built-in agent."""
    return lambda: Agent(name, BUILT_IN[name])
