"""The panels above and below the board: the numbers of the game, and the programs."""

from collections.abc import Iterator
from typing import Any

from hackmatrix.game.drawing.marks import Mark, SvgGroup, Text, fit_text, text_width
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.stages import LAST_STAGE
from hackmatrix.game.rules.stages import MAX_HP as PLAYER_HP

STAT_HEIGHT = 52
_ICON, _NUMBER, _LABEL = 32, 26, 10  # heights in a stat
_NUMBER_LEFT = _ICON + 10

_SLOTS = 1 + len(PROGRAMS)
_COLUMNS, _SLOT, _GAP = 8, 68, 8  # eight slots are as wide as six cells
RACK_HEIGHT = -(-_SLOTS // _COLUMNS) * (_SLOT + _GAP) - _GAP

# By ending: icon, colour, word.
_ENDINGS = {
    "won": ("exit", "exit", "WON"),
    "died": ("heart", "danger", "DIED"),
    "invalid_action": ("cross_out", "danger", "INVALID"),
}
_FLAGS = {"SHOW": "show", "CALM": "calm", "STEP": "step"}  # state flag that a program sets


def stage_stats(visible: dict[str, Any], width: float) -> Iterator[SvgGroup]:
    """Stage, turn, next spawn (or how the game ended) and score, in a line of `width` units."""
    stage, turn, score = visible["stage"], visible["turn"], visible["player"]["score"]
    box = width / 4
    number = f"{stage}/{LAST_STAGE}"
    yield _stat(0, box, "stairs", "exit", number, "STAGE", f"stage {stage} of {LAST_STAGE}")
    yield _stat(box, box, "hourglass", "label", str(turn), "TURN", f"turn {turn}")
    if visible["over"]:
        icon, colour, word = _ENDINGS[visible["over"]]
        yield _stat(2 * box, box, icon, colour, word, "GAME OVER", f"game over: {word.lower()}")
    else:
        yield _next_spawn(visible, 2 * box, box)
    yield _stat(3 * box, box, "star", "credits", str(score), "SCORE", f"score {score}")


def _next_spawn(visible: dict[str, Any], x: float, width: float) -> SvgGroup:
    """Turns until the next scheduled spawn, and the number of spawns pending from siphoning."""
    turns, owed = max(1, visible["next_task"] - visible["turn"]), visible["pending"]
    turns_text = "-" if visible["calm"] else str(turns)
    when = "no scheduled spawns" if visible["calm"] else f"next scheduled spawn in {turns} turns"
    if not owed:
        return _stat(x, width, "transmission", "transmission", turns_text, "SPAWN IN", when)
    title, room = f"{when}, {owed} owed to siphoning", width * 0.65
    stat = _stat(x, room, "transmission", "transmission", turns_text, "SPAWN IN", title)
    left = min(_NUMBER_LEFT + text_width(turns_text, _NUMBER) + 10, room)
    more = fit_text(f"+{owed}", left, 14, width - left - 8, 18, 0, "danger")
    return stat._replace(marks=(*stat.marks, more))


def player_stats(visible: dict[str, Any], width: float) -> Iterator[SvgGroup]:
    """Hp, credits, energy, data siphons and attack of the player, in a line of `width` units."""
    player = visible["player"]
    box, hp = width / 5, player["hp"]
    hearts = [
        Mark("heart", i * (_ICON + 2), 3, _ICON, "danger" if i < hp else "faint")
        for i in range(PLAYER_HP)
    ]
    yield SvgGroup(f"hp {hp} of {PLAYER_HP}", 0, 0, (*hearts, _label("HP", box)))
    stats = (
        ("credits", "credits", "credits"),
        ("energy", "energy", "energy"),
        ("siphons", "siphon", "siphon"),
        ("attack", "sword", "text"),
    )
    for i, (name, icon, colour) in enumerate(stats, 1):
        number = player[name]
        yield _stat(i * box, box, icon, colour, str(number), name.upper(), f"{name} {number}")


def _stat(
    x: float, width: float, icon: str, colour: str, value: str, label: str, title: str
) -> SvgGroup:
    marks = (
        Mark(icon, 0, 3, _ICON, colour),
        fit_text(value, _NUMBER_LEFT, 6, width - _NUMBER_LEFT - 8, _NUMBER, 0, "text"),
        _label(label, width),
    )
    return SvgGroup(title, x, 0, marks)


def _label(label: str, width: float) -> Text:
    return fit_text(label, 1, STAT_HEIGHT - _LABEL, width - 6, _LABEL, 0, "label")


def rack(visible: dict[str, Any]) -> Iterator[SvgGroup]:
    """A slot for siphoning and one for each program: lit if owned, bright if affordable too."""
    player = visible["player"]
    siphons = player["siphons"]
    yield _slot(0, "SIPHON", "siphon", "siphon" if siphons else "faint", "", siphons > 0)
    for i, program in enumerate(PROGRAMS, 1):
        owned = program.name in visible["owned"]
        affordable = player["credits"] >= program.credits and player["energy"] >= program.energy
        active = program.name in _FLAGS and visible[_FLAGS[program.name]]
        bright = active or (owned and affordable)
        colour = "text" if bright else "label" if owned else "faint"
        state = ", ".join(["owned"] * owned + ["active"] * active)
        yield _slot(i, program.name, program.name, colour, state, owned, active)


def _slot(
    index: int, name: str, icon: str, colour: str, state: str, lit: bool, active: bool = False
) -> SvgGroup:
    row, col = divmod(index, _COLUMNS)
    ground = "program" if active else "fire" if lit else "hollow"
    marks = (
        Mark("slot", 0, 0, _SLOT, ground),
        Mark(icon, 16, 9, 36, colour),
        fit_text(name, 5, 52, _SLOT - 10, 9, 0.5, colour),
    )
    title = f"{name}: {state}" if state else name
    return SvgGroup(title, col * (_SLOT + _GAP), row * (_SLOT + _GAP), marks)
