"""The game in a terminal: drawn with rich, and shown as a film."""

import sys
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from hackmatrix.core.screen import Screen
from hackmatrix.game.drawing.theme import COLOURS
from hackmatrix.game.drawing.visible_state import cell_of, view
from hackmatrix.game.engine.replay import Replay
from hackmatrix.game.engine.state import State
from hackmatrix.game.engine.text import drawing
from hackmatrix.game.foresight.imagination import threat, visible_copy
from hackmatrix.game.rules.board import CELLS, SIZE
from hackmatrix.game.rules.enemies import MAX_HP, EnemyType
from hackmatrix.game.rules.stages import LAST_STAGE
from hackmatrix.game.rules.stages import MAX_HP as PLAYER_HP

WIDTH = 9  # characters of a cell
_BLOCKS = ("data", "program", "question")
_STATUS = {"stunned": "*", "disabled": "=", "from_siphon": "+"}


def board(state: State, *, threats: bool = True, spaced: bool = True) -> Table:
    """The board: three lines a cell, with letters besides colours.

    Args:
        state: one game.
        threats: mark cells by an exclamation mark for each hit that the enemies can deal there.
        spaced: with an empty line between rows.
    """
    visible = view(state)
    hits = threat(visible_copy(state)) if threats and not state.over else [0] * CELLS
    grid = Table.grid(padding=(0, 1))
    for _ in range(SIZE):
        grid.add_column(width=WIDTH, no_wrap=True)
    for r in reversed(range(SIZE)):
        cells = range(r * SIZE, (r + 1) * SIZE)
        grid.add_row(*(_cell(visible, cell, hits[cell]) for cell in cells))
        if spaced and r:
            grid.add_row()
    return grid


def _cell(visible: dict[str, Any], cell: int, hits: int) -> Text:
    facts = visible["cells"][cell]
    content, siphoned = facts["content"], facts.get("siphoned", False)
    ground = COLOURS["fire" if cell in visible["fire"] else "hollow" if siphoned else "plate"]
    if content in _BLOCKS and not siphoned:
        ground = COLOURS[content]
    lines = [_first_line(facts, hits), *_pieces(visible, cell)][:2]
    lines += [Text("")] * (2 - len(lines))
    text = Text(style=f"{COLOURS['text']} on {ground}")
    for line in [*lines, _resources(facts)]:
        line.truncate(WIDTH, pad=True)
        text.append(line).append("\n")
    text.right_crop(1)
    return text


def _first_line(facts: dict[str, Any], hits: int) -> Text:
    content = facts["content"]
    parts = {
        "data": str(facts.get("points", 0)),
        "program": facts.get("program", ""),
        "question": "?",
        "siphon": "siphon",
        "exit": "EXIT",
    }
    ink = COLOURS[content] if content in ("siphon", "exit") else "bold"
    line = Text(parts.get(content, ""), ink)
    spawn = f"^{facts['spawn']}" if "spawn" in facts else ""
    mark = spawn + "!" * hits
    line.pad_right(max(WIDTH - len(line) - len(mark), 0))
    return line.append(mark, COLOURS["danger"])


def _pieces(visible: dict[str, Any], cell: int) -> Iterator[Text]:
    line = Text()
    if cell_of(visible["player"]) == cell:
        hp = visible["player"]["hp"]
        line.append(f"@{'|' * hp}{'.' * (PLAYER_HP - hp)} ", "bold " + COLOURS["player"])
    for enemy in visible["enemies"]:
        if cell_of(enemy) == cell:
            enemy_type = enemy["type"]
            lost = MAX_HP[EnemyType[enemy_type.upper()]] - enemy["hp"]
            status = "".join(sign for name, sign in _STATUS.items() if name in enemy)
            line.append(
                f"{enemy_type[0].upper()}{'|' * enemy['hp']}{'.' * lost}{status} ",
                COLOURS[enemy_type],
            )
    for coming in visible["transmissions"]:
        if cell_of(coming) == cell:
            enemy_type = coming.get("type", "")[:1].upper()
            line.append(f"<{enemy_type}{coming['turns']}> ", COLOURS["transmission"])
    if cell in visible["last_seen"]:
        line.append("(c)", COLOURS["cryptog"])
    yield line


def _resources(facts: dict[str, Any]) -> Text:
    line = Text("$" * facts.get("credits", 0), COLOURS["credits"])
    return line.append("~" * facts.get("energy", 0), COLOURS["energy"])


def status_numbers(state: State) -> Text:
    """Stage, turn, next spawn, score, and what the player has, in two lines."""
    player, seen = state.player, view(state)
    spawn = "-" if state.calm else str(max(1, state.next_task - state.turn))
    owed = f" +{state.pending}" if state.pending else ""
    flags = [flag.upper() for flag in ("show", "calm", "step") if seen[flag]]
    first = [
        f"stage {state.stage}/{LAST_STAGE}",
        f"turn {state.turn}",
        f"spawn in {spawn}{owed}",
        f"score {player.score}",
        *flags,
    ]
    line = Text("   ".join(first) + "\n")
    line.append(f"hp {player.hp}/{PLAYER_HP}   ", COLOURS["danger"])
    line.append(f"$ credits {player.credits}   ", COLOURS["credits"])
    line.append(f"~ energy {player.energy}   ", COLOURS["energy"])
    line.append(f"siphons {player.siphons}   ", COLOURS["siphon"])
    return line.append(f"attack {player.attack}")


def best(probabilities: list[float]) -> list[tuple[int, float]]:
    """The actions with a probability, most probable first, at most 9."""
    ranked = sorted(enumerate(probabilities), key=lambda each: -each[1])
    return [each for each in ranked[:9] if each[1] > 0]


def show_replay(replay: Replay, seconds: float, start: int = 0) -> None:
    """Shows a replay, each step for a while; where the output is no terminal, as plain text."""
    console = Screen()
    states = islice(replay.states(), start, None)
    if not console.is_terminal:
        for step, state in enumerate(states, start):
            print(f"step {step}", *drawing(view(state)), status_numbers(state).plain, "", sep="\n")
        return
    with Live(console=console, auto_refresh=False) as live:
        for state in states:
            live.update(Group(status_numbers(state), Text(), board(state)), refresh=True)
            time.sleep(seconds)
    sys.stdout.flush()
