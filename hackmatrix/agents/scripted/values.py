"""The worth of things to the scripted player, in points of its own."""

from functools import lru_cache
from math import log1p

from hackmatrix.agents.scripted.weights import ScriptedWeights
from hackmatrix.game.foresight.cell_sets import NEXT_TO, RAY, members, neighbours
from hackmatrix.game.foresight.seen import Seen
from hackmatrix.game.rules.stages import LAST_STAGE

_LESS_EACH = 0.4  # each further point of attack is worth this part of the one before


def holdings(seen: Seen, w: ScriptedWeights) -> float:
    """The worth of all that lasts: hp, resources, programs, less what the pieces will cost."""
    transmissions = seen.transmissions.bit_count()
    crowd = len(seen.enemies) + transmissions + seen.pending
    # Added one by one, as `sum` rounds differently in newer Pythons and `native/scripted.hpp`.
    enemies = 0.0
    for enemy in seen.enemies:
        enemies += w.enemy + w.enemy_hp * enemy.hp
    return (
        hp_worth(seen.hp, w)
        + w.credit * _hoard(seen.credits, w.enough)
        + w.energy * _hoard(seen.energy, w.enough)
        + w.siphon * seen.siphons
        + w.attack * (1 - _LESS_EACH ** (seen.attack - 1))
        + w.calm * seen.calm
        + w.show * seen.show
        + _programs_worth(seen.owned, w) * future(seen.stage, w)
        - enemies
        - w.transmission * transmissions
        - w.landing * seen.landing.bit_count()
        - w.spawn * seen.pending
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


def standing(seen: Seen, w: ScriptedWeights) -> float:
    """The worth of the cell that the player stands on, with the pieces where they are."""
    beside = NEXT_TO[seen.cell]
    two_away = neighbours(beside) & ~beside
    worth = 0.0
    if pieces := seen.pieces:
        worth += w.fire * lines_of_fire(seen, pieces)
        worth -= w.close * (beside & pieces).bit_count()
        worth -= w.near * (two_away & pieces).bit_count()
        worth -= w.open * (beside & ~seen.board.blocks).bit_count()
    if seen.last_seen & beside:
        worth -= w.ghost
    if seen.last_seen & two_away:
        worth -= w.ghost2
    return worth


def lines_of_fire(seen: Seen, pieces: int) -> int:
    """The number of directions in which an attack would hit a piece."""
    lines, stops = 0, pieces | seen.board.blocks
    for ray in RAY[seen.cell]:
        for cell in ray:
            if stops >> cell & 1:
                lines += pieces >> cell & 1
                break
    return lines
