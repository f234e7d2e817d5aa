"""A picture of a game: the board between the stage's numbers and the player's."""

from collections.abc import Iterable, Iterator
from itertools import chain
from math import ceil, sqrt
from typing import Any

from hackmatrix.game.drawing import alt_text as words
from hackmatrix.game.drawing.alt_text import cell_words
from hackmatrix.game.drawing.marks import (
    Mark,
    Marks,
    SvgGroup,
    Text,
    fit_text,
    row,
    shape,
    text,
    text_width,
)
from hackmatrix.game.drawing.svg import svg
from hackmatrix.game.drawing.theme import CELL
from hackmatrix.game.drawing.visible_state import cell_of, view
from hackmatrix.game.engine.game import Game
from hackmatrix.game.engine.state import State
from hackmatrix.game.rules import board as rules
from hackmatrix.game.rules.board import SIZE
from hackmatrix.game.rules.enemies import MAX_HP, EnemyType
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.stages import LAST_STAGE
from hackmatrix.game.rules.stages import MAX_HP as PLAYER_HP

# --- The board as marks: the ground, the content of cells, and the pieces -------------------------


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


# --- The panels above and below the board: the numbers of the game, and the programs --------------


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


# --- A picture of a game: the board between the stage's numbers and the player's ------------------


_MARGIN, _SPACE = 24, 16
_BOARD = SIZE * CELL
_BOARD_TOP = _MARGIN + STAT_HEIGHT + _SPACE
_PLAYER_TOP = _BOARD_TOP + _BOARD + 2 * _SPACE
_RACK_TOP = _PLAYER_TOP + STAT_HEIGHT + _SPACE
WIDTH = _BOARD + 2 * _MARGIN
HEIGHT = _RACK_TOP + RACK_HEIGHT + _MARGIN


class BoardPicture(str):
    """SVG text that notebooks display as a picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def draw(state: Any, *, reveal: bool = False) -> BoardPicture:
    """A picture of a game as SVG text: what the player sees.

    Args:
        state: a `Game`, its state, or a state of the JAX environment (`EnvState`); one game.
        reveal: also show hidden things, marked with a question mark.

    Raises:
        TypeError: it is not a state.
        ValueError: it is a batch of games.
    """
    seen = view(state_to_draw(state), reveal=reveal)
    return BoardPicture(svg(WIDTH, HEIGHT, scene(seen), words.title(seen), words.description(seen)))


def in_words(state: Any, *, reveal: bool = False) -> str:
    """The board in letters and a line for each fact, for terminals: what the player sees.

    Args:
        state: see `draw`.
        reveal: see `draw`.
    """
    seen = view(state_to_draw(state), reveal=reveal)
    return f"{words.title(seen)}\n{words.description(seen)}\n"


def scene(visible: dict[str, Any]) -> list[SvgGroup]:
    """All groups of the picture of a `view`, back to front, independent of format."""
    return [
        *_move(stage_stats(visible, _BOARD), _MARGIN),
        SvgGroup("rows and columns", 0, _BOARD_TOP, tuple(_coordinates())),
        *_move(board(visible), _BOARD_TOP),
        *_move(player_stats(visible, _BOARD), _PLAYER_TOP),
        *_move(rack(visible), _RACK_TOP),
    ]


def _move(groups: Iterable[SvgGroup], y: float) -> Iterator[SvgGroup]:
    return (group._replace(x=_MARGIN + group.x, y=y + group.y) for group in groups)


def _coordinates() -> Iterator[Text]:
    for i in range(SIZE):
        middle = (i + 0.5) * CELL
        yield Text(str(SIZE - 1 - i), 8, middle - 5, 10, "faint")
        yield Text(str(i), _MARGIN + middle - 3, _BOARD + 6, 10, "faint")


def state_to_draw(state: Any) -> State:
    """Converts to a state of the Python engine."""
    if isinstance(state, Game):
        return state.state
    if isinstance(state, State):
        return state
    if not hasattr(state, "to_engine"):
        raise TypeError(f"expected a game or its state, got {type(state).__name__}")
    converted: State = state.to_engine()
    return converted
