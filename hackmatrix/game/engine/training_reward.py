"""The reward `progress` in plain Python.

`environments/hackmatrix/training_reward.py` says why it is made so.
"""

from hackmatrix.game.engine.state import Player
from hackmatrix.game.rules.training_reward import (
    DEATH,
    HOARD,
    HP,
    MAX_SIPHONS,
    RESOURCE,
    SIPHON,
    STAGE,
    WIN,
)


def progress(before: Player, after: Player, *, completed: bool, won: bool, died: bool) -> float:
    """The reward `progress` of a step.

    Args:
        before: the player before the step; a copy, as the engine changes its player in place.
        after: the player after it.
        completed: whether it completed a stage, the last one included.
        won: whether it won the game.
        died: whether the player died.
    """
    paid = STAGE * completed + WIN * won - DEATH * died
    return paid + _potential(after) - _potential(before)


def _potential(player: Player) -> float:
    held = min(player.credits, HOARD) + min(player.energy, HOARD)
    return HP * player.hp + SIPHON * min(player.siphons, MAX_SIPHONS) + RESOURCE * held
