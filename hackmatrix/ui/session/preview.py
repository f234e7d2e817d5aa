"""The effect of each action, as far as the player can know, and why others are not possible."""

from typing import Any

from hackmatrix.game.engine.actions import valid_actions
from hackmatrix.game.engine.game import act, ends_turn
from hackmatrix.game.engine.state import State
from hackmatrix.game.engine.undo import copy_state
from hackmatrix.game.foresight.visible_copy import threat, visible_copy
from hackmatrix.game.rules.actions import FIRST_PROGRAM, NUM_ACTIONS, SIPHON
from hackmatrix.game.rules.board import CROSS, Content
from hackmatrix.game.rules.programs import PROGRAMS, ProgramId
from hackmatrix.ui.session.descriptions import PROGRAM_WORDS, describe_events, why_not
from hackmatrix.ui.session.visible_events import visible_events

_GAINS = ("hp", "credits", "energy", "siphons", "attack", "score")


def previews(state: State) -> list[dict[str, Any]]:
    """One entry for each of the 28 actions: `{"why": ...}` where it is not possible, else facts.

    `text` says what it does, `cells` lists the cells it changes, `moves` pairs of cells from and
    to, `hits` is the most hits that the enemies in sight can deal afterwards (only of actions that
    end the turn).
    """
    valid = set() if state.over else set(valid_actions(state))
    seen = visible_copy(state)
    return [
        _preview(seen, action) if action in valid else {"why": why_not(state, action)}
        for action in range(NUM_ACTIONS)
    ]


def _preview(before: State, action: int) -> dict[str, Any]:
    program = action - FIRST_PROGRAM
    if program in (ProgramId.WARP, ProgramId.POLY, ProgramId.UNDO):
        # Chance or the past decides, and neither is in what the player sees.
        cells = {enemy.cell for enemy in before.enemies} if program != ProgramId.UNDO else set()
        if program == ProgramId.WARP:
            cells |= before.occupied()
        text = PROGRAM_WORDS[PROGRAMS[program].name][0]
        return {"text": text, "cells": sorted(cells), "moves": []}
    after = copy_state(before)
    _, _, completed = act(after, action)
    events = visible_events(tuple(after.events), before, after)
    cells = {e["cell"] for e in events if e["kind"] in ("attacked", "destroyed", "block_removed")}
    if action == SIPHON:
        cells |= set(CROSS[before.player.cell])
    moves = [[e["cell"], e["to"]] for e in events if e["kind"] in ("player_moved", "enemy_moved")]
    text = _text(before, after, events, action)
    if completed:
        text += f": completes stage {before.stage}"
    facts: dict[str, Any] = {"text": text, "cells": sorted(cells), "moves": moves}
    if ends_turn(action) and not completed:
        facts["hits"] = threat(after)[after.player.cell]
    return facts


def _text(before: State, after: State, events: list[dict[str, Any]], action: int) -> str:
    clauses = describe_events(event for event in events if event["kind"] != "program_ran")
    gains = [
        _gain(getattr(after.player, name) - getattr(before.player, name), name)
        for name in _GAINS
        if getattr(after.player, name) != getattr(before.player, name)
    ]
    gains += [PROGRAMS[number].name for number in after.owned if number not in before.owned]
    if action == SIPHON:
        cross = [before.cells[cell] for cell in CROSS[before.player.cell]]
        opened = sum(c.content == Content.QUESTION and not c.siphoned for c in cross)
        clauses += ["opens a question block"] * opened
        if after.pending > before.pending:
            coming = after.pending - before.pending
            clauses.append(f"{coming} transmission{'s' * (coming > 1)} will come")
    if action >= FIRST_PROGRAM and not clauses:
        clauses.append(PROGRAM_WORDS[PROGRAMS[action - FIRST_PROGRAM].name][0].rstrip("."))
    text = ", ".join([*clauses, *gains]) or "nothing left to siphon here"
    return text[0].upper() + text[1:]


def _gain(change: int, name: str) -> str:
    """A change of one of `_GAINS`, such as `-1 siphon`."""
    return f"{change:+d} {name.removesuffix('s') if abs(change) == 1 else name}"
