"""The weights of the scripted player, in points of its own: a hit on an enemy is worth about 2.5.

Found by play on training streams: first by hand, then by random search.
"""

from typing import NamedTuple

from hackmatrix.game.rules.programs import PROGRAMS


class ScriptedWeights(NamedTuple):
    """The worth of things (`values.py`), and how far to look (`scripted.py`)."""

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
