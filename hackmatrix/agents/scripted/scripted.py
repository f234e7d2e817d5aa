"""A player that wins by rules of thumb: a tutorial of good play that runs.

It sees what a player sees (`game/foresight/visible_state.py`) and looks three turns ahead without
dice (`lookahead.py`, `game/foresight/enemy_turn.py`):

1. It picks a goal (`destinations.py`): a data siphon to fetch, a cell whose cross is worth
   siphoning, or else the exit.
2. It plays every move out, and the enemy turn after it. What then counts (`values.py`) is what it
   holds (hp, resources, programs), which enemies are left, where it stands, and how far it is to
   the goal. Where enemies are about it plays the best moves of the next two turns out, too: so it
   does not walk into a corner where a hit waits two turns later.
3. A program is run where the best move after it is better than the best move without it by more
   than a margin: programs are for need.

The numbers (`weights.py`) were found by playing.
"""

from collections.abc import Collection

from hackmatrix.agents.scripted.destinations import Goal, best_goal
from hackmatrix.agents.scripted.lookahead import fights, investments, moves
from hackmatrix.agents.scripted.values import holdings, hp_worth, standing
from hackmatrix.agents.scripted.weights import TUNED, ScriptedWeights
from hackmatrix.game.foresight.enemy_turn import enemy_turn
from hackmatrix.game.foresight.visible_state import VisibleState
from hackmatrix.game.rules.stages import MAX_HP

_TURNS = 3  # to look ahead
_NO_MOVE = -1_000.0  # walled in: worse than any move


def choose(record: bytes, forbidden: Collection[int] = ()) -> int:
    """The action of the scripted player.

    Args:
        record: the compact record of what the player sees (`rules.observation`).
        forbidden: actions that it takes only if it knows no other.
    """
    return best_action(VisibleState.of_record(record), TUNED, forbidden)


def best_action(
    visible: VisibleState, w: ScriptedWeights = TUNED, forbidden: Collection[int] = ()
) -> int:
    """The best action by these weights.

    Args:
        visible: what the player sees.
        w: the weights.
        forbidden: actions that it takes only if it knows no other.
    """
    if not moves(visible):  # walled in: any program that may help
        return next((program for program, _ in [*fights(visible), *investments(visible)]), 0)
    goal = best_goal(visible, w)
    without, action = best_move(visible, goal, w, forbidden)
    best, now = without, holdings(visible, w)
    for program, after in investments(visible):
        worth = without + holdings(after, w) - now - w.program
        if worth > best and program not in forbidden:
            best, action = worth, program
    for program, after in fights(visible) if visible.enemies else ():
        worth = best_move(after, goal, w, forbidden)[0] - w.program
        if worth > best and program not in forbidden:
            best, action = worth, program
    return action


def best_move(
    visible: VisibleState, goal: Goal, w: ScriptedWeights, forbidden: Collection[int] = ()
) -> tuple[float, int]:
    """The worth of the best action that ends the turn, and the action."""
    candidates = moves(visible)
    allowed = [move for move in candidates if move[0] not in forbidden] or candidates
    return max(
        ((prospect(visible, after, goal, w, turns=_TURNS), action) for action, after in allowed),
        default=(_NO_MOVE, 0),
    )


def prospect(
    before: VisibleState, after: VisibleState, goal: Goal, w: ScriptedWeights, turns: int
) -> float:
    """The worth of having moved.

    Args:
        before: what the player sees before the move.
        after: after it, before the enemy turn.
        goal: where the player is going.
        w: the weights.
        turns: the number of turns to look ahead, this one included.
    """
    if after.cell == after.board.exit != before.cell:
        return _leaving(after, goal, w)
    then = enemy_turn(after)
    # Pieces count as the player has left them: landing is no fault of the move.
    worth = holdings(after, w) - hp_worth(after.hp, w) + hp_worth(then.hp, w)
    worth += standing(then, w) - w.way * goal.away[after.cell]
    if turns == 1 or then.hp == 0 or not then.enemies:
        return worth
    nexts = (prospect(then, later, goal, w, turns - 1) for _, later in moves(then))
    return worth + w.deep * (max(nexts, default=_NO_MOVE) - worth)


def _leaving(visible: VisibleState, goal: Goal, w: ScriptedWeights) -> float:
    """The worth of completing the stage, which heals and gives up the goal."""
    healed = visible._replace(hp=min(visible.hp + 1, MAX_HP))
    left = len(visible.enemies) + visible.transmissions.bit_count()
    return holdings(healed, w) + w.leave - w.left * left - goal.worth
