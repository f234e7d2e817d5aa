"""Plays a copy of the package to which `test_recipes.py` has added the program PATCH.

`python patched_game.py` plays it in plain Python, `python patched_game.py jax` in lockstep.
"""

import json
import random
import sys

from lockstep_starts import rich

from hackmatrix.agents.scripted.scripted import best_action
from hackmatrix.game.drawing.shapes import SHAPES
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.state import Cell, State
from hackmatrix.game.foresight.features import features
from hackmatrix.game.foresight.visible_state import VisibleState
from hackmatrix.game.rules.actions import ACTION_NAMES, FIRST_PROGRAM, NUM_ACTIONS
from hackmatrix.game.rules.board import Content
from hackmatrix.game.rules.observation import FEATURE_SIZE, number_of
from hackmatrix.game.rules.programs import PROGRAMS, ProgramId
from hackmatrix.ui.page.server import look
from hackmatrix.ui.session.position_data import facts_of

PATCH = ProgramId["PATCH"]
ACTION = FIRST_PROGRAM + PATCH


def hurt() -> State:
    """A position in which PATCH can run, and lies in a block too."""
    state = Game.new(7).state
    state.player.hp, state.player.credits, state.owned = 1, 2, [PATCH]
    block = next(cell for cell in state.cells if cell.content == Content.EMPTY)
    state.cells[state.cells.index(block)] = Cell(Content.PROGRAM, program=PATCH, spawn=1)
    return state


def play() -> None:
    """The rule, and what is shown of it."""
    game = Game(hurt())
    assert (ACTION_NAMES[ACTION], NUM_ACTIONS) == ("PATCH", FIRST_PROGRAM + len(PROGRAMS))
    assert ACTION in game.valid_actions()
    shown = facts_of(game.state)["actions"][ACTION]
    assert shown["text"] == "Restores 1 hp, +1 hp, -1 credit", shown
    poor, whole, without = Game(hurt()), Game(hurt()), Game(hurt())
    poor.state.player.credits, whole.state.player.hp, without.state.owned = 0, 3, []
    for other, why in (
        (poor, "needs 1 credits (you have 0)"),
        (whole, "your hp is full"),
        (without, "not owned: siphon a block that holds it"),
    ):
        assert ACTION not in other.valid_actions()
        assert facts_of(other.state)["actions"][ACTION] == {"why": why}

    record = game.observation()
    assert number_of(record, "owned") == 1 << PATCH
    assert VisibleState.of_record(record) == VisibleState.of_state(game.state)
    assert PATCH in [
        block.value for block in VisibleState.of_record(record).board.unsiphoned.values()
    ]
    for layout, size in FEATURE_SIZE.items():
        assert len(features(record, layout)) == size
    assert Game.from_dict(game.to_dict()).state == game.state
    assert Game.from_text(game.to_text()).state == game.state

    assert game.step(ACTION).ending is None
    player = game.state.player
    assert (player.hp, player.credits) == (2, 1)
    assert best_action(VisibleState.of_state(game.state)) in game.valid_actions()

    page = json.loads(look())
    (words,) = (program for program in page["programs"] if program["name"] == "PATCH")
    assert (words["does"], len(words["key"])) == ("Restores 1 hp.", 1)
    assert len({program["key"] for program in page["programs"]}) == len(PROGRAMS)
    assert "PATCH" in SHAPES


def lockstep() -> None:
    """Both engines, game by game."""
    import lockstep_play

    rng = random.Random(1)
    states = [rich(rng) for _ in range(lockstep_play.GAMES)]
    covered = lockstep_play.play(states, lockstep_play.rarest_programs(), rng, steps=60)
    assert covered["PATCH"] > 20, covered


if __name__ == "__main__":
    lockstep() if sys.argv[1:] == ["jax"] else play()
