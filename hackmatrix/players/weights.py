"""Weights."""
from typing import NamedTuple
from hackmatrix.rules.programs import NUMBER, PROGRAMS

_WORTH = {"RESET":7.0,"PUSH":6.4,"ATK+":5.5,"D_BOM":5.1,"ROW":4.8,"COL":4.5,"STEP":4.5,"CRASH":4.4,"ANTI-V":3.4,"CALM":2.8,"SIPH+":2.3,"HACK":2.0,"UNDO":1.8}

_PROGRAMS = tuple(_WORTH.get(p.name, 1.0) for p in PROGRAMS)


class Weights(NamedTuple):
    hp1: float = 40.0
    hp2: float = 7.0
    hp3: float = 4.5
    credit: float = 0.7
    energy: float = 0.8
    siphon: float = 3.4
    attack: float = 8.0
    spawn: float = 1.3
    calm: float = 3.0
    show: float = 1.0
    enemy: float = 0.7
    enemy_hp: float = 2.5
    transmission: float = 2.9
    landing: float = 0.0
    program: float = 1.5
    leave: float = 1.2
    left: float = 0.3
    way: float = 0.5
    fire: float = 0.9
    close: float = 0.0
    open: float = 0.1
    ghost: float = 1.0
    fetch: float = 8.4
    far: float = 0.6
    deep: float = 0.5
    enough: float = 60.0
    crowd: float = 0.02
    fade: float = 0.1
    near: float = 0.0
    ghost2: float = 0.2
    question: float = 3.0
    programs: tuple[float, ...] = _PROGRAMS

TUNED = Weights()
