"""The files that the page is given once: its own, the look, and the game's tables."""

import json
from typing import Any

from hackmatrix.game.drawing.theme import LIGHT, LOOK
from hackmatrix.game.rules.actions import ACTION_NAMES
from hackmatrix.game.rules.board import CROSS, NEIGHBOUR
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.stages import LAST_STAGE, MAX_HP
from hackmatrix.ui.session.descriptions import PROGRAM_KEYS, PROGRAM_WORDS
from hackmatrix.ui.session.how_to_play import RULES
from hackmatrix.ui.web.files import files_in


def page_files(folder: str = "static") -> dict[str, bytes]:
    """The files of the page by name; those of `static` with `look.json`, which is made here."""
    found = files_in("page", folder)
    if folder != "static":
        return found
    return {"look.json": look(), **files_in("web"), **found}


def look() -> bytes:
    """The table of shapes and colours, the game's tables, and its rules in pictures, as JSON."""
    programs = [
        {
            **program._asdict(),
            "does": PROGRAM_WORDS[program.name][0],
            "key": PROGRAM_KEYS[program.name],
        }
        for program in PROGRAMS
    ]
    tables: dict[str, Any] = {
        "light": LIGHT,
        "actions": ACTION_NAMES,
        "programs": programs,
        "neighbours": NEIGHBOUR,
        "cross": CROSS,
        "stages": LAST_STAGE,
        "hp": MAX_HP,
        "rules": [rule.as_json() for rule in RULES],
    }
    return json.dumps(LOOK | tables).encode()
