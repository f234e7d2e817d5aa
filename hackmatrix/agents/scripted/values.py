"""The worth of things to the scripted player, in points of its own."""

from functools import lru_cache
from math import log1p

from hackmatrix.agents.scripted.weights import ScriptedWeights
from hackmatrix.game.foresight.cell_sets import NEXT_TO, RAY, members, neighbours
from hackmatrix.game.foresight.visible_state import VisibleState
from hackmatrix.game.rules.stages import LAST_STAGE

_LESS_EACH = 0.4  # each further point of attack is worth this part of the one before


def holdings(visible: VisibleState, w: ScriptedWeights) -> float:
    """The worth of all that lasts: hp, resources, programs, less what the pieces will cost."""
    transmissions = visible.transmissions.bit_count()
    crowd = len(visible.enemies) + transmissions + visible.pending
    # Added one by one, as `sum` rounds differently in newer Pythons and `native/scripted.hpp`.
    enemies = 0.0
    for enemy in visible.enemies:
        enemies += w.enemy + w.enemy_hp * enemy.hp
    return (
        hp_worth(visible.hp, w)
        + w.credit * _hoard(visible.credits, w.enough)
        + w.energy * _hoard(visible.energy, w.enough)
        + w.siphon * visible.siphons
        + w.attack * (1 - _LESS_EACH ** (visible.attack - 1))
        + w.calm * visible.calm
        + w.show * visible.show
        + _programs_worth(visible.owned, w) * future(visible.stage, w)
        - enemies
        - w.transmission * transmissions
        - w.landing * visible.landing.bit_count()
        - w.spawn * visible.pending
        - w.crowd * crowd * crowd
    )


def hp_worth(hp: int, w: ScriptedWeights) -> float:
    """The worth of 0..3 hp: the last one is the life, the third heals by itself."""
    return (0.0, w.hp1, w.hp1 + w.hp2, w.hp1 + w.hp2 + w.hp3)[hp]


def future(stage: int, w: ScriptedWeights) -> float:
    """The share of their worth that programs have left in a stage, 1 in the first."""
    return 1.0 - w.fade * (stage - 1) / (LAST_STAGE - 1)


def next_one(held: int, enough: float) -> float:
    """The worth of one more credit or energy, 1 for the first."""
    return 1 / (1 + held / enough)


@lru_cache(1 << 12)
def _hoard(held: int, enough: float) -> float:
    """The worth of a hoard: the integral of `next_one`."""
    return enough * log1p(held / enough)


@lru_cache(1 << 12)
def _programs_worth(owned: int, w: ScriptedWeights) -> float:
    worth = 0.0
    for program in members(owned):
        worth += w.programs[program]
    return worth


def standing(visible: VisibleState, w: ScriptedWeights) -> float:
    """The worth of the cell that the player stands on, with the pieces where they are."""
    beside = NEXT_TO[visible.cell]
    two_away = neighbours(beside) & ~beside
    worth = 0.0
    if pieces := visible.pieces:
        worth += w.fire * lines_of_fire(visible, pieces)
        worth -= w.close * (beside & pieces).bit_count()
        worth -= w.near * (two_away & pieces).bit_count()
        worth -= w.open * (beside & ~visible.board.blocks).bit_count()
    if visible.last_seen & beside:
        worth -= w.ghost
    if visible.last_seen & two_away:
        worth -= w.ghost2
    return worth


def lines_of_fire(visible: VisibleState, pieces: int) -> int:
    """The number of directions in which an attack would hit a piece."""
    lines, stops = 0, pieces | visible.board.blocks
    for ray in RAY[visible.cell]:
        for cell in ray:
            if stops >> cell & 1:
                lines += pieces >> cell & 1
                break
    return lines
