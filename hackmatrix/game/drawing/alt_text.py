"""Text alternatives for a picture, in the words of the text form (`docs/positions.md`)."""

from typing import Any

from hackmatrix.game.drawing.visible_state import cell_of
from hackmatrix.game.engine.text import drawing
from hackmatrix.game.rules.board import CELLS, col, row
from hackmatrix.game.rules.stages import LAST_STAGE


def title(visible: dict[str, Any]) -> str:
    """Stage, turn and, if the game is over, its ending."""
    over = f", {visible['over'].replace('_', ' ')}" if visible["over"] else ""
    return f"HackMatrix: stage {visible['stage']} of {LAST_STAGE}, turn {visible['turn']}{over}"


def description(visible: dict[str, Any]) -> str:
    """The board as in the text form, and a line for each fact that the player sees."""
    numbers = ("stage", "interval", "next_task", "pending", "turn", "atk_uses")
    return "\n".join(
        [
            *drawing(visible),
            " ".join(f"{name} {visible[name]}" for name in numbers),
            " ".join(["flags", *(flag for flag in ("show", "calm", "step") if visible[flag])]),
            f"player {_describe(visible['player'])}",
            " ".join(["owned", *visible["owned"]]),
            *(
                f"{row(i)},{col(i)} {there}"
                for i in range(CELLS)
                if (there := cell_words(visible, i))
            ),
        ]
    )


def cell_words(visible: dict[str, Any], cell: int) -> str:
    """The content and pieces of a cell as text; empty if there are none."""
    facts = visible["cells"][cell]
    content = "" if facts["content"] == "empty" else facts["content"]
    parts = [f"{content} {_describe(facts)}"]
    if cell_of(visible["player"]) == cell:
        parts.append("player")
    for kind, pieces in (("enemy", visible["enemies"]), ("transmission", visible["transmissions"])):
        parts += [
            f"{kind} {piece.get('type', '')} {_describe(piece)}"
            for piece in pieces
            if cell_of(piece) == cell
        ]
    if cell in visible["last_seen"]:
        parts.append("cryptog last seen here")
    return ", ".join(" ".join(part.split()) for part in parts if part.strip())


def _describe(facts: dict[str, Any]) -> str:
    return " ".join(
        name if fact is True else f"{name} {fact}"
        for name, fact in facts.items()
        if name not in ("row", "col", "type", "content")
    )
