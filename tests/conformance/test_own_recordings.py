"""Games of the engine itself, written as recordings of the original, are reproduced.

They hold what the recordings of the original seldom or never do: crowded boards, the limit of 32,
no free cell for a spawn, layouts that fail 100 times, an end on no corner.
"""

import json
import random
from collections.abc import Sequence
from typing import Any, TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st
from recordings import Raw
from strategies import legal_states

from hackmatrix.conformance.check import check_game
from hackmatrix.conformance.format import read_game
from hackmatrix.conformance.recording import rebuild_saved_states
from hackmatrix.conformance.replay import flags_of
from hackmatrix.engine.dice import Dice
from hackmatrix.engine.game import Game
from hackmatrix.engine.state import Enemy, Player, State, Transmission
from hackmatrix.rules.actions import FIRST_PROGRAM
from hackmatrix.rules.board import Content, col, row
from hackmatrix.rules.chance import Site
from hackmatrix.rules.enemies import MAX_ENEMIES, EnemyType
from hackmatrix.rules.programs import P
from hackmatrix.rules.rewards import UNIT

_T = TypeVar("_T")
RIGHT, WAIT, UNDO = 3, FIRST_PROGRAM + P.WAIT, FIRST_PROGRAM + P.UNDO
PART_NAMES = {
    "distance_shaping": "distance",
    "death_penalty": "death",
    "damage_penalty": "damage",
    "siphon_death_penalty": "siphon_death",
}


class NotingDice(Dice):
    """Dice that note the order in which enemies act."""

    def __init__(self, state: State, seed: int) -> None:
        super().__init__(stream=seed, episode=0)
        self.state = state
        self.order: list[list[int]] = [[], []]
        state.dice = self

    def choose(self, site: Site, options: Sequence[_T], index: int = 0) -> _T:
        chosen = super().choose(site, options, index)
        if site == Site.ENEMY_ORDER:
            enemies = self.state.enemies
            place = next(i for i, enemy in enumerate(enemies) if enemy is chosen)
            self.order[index // MAX_ENEMIES].append(place)
        return chosen


def as_state(state: State, history: int) -> Raw:
    player = state.player
    return {
        **{name: getattr(state, name) for name in ("stage", "turn", "atk_uses", "interval")},
        **{name: getattr(state, name) for name in ("next_task", "pending")},
        "owned": list(state.owned),
        "player": {
            **as_place(player.cell),
            **{name: getattr(player, name) for name in Player.__slots__ if name != "cell"},
        },
        "flags": {name: True for name in ("show", "calm", "step") if getattr(state, name)},
        "exit": [row(state.exit), col(state.exit)],
        "cells": [
            {
                "kind": cell.content.name.lower(),
                "is_data": cell.holds_data,
                **{name: getattr(cell, name) for name in ("points", "program", "spawn")},
                **{name: getattr(cell, name) for name in ("credits", "energy")},
                **{name: getattr(cell, name) for name in ("siphoned", "center")},
            }
            for cell in state.cells
        ],
        "enemies": [
            as_piece(e, "hp", "disabled", "stunned") | {"last": [row(e.last), col(e.last)]}
            for e in state.enemies
        ],
        "transmissions": [as_piece(t, "turns") for t in state.transmissions],
        "history": history,
    }


def as_place(cell: int) -> Raw:
    return {"row": row(cell), "col": col(cell)}


def as_piece(piece: Enemy | Transmission, *names: str) -> Raw:
    return {
        "type": piece.type.name.lower(),
        **as_place(piece.cell),
        **{name: getattr(piece, name) for name in names},
        "from_task": piece.from_schedule,
        "from_siphon": piece.from_siphon,
    }


def recorded(state: State, steps: int, seed: int = 0, action: int | None = None) -> Raw:
    """A game as a recording: one action, or random valid ones."""
    rng = random.Random(seed)
    state.saved = []
    game, history = Game(state), 0
    raw: Raw = {"initial": as_state(state, history), "steps": []}
    while not state.over and len(raw["steps"]) < steps:
        valid, saved = game.valid_actions(), list(state.saved)
        taken = rng.choice(valid or [0]) if action is None else action
        dice = NotingDice(state, seed + len(raw["steps"]))
        outcome = game.step(taken)
        if taken == UNDO and taken in valid:
            history -= 1
        elif state.saved and all(state.saved[-1] is not old for old in saved):
            history += 1
        everyone = range(len(state.enemies))
        step = {
            "valid": valid,
            "action": taken,
            "after": as_state(state, history),
            "reward": {PART_NAMES.get(n, n): units * UNIT for n, units in outcome.parts.items()},
            "order": [[*acted, *(set(everyone) - set(acted))] for acted in dice.order],
        }
        raw["steps"].append(step | flags_of(outcome))
    return raw


def assert_reproduced(raw: Raw) -> None:
    game = read_game(json.dumps(raw).encode())
    rebuild_saved_states(game)
    for verdict in check_game(game):
        assert (verdict.failure, verdict.rules) == (None, ())


@settings(max_examples=60)
@given(legal_states(), st.integers(0, 2**32 - 1))
def test_games_from_any_legal_state(data: dict[str, Any], seed: int) -> None:
    assert_reproduced(recorded(Game.from_dict(data).state, 12, seed))


def test_new_games() -> None:
    for stream in range(20):
        assert_reproduced(recorded(Game.new(stream).state, 60, stream))


def crowded(free: set[int]) -> State:
    """The player next to the exit, an enemy on every other cell but the free ones."""
    state = State(player=Player(34, energy=9), exit=35, dice=Dice(0, 0), owned=[P.WAIT])
    state.cells[35].content = Content.EXIT
    state.enemies = [Enemy(EnemyType.GLITCH, cell, 2) for cell in range(34) if cell not in free]
    return state


def test_a_stage_without_blocks() -> None:
    state = crowded(free={1, 6, 8, 9})  # with the player's five cells, and (0,0) is walled in
    raw = recorded(state, 1, action=RIGHT)
    assert state.stage == 2
    assert not state.blocks()
    assert_reproduced(raw)


def test_a_stage_without_cells_for_blocks_and_spawns() -> None:
    state = crowded(free={1, 2})
    state.stage = 6
    raw = recorded(state, 1, action=RIGHT)
    assert len(state.blocks()) == 3
    assert not state.transmissions
    assert_reproduced(raw)


def test_the_limit_of_32() -> None:
    state = crowded(free={1, 2})
    state.transmissions = [Transmission(1, 1, EnemyType.DAEMON)]
    state.pending = 3
    raw = recorded(state, 1, action=WAIT)
    assert len(state.enemies) == MAX_ENEMIES
    assert state.transmissions[0].turns == 1
    assert_reproduced(raw)


def test_a_stage_without_blocks_is_refused_where_every_layout_is_valid() -> None:
    raw = recorded(crowded(free={13, 16}), 1, action=RIGHT)
    for cell in raw["steps"][0]["after"]["cells"]:
        if cell["kind"] in ("data", "program", "question"):
            cell.update(kind="empty", points=0, spawn=0, program=0, is_data=False, credits=1)
    game = read_game(json.dumps(raw).encode())
    (verdict,) = check_game(game)
    assert verdict.failure
