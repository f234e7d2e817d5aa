"""Text alternatives for a picture, in the words of the text form (`docs/positions.md`)."""

from typing import Any

from hackmatrix.game.drawing.visible_state import cell_of
from hackmatrix.game.engine.text import drawing
from hackmatrix.game.rules.board import CELLS, col, row
from hackmatrix.game.rules.stages import LAST_STAGE


def title(seen: dict[str, Any]) -> str:
    """Stage, turn and, if the game is over, its ending."""
    over = f", {seen['over'].replace('_', ' ')}" if seen["over"] else ""
    return f"HackMatrix: stage {seen['stage']} of {LAST_STAGE}, turn {seen['turn']}{over}"


def description(seen: dict[str, Any]) -> str:
    """The board as in the text form, and a line for each fact that the player sees."""
    numbers = ("stage", "interval", "next_task", "pending", "turn", "atk_uses")
    return "\n".join(
        [
            *drawing(seen),
            " ".join(f"{name} {seen[name]}" for name in numbers),
            " ".join(["flags", *(flag for flag in ("show", "calm", "step") if seen[flag])]),
            f"player {_describe(seen['player'])}",
            " ".join(["owned", *seen["owned"]]),
            *(f"{row(i)},{col(i)} {there}" for i in range(CELLS) if (there := cell_words(seen, i))),
        ]
    )


def cell_words(seen: dict[str, Any], cell: int) -> str:
    """The content and pieces of a cell as text; empty if there are none."""
    facts = seen["cells"][cell]
    content = "" if facts["content"] == "empty" else facts["content"]
    parts = [f"{content} {_describe(facts)}"]
    if cell_of(seen["player"]) == cell:
        parts.append("player")
    for kind, pieces in (("enemy", seen["enemies"]), ("transmission", seen["transmissions"])):
        parts += [
            f"{kind} {piece.get('type', '')} {_describe(piece)}"
            for piece in pieces
            if cell_of(piece) == cell
        ]
    if cell in seen["last_seen"]:
        parts.append("cryptog last seen here")
    return ", ".join(" ".join(part.split()) for part in parts if part.strip())


def _describe(facts: dict[str, Any]) -> str:
    return " ".join(
        name if fact is True else f"{name} {fact}"
        for name, fact in facts.items()
        if name not in ("row", "col", "type", "content")
    )
