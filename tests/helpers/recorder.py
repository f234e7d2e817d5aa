"""Games of the engine itself, written as recordings of the original."""

import json
import random
from collections.abc import Sequence
from typing import TypeVar

from recordings import Raw

from hackmatrix.game.conformance.check import StepVerdict, check_game
from hackmatrix.game.conformance.format import read_game, rebuild_saved_states
from hackmatrix.game.conformance.step import flags_of
from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.game import Game
from hackmatrix.game.engine.state import Enemy, Player, State, Transmission
from hackmatrix.game.rules.actions import FIRST_PROGRAM
from hackmatrix.game.rules.board import Content, col, row
from hackmatrix.game.rules.chance import Site
from hackmatrix.game.rules.enemies import MAX_ENEMIES, EnemyType
from hackmatrix.game.rules.programs import ProgramId
from hackmatrix.game.rules.rewards import UNIT

_T = TypeVar("_T")
RIGHT, WAIT, UNDO = 3, FIRST_PROGRAM + ProgramId.WAIT, FIRST_PROGRAM + ProgramId.UNDO
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


def verdicts(raw: Raw) -> list[StepVerdict]:
    """Conformance's verdict on a game."""
    game = read_game(json.dumps(raw).encode())
    rebuild_saved_states(game)
    return list(check_game(game))


def crowded(free: set[int]) -> State:
    """The player next to the exit, an enemy on every other cell but the free ones."""
    state = State(player=Player(34, energy=9), exit=35, dice=Dice(0, 0), owned=[ProgramId.WAIT])
    state.cells[35].content = Content.EXIT
    state.enemies = [Enemy(EnemyType.GLITCH, cell, 2) for cell in range(34) if cell not in free]
    return state
