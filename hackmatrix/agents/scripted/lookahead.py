"""The actions that the scripted player plays out, each with what it would then see."""

from hackmatrix.game.foresight.actions import can_go, go, siphon
from hackmatrix.game.foresight.programs import run
from hackmatrix.game.foresight.visible_state import VisibleState
from hackmatrix.game.rules.actions import FIRST_PROGRAM, NUM_DIRECTIONS, SIPHON
from hackmatrix.game.rules.programs import ProgramId

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
