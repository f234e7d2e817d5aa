"""The board as marks: the ground, the content of cells, and the pieces."""

from collections.abc import Iterator
from itertools import chain
from math import ceil, sqrt
from typing import Any

from hackmatrix.game.drawing.alt_text import cell_words
from hackmatrix.game.drawing.marks import Mark, Marks, SvgGroup, Text, row, shape, text
from hackmatrix.game.drawing.theme import CELL
from hackmatrix.game.drawing.visible_state import cell_of
from hackmatrix.game.rules import board as rules
from hackmatrix.game.rules.enemies import MAX_HP, EnemyType
from hackmatrix.game.rules.stages import MAX_HP as PLAYER_HP

_BLOCKS = {content.name.lower() for content in rules.BLOCKS}
_STATUS = {"stunned": "text", "disabled": "text", "from_siphon": "siphon"}


def board(visible: dict[str, Any]) -> Iterator[SvgGroup]:
    """One group per cell, positioned from the board's upper left corner; row 5 is on top.

    Args:
        visible: what the player sees (`view.view`).
    """
    for cell in range(rules.CELLS):
        r, c = rules.row(cell), rules.col(cell)
        title = f"{r},{c} {cell_words(visible, cell)}".strip()
        yield SvgGroup(title, c * CELL, (rules.SIZE - 1 - r) * CELL, tuple(_cell(visible, cell)))


def _cell(visible: dict[str, Any], cell: int) -> Marks:
    facts = visible["cells"][cell]
    here = cell_of(visible["player"]) == cell
    pieces = [tuple(_player(visible["player"]))] if here else []
    pieces += [tuple(_enemy(enemy)) for enemy in visible["enemies"] if cell_of(enemy) == cell]
    coming = [piece for piece in visible["transmissions"] if cell_of(piece) == cell]

    yield from _ground(facts, in_fire=cell in visible["fire"])
    if here:
        yield shape("plate", "frame", _player_colour(visible["player"]))
    if cell in visible["last_seen"]:
        yield shape("piece", "last_seen", "cryptog")
    yield from _content(facts, alone=not pieces and not coming)
    for transmission in coming:
        yield from _transmission(transmission, alone=not pieces)
    yield from _side_by_side(pieces)


def _ground(facts: dict[str, Any], *, in_fire: bool) -> Marks:
    """The plate of a cell: filled on blocks, only a frame where siphoned."""
    content = facts["content"]
    is_block = content in _BLOCKS
    colour = "question" if facts.get("hidden") else content
    siphoned = facts.get("siphoned", False)
    if is_block and not siphoned:
        yield shape("plate", "plate", colour)
    elif in_fire and not is_block:
        yield shape("plate", "plate", "fire")
    else:
        yield shape("plate", "plate", "hollow" if siphoned else "plate")
    if siphoned:
        yield shape("plate", "frame", colour if is_block else "edge")
    if facts.get("center"):
        yield shape("plate", "center", "siphon")


def _content(facts: dict[str, Any], *, alone: bool) -> Marks:
    """The content of a cell: large in the middle, or small at its foot if a piece is there."""
    content, foot = facts["content"], "" if alone else "_foot"
    if content == "question":
        yield text(f"number{foot}", "?", "text")
    elif content == "data":
        yield text(f"number{foot}", str(facts.get("points", 0)), "text")
    elif content == "program":
        yield shape("icon" if alone else "content_foot", facts["program"], "text")
        if alone:
            yield text("name", facts["program"], "text")
    elif content in ("siphon", "exit"):
        yield shape(f"content{foot}", content, content)
    if facts.get("hidden"):
        yield text("hidden", "?", "label")
    if "spawn" in facts:
        yield shape(f"tab{foot}", f"tab{foot}", "background")
        yield shape(f"spawn{foot}", "transmission", "danger")
        yield text(f"spawn{foot}", str(facts["spawn"]), "danger")
    in_the_middle = alone and content == "empty"
    for name in ("credits", "energy"):
        place = "resource" if in_the_middle else "resource_foot"
        yield from row(place, name, [name] * facts.get(name, 0), centred=in_the_middle)


def _transmission(facts: dict[str, Any], *, alone: bool) -> Marks:
    kind = facts.get("type")
    yield shape("transmission", "transmission", "transmission")
    if kind:
        yield shape("coming" if alone else "coming_corner", kind, kind)
    place = "turns_corner" if kind or not alone else "turns"
    yield text(place, str(facts["turns"]), "transmission")
    if facts.get("hidden"):
        yield text("hidden", "?", "label")


def _player(facts: dict[str, Any]) -> Marks:
    colour = _player_colour(facts)
    yield from _hp(facts["hp"], PLAYER_HP, colour)
    yield shape("piece", "player", colour)


def _player_colour(facts: dict[str, Any]) -> str:
    return "player" if facts["hp"] else "danger"


def _enemy(facts: dict[str, Any]) -> Marks:
    kind = facts["type"]
    yield from _hp(facts["hp"], MAX_HP[EnemyType[kind.upper()]], kind)
    yield shape("piece", kind, kind)
    for status, colour in _STATUS.items():
        if status in facts:
            yield shape(status, status, colour)
    if "hidden" in facts:
        yield text("hidden", "?", "label")


def _hp(hp: int, most: int, colour: str) -> Marks:
    return row("hp", "hp", [colour] * hp + ["faint"] * (most - hp))


def _side_by_side(pieces: list[tuple[Mark | Text | SvgGroup, ...]]) -> Marks:
    """The pieces that share a cell, scaled down to fit side by side."""
    if len(pieces) < 2:
        yield from chain(*pieces)
        return
    columns = ceil(sqrt(len(pieces)))
    top = (columns - ceil(len(pieces) / columns)) / 2  # half of the unused rows
    side = CELL / columns
    for i, marks in enumerate(pieces):
        r, c = divmod(i, columns)
        yield SvgGroup("", c * side, (top + r) * side, marks, 1 / columns)
