"""A player that wins by rules of thumb: a tutorial of good play that runs.

It sees what a player sees (`game/foresight/visible_state.py`) and looks three turns ahead without
dice (`game/foresight/actions.py`):

1. It picks a goal (`best_goal`): a data siphon to fetch, a cell whose cross is worth
   siphoning, or else the exit.
2. It plays every move out, and the enemy turn after it. What then counts (`weights.py`) is what it
   holds (hp, resources, programs), which enemies are left, where it stands, and how far it is to
   the goal. Where enemies are about it plays the best moves of the next two turns out, too: so it
   does not walk into a corner where a hit waits two turns later.
3. A program is run where the best move after it is better than the best move without it by more
   than a margin: programs are for need.

The numbers (`weights.py`) were found by playing.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from hackmatrix.agents.scripted.weights import (
    TUNED,
    ScriptedWeights,
    future,
    holdings,
    hp_worth,
    next_one,
    standing,
)
from hackmatrix.game.foresight.actions import can_go, enemy_turn, go, run, siphon
from hackmatrix.game.foresight.cell_sets import ALL, BIT, NO_PATH, distances, members
from hackmatrix.game.foresight.visible_state import VisibleState
from hackmatrix.game.rules.actions import FIRST_PROGRAM, NUM_DIRECTIONS, SIPHON
from hackmatrix.game.rules.board import CELLS, CROSS, Content
from hackmatrix.game.rules.programs import ProgramId
from hackmatrix.game.rules.stages import MAX_HP

# --- Where the scripted player wants to go --------------------------------------------------------


class Goal(NamedTuple):
    """The cell to go to."""

    worth: float  # what is there, less the way; 0 for the exit
    cell: int
    away: tuple[int, ...]  # walking distance to it from each cell


def best_goal(visible: VisibleState, w: ScriptedWeights) -> Goal:
    """The best of the data siphons to fetch and the cells to siphon; else the exit."""
    free = ALL & ~visible.board.blocks
    inside = free & ~BIT[visible.board.exit]  # a way through the exit would leave the stage
    away = distances(BIT[visible.cell], inside)
    options = [(worth - w.far * away[cell], cell) for worth, cell in _options(visible, inside, w)]
    worth, cell = max(
        (o for o in options if away[o[1]] < NO_PATH), default=(0.0, visible.board.exit)
    )
    if worth <= 0:
        worth, cell = 0.0, visible.board.exit
    return Goal(worth, cell, distances(BIT[cell], free if cell == visible.board.exit else inside))


def _options(visible: VisibleState, inside: int, w: ScriptedWeights) -> Iterator[tuple[float, int]]:
    """The worth of each cell that may be worth going to."""
    for cell in members(visible.board.data_siphons):
        yield w.fetch, cell
    if visible.siphons:
        gains, spawns = _gains(visible, w), _spawns(visible)
        for cell in members(inside):
            crowd, gain = 0, 0.0
            for c in CROSS[cell]:
                crowd += spawns[c]
                gain += gains[c]
            yield gain - w.crowd * crowd * crowd - w.siphon, cell


def _gains(visible: VisibleState, w: ScriptedWeights) -> list[float]:
    """The gain of siphoning each cell, less the cost of its spawns."""
    gains = [0.0] * CELLS
    credit = w.credit * next_one(visible.credits, w.enough)
    energy = w.energy * next_one(visible.energy, w.enough)
    for cell, amounts in visible.board.resources.items():
        gains[cell] = credit * amounts[0] + energy * amounts[1]
    for cell, block in visible.board.unsiphoned.items():
        gains[cell] = -w.spawn * block.spawn
        if block.content == Content.QUESTION:
            gains[cell] -= w.question
        elif block.content == Content.PROGRAM and not visible.owned >> block.value & 1:
            gains[cell] += w.programs[block.value] * future(visible.stage, w)
    return gains


def _spawns(visible: VisibleState) -> list[int]:
    """The spawns of each cell that would be siphoned."""
    spawns = [0] * CELLS
    for cell, block in visible.board.unsiphoned.items():
        spawns[cell] = block.spawn
    return spawns


# --- The actions that the scripted player plays out, each with what it would then see -------------


# Programs that act on the board, and those that change numbers alone; SCORE and REDUC are no help.
_FIGHTS = (
    ProgramId.PUSH,
    ProgramId.PULL,
    ProgramId.CRASH,
    ProgramId.DEBUG,
    ProgramId.ROW,
    ProgramId.COL,
    ProgramId.STEP,
    ProgramId.D_BOM,
    ProgramId.DELAY,
    ProgramId.ANTI_V,
    ProgramId.HACK,
)
_INVESTMENTS = (
    ProgramId.SIPH_PLUS,
    ProgramId.EXCH,
    ProgramId.SHOW,
    ProgramId.RESET,
    ProgramId.CALM,
    ProgramId.ATK_PLUS,
)

Played = list[tuple[int, VisibleState]]


def moves(visible: VisibleState) -> Played:
    """The actions that end the turn."""
    played = [(d, go(visible, d)) for d in range(NUM_DIRECTIONS) if can_go(visible, d)]
    if visible.siphons > 0:
        played.append((SIPHON, siphon(visible)))
    if (waited := run(visible, ProgramId.WAIT)) is not None:
        played.append((FIRST_PROGRAM + ProgramId.WAIT, waited))
    return played


def fights(visible: VisibleState) -> Played:
    """The programs that act on the board and can run now."""
    return _run(visible, _FIGHTS)


def investments(visible: VisibleState) -> Played:
    """Likewise the programs that change numbers alone."""
    return _run(visible, _INVESTMENTS)


def _run(visible: VisibleState, programs: tuple[ProgramId, ...]) -> Played:
    owned = [program for program in programs if visible.owned >> program & 1]
    played = [(FIRST_PROGRAM + program, run(visible, program)) for program in owned]
    return [(action, after) for action, after in played if after is not None]


# --- A player that wins by rules of thumb: a tutorial of good play that runs ----------------------


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
