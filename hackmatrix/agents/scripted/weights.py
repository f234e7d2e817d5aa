"""The scripted player's weights and values, in points of its own: a hit on an enemy is about 2.5.

The weights were found by play on training streams: first by hand, then by random search.
"""

from functools import lru_cache
from math import log1p
from typing import NamedTuple

from hackmatrix.game.foresight.cell_sets import NEXT_TO, RAY, members, neighbours
from hackmatrix.game.foresight.visible_state import VisibleState
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.stages import LAST_STAGE

_PROGRAMS = {
    "COL": 14.0,
    "PUSH": 14.0,
    "ROW": 14.0,
    "RESET": 12.0,
    "D_BOM": 10.0,
    "STEP": 8.0,
    "CRASH": 6.0,
    "ATK+": 5.5,
    "ANTI-V": 5.0,
    "DEBUG": 4.0,
    "HACK": 4.0,
    "CALM": 2.8,
    "SIPH+": 2.3,
    "DELAY": 1.0,
    "EXCH": 1.0,
    "PULL": 1.0,
    "SHOW": 1.0,
    "WAIT": 1.0,
}
_LESS_EACH = 0.4  # each further point of attack is worth this part of the one before


class ScriptedWeights(NamedTuple):
    """The worth of things, and how far to look (`scripted.py`)."""

    # What lasts.
    hp1: float  # the last hp: the life
    hp2: float
    hp3: float  # the third, which completing a stage gives back
    credit: float  # the first one; further ones less and less
    energy: float
    enough: float  # the hoard at which one more is worth half
    siphon: float  # a data siphon in hand
    attack: float  # limit of what more attack is worth
    calm: float
    show: float
    fade: float  # part of the worth of programs that is gone in the last stage
    # What comes.
    enemy: float  # cost of an enemy
    enemy_hp: float  # and of each of its hp
    transmission: float
    landing: float  # cost of one that lands now, which DELAY saves
    spawn: float  # cost of each spawn owed by siphoning
    crowd: float  # cost of the square of all these together: two at a time are more than twice one
    # Where to stand, and where to go.
    fire: float  # a direction in which an attack would hit
    close: float  # cost of a piece on the next cell
    near: float  # cost of one two cells away
    open: float  # cost of each free cell beside, from where enemies may come
    ghost: float  # cost of a hidden cryptog last seen on the next cell
    ghost2: float  # or two cells away
    way: float  # cost of each step to the goal that is left
    far: float  # cost of each step, when a goal is chosen
    fetch: float  # a data siphon to fetch
    question: float  # cost of siphoning a question block
    leave: float  # completing the stage
    left: float  # cost of each piece that is left then and comes along
    # How to choose.
    program: float  # by how much a program must be better than none
    deep: float  # 0..1, how much the turns after the next count
    programs: tuple[float, ...]  # owning each program, in their order


TUNED = ScriptedWeights(
    hp1=40.0,
    hp2=7.0,
    hp3=4.5,
    credit=0.7,
    energy=0.8,
    enough=30.0,
    siphon=3.4,
    attack=8.0,
    calm=3.0,
    show=1.0,
    fade=0.05,
    enemy=0.7,
    enemy_hp=2.5,
    transmission=2.9,
    landing=0.0,
    spawn=1.3,
    crowd=0.15,
    fire=0.9,
    close=0.0,
    near=0.0,
    open=0.1,
    ghost=1.0,
    ghost2=0.2,
    way=0.5,
    far=0.6,
    fetch=8.4,
    question=3.0,
    leave=1.2,
    left=0.3,
    program=2.6,
    deep=0.8,
    programs=tuple(_PROGRAMS.get(program.name, 0.0) for program in PROGRAMS),
)


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
