"""Layout `tactical`: what programs do that strike or move enemies."""

from hackmatrix.game.foresight.actions import can_go, run, shift_goals, target
from hackmatrix.game.foresight.python_board import FeatureGroups, hits
from hackmatrix.game.foresight.visible_state import VisibleState
from hackmatrix.game.rules.actions import NUM_DIRECTIONS
from hackmatrix.game.rules.board import NEIGHBOUR
from hackmatrix.game.rules.programs import PROGRAMS, ProgramId
from hackmatrix.game.rules.tactical import MAX_HITS, STRIKES


def of_programs(visible: VisibleState) -> FeatureGroups:
    """The groups about programs."""
    owns = [visible.owned >> program & 1 for program in range(len(PROGRAMS))]
    affordable = [
        int(visible.credits >= p.credits and visible.energy >= p.energy) for p in PROGRAMS
    ]
    strikes = [_strike(visible, program) for program in STRIKES]
    struck, killed, after, fewest = zip(*strikes, strict=True)
    return {
        "owned": owns,
        "ready": [a & b for a, b in zip(owns, affordable, strict=True)],
        "affordable": affordable,
        "struck": struck,
        "killed": killed,
        "hits_after": after,
        "fewest_after": fewest,
    }


def _strike(visible: VisibleState, program: ProgramId) -> tuple[int, int, int, int]:
    """The pieces that a program strikes and destroys, and the hits to expect after it."""
    after = run(visible, program)
    if after is None:
        return 0, 0, 0, 0
    struck = len({*visible.enemies} - {*after.enemies})
    killed = len(visible.enemies) - len(after.enemies)
    killed += (visible.transmissions & ~after.transmissions).bit_count()
    if program in (ProgramId.PUSH, ProgramId.PULL):
        struck, after = len(visible.enemies), _shifted(visible, away=program == ProgramId.PUSH)
    if not struck and not killed:  # CRASH, of blocks alone
        return 0, 0, 0, 0
    outcomes = [
        hits(after, after.cell if target(after, d) is not None else NEIGHBOUR[after.cell][d] or 0)
        for d in range(NUM_DIRECTIONS)
        if can_go(after, d)
    ]
    stay, fewest = min(hits(after, after.cell), MAX_HITS), min([*outcomes, MAX_HITS])
    return min(struck, MAX_HITS), min(killed, MAX_HITS), stay, fewest


def _shifted(visible: VisibleState, *, away: bool) -> VisibleState:
    """PUSH and PULL as the layout has them: as if no enemy were in another's way."""
    goals = shift_goals(visible.cell, away=away)
    return visible._replace(enemies=tuple(e._replace(cell=goals[e.cell]) for e in visible.enemies))
