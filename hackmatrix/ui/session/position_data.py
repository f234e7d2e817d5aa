"""All that the page shows of a position, as JSON data; nothing that the player does not see."""

from collections.abc import Iterator
from typing import Any

from hackmatrix.game.drawing.marks import Mark, SvgGroup
from hackmatrix.game.drawing.picture import board
from hackmatrix.game.drawing.visible_state import cell_of, view
from hackmatrix.game.engine.actions import valid_actions
from hackmatrix.game.engine.events import Event, EventKind
from hackmatrix.game.engine.game import Outcome, act, ends_turn
from hackmatrix.game.engine.state import State
from hackmatrix.game.engine.undo import copy_state
from hackmatrix.game.foresight.imagination import threat, visible_copy
from hackmatrix.game.rules.actions import FIRST_PROGRAM, NUM_ACTIONS, SIPHON
from hackmatrix.game.rules.board import CELLS, CROSS, Content, col, row
from hackmatrix.game.rules.enemies import MAX_HP, EnemyType
from hackmatrix.game.rules.programs import PROGRAMS, ProgramId
from hackmatrix.game.rules.rewards import UNIT
from hackmatrix.game.rules.stages import LAST_STAGE
from hackmatrix.game.rules.stages import MAX_HP as PLAYER_HP
from hackmatrix.ui.session.descriptions import PROGRAM_WORDS, describe_events, why_not

_CRYPTOG = "cryptog"
# Fields of a view that the board's marks show already.
_ON_BOARD = ("cells", "enemies", "transmissions", "fire", "last_seen", "exit")
_HABITS = {
    "virus": "moves two cells a turn",
    "daemon": "moves one cell a turn",
    "glitch": "walks over blocks",
    "cryptog": "hidden unless in your row or column",
}
_COSTS = {program.name: (program.credits, program.energy) for program in PROGRAMS}
_GAINS = ("hp", "credits", "energy", "siphons", "attack", "score")


def visible_events(events: tuple[Event, ...], before: State, after: State) -> list[dict[str, Any]]:
    """The events that the player sees.

    A cryptog that leaves the player's sight has no `to`, one that comes into it no `cell`.

    Args:
        events: of one action.
        before: the state before the action.
        after: the state after it.
    """
    return list(_visible_kind(events, before, after))


def _visible_kind(
    events: tuple[Event, ...], before: State, after: State
) -> Iterator[dict[str, Any]]:
    here, show = before.player.cell, before.show
    for event in events:
        if event.kind == EventKind.PLAYER_MOVED and event.to is not None:
            here = event.to
        if event.kind == EventKind.UNDONE:
            here, show = after.player.cell, after.show
        if event.kind == EventKind.PROGRAM_RAN and event.piece == "show":
            show = True
        if event.kind == EventKind.STAGE_BEGAN:
            show = False
        if event.piece == _CRYPTOG and not show:
            hidden = _visible_part(event, here)
            if hidden is None:
                continue
            event = hidden
        facts = {"kind": event.kind.value, **event._asdict()}
        yield {name: value for name, value in facts.items() if value is not None}


def _visible_part(event: Event, here: int) -> Event | None:
    """An event of a cryptog as seen from a cell; None if nothing of it is."""
    if event.kind == EventKind.LANDED:
        # That its transmission is gone is seen, so is the mark where it was last.
        return event if _in_line(event.cell, here) else event._replace(piece=None)
    cell = event.cell if _in_line(event.cell, here) else None
    to = event.to if _in_line(event.to, here) else None
    return None if cell is None and to is None else event._replace(cell=cell, to=to)


def _in_line(cell: int | None, here: int) -> bool:
    return cell is not None and (row(cell) == row(here) or col(cell) == col(here))


def facts_of(state: State, *, reveal: bool = False) -> dict[str, Any]:
    """The page's facts about a state.

    Args:
        state: one game.
        reveal: also the hidden things, marked as such.

    Returns:
        `seen`, the numbers of the game; `board`, marks for each cell (`game/drawing/marks.py`);
        `labels`, sentences about each cell; `actions`, 28 previews; `threat`, 36 numbers of hits.
    """
    visible = view(state, reveal=reveal)
    return {
        "seen": {name: fact for name, fact in visible.items() if name not in _ON_BOARD},
        "board": [marks_json(group) for group in board(visible)],
        "labels": cell_labels(visible),
        "actions": previews(state),
        "threat": threat(visible_copy(state)),
    }


def facts_of_action(before: State, after: State, outcome: Outcome) -> dict[str, Any]:
    """The page's facts about the last action: `events`, `told`, `reward` and its `parts`."""
    events = visible_events(outcome.events, before, after)
    return {
        "events": events,
        "told": describe_events(events),
        "reward": outcome.reward,
        "parts": {name: part * UNIT for name, part in outcome.parts.items() if part},
    }


