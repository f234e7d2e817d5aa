"""An agent's opinion of a position, and the choice it makes of that."""

import math
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hackmatrix.core.errors import UserError

if TYPE_CHECKING:
    from hackmatrix.game.engine.replay import GameId

# From the compact record of an observation and the mask of valid actions to 28 logits and the
# value of the position, None for players that know none.
PolicyFunction = Callable[[bytes, Sequence[bool]], tuple[Sequence[float], float | None]]


class RecurrentPolicy(NamedTuple):
    """A policy with memory.

    `step(record, memory)` returns 28 logits, the value and what it remembers of the game from then
    on; the memory is that of the position before, None at a game's start.
    """

    step: Callable[[bytes, Any], tuple[Sequence[float], float, Any]]


class Branch(NamedTuple):
    """An action that a search tried."""

    action: int
    visits: int  # simulations that began with it
    value: float  # their mean return
    line: tuple[int, ...]  # what they tried most, from this action on


class SearchingPolicy(NamedTuple):
    """A policy that takes its time: asked of the position shown alone, and it plays its best.

    `search(record, mask, saved)` returns 28 logits, the value and what was tried; `saved` are the
    observations to which UNDO would lead back, as the player remembers them.
    """

    search: Callable[
        [bytes, Sequence[bool], Sequence[bytes]], tuple[Sequence[float], float, tuple[Branch, ...]]
    ]


class Agent(NamedTuple):
    """An agent: a function of what the player sees, or also of what it remembers."""

    name: str
    policy: PolicyFunction | RecurrentPolicy | SearchingPolicy

    @property
    def searches(self) -> bool:
        """Whether it takes its time."""
        return isinstance(self.policy, SearchingPolicy)


class Opinion(NamedTuple):
    """An agent's opinion of a position."""

    probabilities: tuple[float, ...]  # of the 28 actions; 0 exactly where invalid
    value: float | None
    memory: Any = None  # what an agent with memory remembers from then on
    branches: tuple[Branch, ...] = ()  # of one that searches

    @property
    def entropy(self) -> float:
        """Entropy over the actions, in nats."""
        return -sum(p * math.log(p) for p in self.probabilities if p > 0)

    @property
    def best(self) -> int:
        """The most probable action, the first among equals."""
        return max(range(len(self.probabilities)), key=self.probabilities.__getitem__)

    def sample(self, game: "GameId", step: int) -> int:
        """Draws an action; the same one whenever this step of this game is played again."""
        rng = random.Random(f"{game.stream} {game.episode} {step}")
        weights = self.probabilities
        return rng.choices(range(len(weights)), weights)[0]


def opinion(agent: Agent, record: bytes, mask: Sequence[bool], memory: Any = None) -> Opinion:
    """An agent's opinion of a position with at least one valid action.

    Args:
        agent: whom to ask.
        record: the compact record of the position.
        mask: the valid actions.
        memory: of an agent with memory, that of its opinion of the position before; for one that
            searches, the observations to which UNDO would lead back.

    Raises:
        UserError: its numbers are not finite.
    """
    value: float | None
    branches: tuple[Branch, ...] = ()
    if isinstance(agent.policy, RecurrentPolicy):
        logits, value, memory = agent.policy.step(record, memory)
    elif isinstance(agent.policy, SearchingPolicy):
        logits, value, branches = agent.policy.search(record, mask, memory)
    else:
        logits, value = agent.policy(record, mask)
    return weigh(agent.name, logits, value, mask)._replace(memory=memory, branches=branches)


def weigh(name: str, logits: Sequence[float], value: float | None, mask: Sequence[bool]) -> Opinion:
    """The opinion of an agent of this name that answers with these logits and value.

    Raises:
        UserError: they are not finite.
    """
    if not all(map(math.isfinite, [*logits, value or 0.0])):
        raise UserError(f"{name}: its network's answer is not finite")
    top = max(float(x) for x, valid in zip(logits, mask, strict=True) if valid)
    weights = [
        math.exp(float(x) - top) if valid else 0.0 for x, valid in zip(logits, mask, strict=True)
    ]
    total = sum(weights)
    probabilities = tuple(weight / total for weight in weights)
    return Opinion(probabilities, None if value is None else float(value))
