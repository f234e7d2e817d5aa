"""Built-in players: they need no file, no JAX and no NumPy.

Commands import this table for its names: so the engine is imported when a player is asked.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from hackmatrix.agents.roster.opinion import Agent, PolicyFunction, opinion
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.board import NEIGHBOUR
from hackmatrix.game.rules.observation import FIELD, PLANE, number_of

if TYPE_CHECKING:
    from hackmatrix.game.engine.state import State

# From a state and the actions that it takes only if it knows no other to an action.
Choose = Callable[["State", Collection[int]], int]
_NEVER = -1e9  # a logit


class BuiltIn(NamedTuple):
    """A player by both faces."""

    policy: PolicyFunction  # of one position
    choose: Choose  # in games of the Python engine


def exit_action(record: bytes, mask: Sequence[bool]) -> int:
    """Walks the shortest way to the exit and attacks what stands there; else any valid action."""
    around = NEIGHBOUR[number_of(record, "cell")]
    distances = {
        direction: FIELD["exit_distance"].of(record[PLANE["resource"] + cell])
        for direction, cell in enumerate(around)
        if cell is not None and mask[direction]
    }
    any_valid = next((action for action, valid in enumerate(mask) if valid), 0)
    return min(distances, key=distances.__getitem__, default=any_valid)


def _exit(state: "State", forbidden: Collection[int]) -> int:
    from hackmatrix.game.engine.observation import observe

    return exit_action(observe(state), _allowed_mask(state, forbidden))


def _allowed_mask(state: "State", forbidden: Collection[int]) -> list[bool]:
    """The valid actions without those that are forbidden, unless none would be left."""
    from hackmatrix.game.engine.actions import valid_actions

    valid = valid_actions(state)
    allowed = {*valid} - {*forbidden} or valid
    return [action in allowed for action in range(NUM_ACTIONS)]


def _scripted_action(record: bytes, mask: Sequence[bool]) -> int:
    from hackmatrix.agents.scripted.scripted import choose

    del mask
    return choose(record)


def _best_scripted(state: "State", forbidden: Collection[int]) -> int:
    from hackmatrix.agents.scripted.scripted import best_action
    from hackmatrix.game.foresight.visible_state import VisibleState

    return best_action(VisibleState.of_state(state), forbidden=forbidden)


def _random(record: bytes, mask: Sequence[bool]) -> tuple[list[float], None]:
    """Every valid action is equally likely."""
    del record
    return [0.0] * len(mask), None


def _random_action(state: "State", forbidden: Collection[int]) -> int:
    """The action that a session draws in the same position of the same game."""
    from hackmatrix.game.engine.replay import GameId

    game = GameId(state.dice.stream, state.dice.episode)
    said = opinion(Agent("random", _random), b"", _allowed_mask(state, forbidden))
    return said.sample(game, state.dice.clock)


def _certain(
    rule: Callable[[bytes, Sequence[bool]], int], record: bytes, mask: Sequence[bool]
) -> tuple[list[float], None]:
    """The action of a rule, and never another one."""
    chosen = rule(record, mask)
    return [0.0 if action == chosen else _NEVER for action in range(len(mask))], None


BUILT_IN = {
    "scripted": BuiltIn(partial(_certain, _scripted_action), _best_scripted),
    "exit": BuiltIn(partial(_certain, exit_action), _exit),
    "random": BuiltIn(_random, _random_action),
}


def built_in_agents() -> dict[str, Callable[[], Agent]]:
    """Functions that make the built-in agents, by name."""
    return {name: partial(Agent, name, each.policy) for name, each in BUILT_IN.items()}