def marks_json(group: SvgGroup) -> dict[str, Any]:
    """A group of marks: shapes are lists of 5, lines of text objects with `text`."""
    marks: list[Any] = []
    for mark in group.marks:
        if isinstance(mark, SvgGroup):
            marks.append(marks_json(mark))
        elif isinstance(mark, Mark):
            marks.append(list(mark))
        else:
            marks.append(mark._asdict())
    return {"title": group.title, "x": group.x, "y": group.y, "scale": group.scale, "marks": marks}


# --- What lies on each cell, in sentences for a player: for the pointer and for screen readers ----


def cell_labels(view: dict[str, Any]) -> list[str]:
    """One label for each of the 36 cells, in flat order: some sentences, "Empty." at least.

    Args:
        view: the visible part of a game (`game/drawing/visible_state.py`).
    """
    return [" ".join(_sentences(view, cell)) or "Empty." for cell in range(CELLS)]


def _sentences(view: dict[str, Any], cell: int) -> Iterator[str]:
    player = view["player"]
    if cell_of(player) == cell:
        yield f"You, {player['hp']} of {PLAYER_HP} hp."
    for enemy in view["enemies"]:
        if cell_of(enemy) == cell:
            yield _enemy(enemy)
    for coming in view["transmissions"]:
        if cell_of(coming) == cell:
            yield _transmission(coming)
    if cell in view["last_seen"]:
        yield "Dashed hexagon: a hidden cryptog was last seen here, and may have moved on."
    yield from _content(view, view["cells"][cell])


def _enemy(enemy: dict[str, Any]) -> str:
    kind, hp = enemy["type"], enemy["hp"]
    most = MAX_HP[EnemyType[kind.upper()]]
    parts = [f"{kind.capitalize()}, {hp} of {most} hp", _HABITS[kind]]
    if enemy.get("hidden"):
        parts.append("hidden from you")
    if enemy.get("stunned"):
        parts.append("stunned for one turn")
    if turns := enemy.get("disabled", 0):
        parts.append(f"does not act for {_count(turns, 'turn')}")
    return "; ".join(parts) + "."


def _transmission(coming: dict[str, Any]) -> str:
    kind = _with_article(coming["type"]) if "type" in coming else "an enemy"
    turns = coming["turns"]
    when = f"in {_count(turns, 'turn')}" if turns else "at the end of this turn"
    return f"Transmission: becomes {kind} {when}, unless you attack it first."


def _content(view: dict[str, Any], cell: dict[str, Any]) -> Iterator[str]:
    content = cell["content"]
    if content in ("data", "program", "question"):
        yield _block(view, cell)
        return
    if content == "exit":
        last = view["stage"] == LAST_STAGE
        yield "The exit: you win there." if last else "The exit: the way to the next stage."
    elif content == "siphon":
        yield "A data siphon: walk onto it to pick it up."
    for name in ("credits", "energy"):
        if amount := cell.get(name, 0):
            what = _count(amount, "credit") if name == "credits" else f"{amount} energy"
            yield f"{what}: siphon on this cell or beside it to take {_it(amount, name)}."
    if cell.get("siphoned"):
        yield "Siphoned already: nothing is left to take."


def _block(view: dict[str, Any], cell: dict[str, Any]) -> str:
    if cell.get("siphoned"):
        return "A siphoned block: nothing is left to take; it still stops moves and attacks."
    if cell["content"] == "question":
        return "A question block: siphon beside it to see what it holds; transmissions may come."
    comes = "nothing will come"  # after REDUC
    if spawn := cell.get("spawn"):
        comes = f"{_count(spawn, 'transmission')} will come, as the red number says"
    if cell["content"] == "data":
        return (
            f"A data block: siphon beside it for {_count(cell.get('points', 0), 'point')}; {comes}."
        )
    name = cell["program"]
    gives = f"A block with {name} ({_cost(name)} a use): siphon beside it to own it"
    if name in view["owned"]:
        gives = f"A block with {name}, which you own already"
    return f"{gives}; {comes}. {name}: {PROGRAM_WORDS[name][0]}"


def _cost(name: str) -> str:
    credits, energy = _COSTS[name]
    parts = [_count(credits, "credit")] * bool(credits) + [f"{energy} energy"] * bool(energy)
    return " and ".join(parts) or "nothing"


def _it(amount: int, name: str) -> str:
    return "it" if amount == 1 or name == "energy" else "them"


def _count(amount: int, noun: str) -> str:
    return f"{amount} {noun}{'' if amount == 1 else 's'}"


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


# --- The effect of each action, as far as the player can know, and why others are not possible ----


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
