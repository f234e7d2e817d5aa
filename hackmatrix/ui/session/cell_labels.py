"""What lies on each cell, in sentences for a player: for the pointer and for screen readers."""

from collections.abc import Iterator
from typing import Any

from hackmatrix.game.drawing.visible_state import cell_of
from hackmatrix.game.rules.board import CELLS
from hackmatrix.game.rules.enemies import MAX_HP, EnemyType
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.stages import LAST_STAGE
from hackmatrix.game.rules.stages import MAX_HP as PLAYER_HP
from hackmatrix.ui.session.descriptions import PROGRAM_WORDS

_HABITS = {
    "virus": "moves two cells a turn",
    "daemon": "moves one cell a turn",
    "glitch": "walks over blocks",
    "cryptog": "hidden unless in your row or column",
}
_COSTS = {program.name: (program.credits, program.energy) for program in PROGRAMS}


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
