"""Hypothesis strategies for tests of the game: legal states, as `Game.to_dict` writes them."""

import random
from typing import Any

from hypothesis import strategies as st

from hackmatrix.game.engine.state import Ending
from hackmatrix.game.rules.board import CELLS, LIMIT, MAX_POINTS, MAX_RESOURCE, MAX_SPAWN, SIZE
from hackmatrix.game.rules.enemies import MAX_DISABLED, MAX_ENEMIES, MAX_HP, EnemyType
from hackmatrix.game.rules.programs import MAX_ATK_USES, MAX_SAVED_STATES, PROGRAM_INDEX
from hackmatrix.game.rules.stages import LAST_STAGE
from hackmatrix.game.rules.stages import MAX_HP as PLAYER_HP

Data = dict[str, Any]


@st.composite
def legal_states(draw: st.DrawFn, *, ended: bool = False) -> Data:
    """A legal state, reachable or not: every field anywhere in its range.

    Hypothesis chooses (and shrinks) how much there is of everything, a seed the details: drawing
    each of some thousand details would be slow and hit its limit.

    Args:
        draw: given by hypothesis.
        ended: also games that are over.
    """
    rng = random.Random(draw(st.integers(0, 2**32 - 1)))
    exit = draw(st.integers(0, CELLS - 1))
    over = draw(st.none() | st.sampled_from([e.value for e in Ending])) if ended else None
    dead = over == Ending.DIED
    return {
        "stream": draw(st.integers(0, 2**32 - 1)),
        "episode": draw(st.integers(0, 2**32 - 1)),
        "clock": draw(st.integers(0, 2**32 - 2)),  # an action adds one
        "stage": draw(st.integers(1, LAST_STAGE)),
        "exit": [*divmod(exit, SIZE)],
        "interval": _number(rng),
        "next_task": _number(rng),
        "pending": _number(rng),
        "step": draw(st.booleans()),
        "over": over,
        **_position(draw, rng, exit, dead=dead),
        "saved": [
            _position(draw, rng, exit, dead=dead)
            for _ in range(draw(st.integers(0, MAX_SAVED_STATES)))
        ],
    }


def _position(draw: st.DrawFn, rng: random.Random, exit: int, *, dead: bool) -> Data:
    blocks = draw(st.integers(0, CELLS - 1))
    at = rng.sample([cell for cell in range(CELLS) if cell != exit], CELLS - 1)
    cells = [_cell(rng, block=cell in at[:blocks]) for cell in range(CELLS)]
    cells[exit] = _kept({"content": "exit", **_marks(rng)})
    open_cells = [exit, *at[blocks:]]
    landing = rng.sample(open_cells, draw(st.integers(0, len(open_cells))))
    # Few places for many enemies, so that they often share a cell.
    places = rng.sample(range(CELLS), draw(st.integers(1, CELLS)))
    return {
        "turn": _number(rng),
        "show": draw(st.booleans()),
        "calm": draw(st.booleans()),
        "atk_uses": draw(st.integers(0, MAX_ATK_USES)),
        "player": _player(rng, 0 if dead else draw(st.integers(1, PLAYER_HP))),
        "owned": rng.sample(list(PROGRAM_INDEX), draw(st.integers(0, len(PROGRAM_INDEX)))),
        "cells": cells,
        "enemies": [
            _enemy(rng, rng.choice(places)) for _ in range(draw(st.integers(0, MAX_ENEMIES)))
        ],
        "transmissions": [_transmission(rng, cell) for cell in landing],
    }


def _number(rng: random.Random) -> int:
    """Small, or near the limit where numbers saturate."""
    return rng.choice([rng.randrange(16), rng.randrange(60), LIMIT - rng.randrange(12), LIMIT])


def _player(rng: random.Random, hp: int) -> Data:
    numbers = {name: _number(rng) for name in ("credits", "energy", "siphons", "attack", "score")}
    numbers["attack"] = max(numbers["attack"], 1)
    return {"row": rng.randrange(SIZE), "col": rng.randrange(SIZE), "hp": hp, **numbers}


def _cell(rng: random.Random, *, block: bool) -> Data:
    if not block:
        return _kept({"content": rng.choice(["empty", "empty", "siphon"]), **_marks(rng)})
    content = rng.choice(["data", "program", "question"])
    holds_data = content == "question" and rng.random() < 0.5
    facts: Data = {"content": content, **_marks(rng), "spawn": rng.choice([0, 1, 9, MAX_SPAWN])}
    if content == "data" or holds_data:
        facts |= {"points": rng.randint(0, MAX_POINTS), "holds_data": holds_data}
        return _kept(facts)
    return {**_kept(facts), "program": rng.choice(list(PROGRAM_INDEX))}


def _marks(rng: random.Random) -> Data:
    resource = rng.choice(["credits", "energy"])
    return {
        resource: rng.choice([0, *range(1, MAX_RESOURCE + 1)]),
        "siphoned": rng.random() < 0.3,
        "center": rng.random() < 0.1,
    }


def _enemy(rng: random.Random, cell: int) -> Data:
    kind = rng.choice(list(EnemyType))
    facts = {
        "type": kind.name.lower(),
        "hp": rng.randint(1, MAX_HP[kind]),
        "disabled": rng.choice([0, 0, 0, 1, 2, MAX_DISABLED]),
        "stunned": rng.random() < 0.2,
        **_origin(rng),
    }
    if kind == EnemyType.CRYPTOG:
        facts["last"] = [rng.randrange(SIZE), rng.randrange(SIZE)]
    return {**_place(cell), **_kept(facts)}


def _transmission(rng: random.Random, cell: int) -> Data:
    kind = rng.choice(list(EnemyType)).name.lower()
    turns = rng.choice([0, 1, 1, 2, 4, _number(rng)])
    return {"type": kind, **_place(cell), "turns": turns, **_kept(_origin(rng))}


def _origin(rng: random.Random) -> Data:
    return {"from_schedule": rng.random() < 0.3, "from_siphon": rng.random() < 0.3}


def _place(cell: int) -> Data:
    return {"row": cell // SIZE, "col": cell % SIZE}


def _kept(facts: Data) -> Data:
    """Without the zero and false facts, which `to_dict` leaves out."""
    return {name: value for name, value in facts.items() if value}
