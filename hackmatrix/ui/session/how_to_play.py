"""The rules in pictures, for people: each shows what the engine does in a small position."""

from typing import Any, NamedTuple

from hackmatrix.game.drawing.picture import board
from hackmatrix.game.drawing.visible_state import view
from hackmatrix.game.engine.game import step
from hackmatrix.game.engine.state import Cell, Enemy, Player, State, Transmission
from hackmatrix.game.engine.undo import copy_state
from hackmatrix.game.foresight.imagination import threat, visible_copy
from hackmatrix.game.rules.actions import FIRST_PROGRAM, SIPHON
from hackmatrix.game.rules.board import CELLS, CROSS, SIZE, Content
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.programs import ProgramId
from hackmatrix.ui.session.lessons import FUNDS, data_block, enemy, program_block, room
from hackmatrix.ui.session.position_data import marks_json, visible_events

_RIGHT = 3
_WAIT = FIRST_PROGRAM + ProgramId.WAIT


class RuleText(NamedTuple):
    """A rule in words, and the position that its picture begins with.

    The picture shows the board's lower left corner and what `action` changes.
    """

    title: str
    text: str
    position: State
    columns: int = 3
    rows: int = 1
    action: int | None = None
    threats: bool = False

    def as_json(self) -> dict[str, Any]:
        """The rule for the page: of its picture the marks of cells, arrows, and outlines."""
        before, shown = self.position, self._is_shown
        events = list[dict[str, Any]]()
        if self.action is not None:
            after = copy_state(before)
            outcome = step(after, self.action)
            events = visible_events(outcome.events, before, after)
        struck = [e["cell"] for e in events if e["kind"] in ("attacked", "destroyed")]
        struck += [e["to"] for e in events if e["kind"] == "hit"]
        cross = CROSS[before.player.cell] if self.action == SIPHON else ()
        hits = threat(visible_copy(before)) if self.threats else [0] * CELLS
        return {
            "title": self.title,
            "text": self.text,
            "columns": self.columns,
            "rows": self.rows,
            "cells": [marks_json(g) for i, g in enumerate(board(view(before))) if shown(i)],
            "struck": list(filter(shown, struck)),
            "moves": [[e["cell"], e["to"]] for e in events if e["kind"].endswith("_moved")],
            "cross": list(filter(shown, cross)),
            "threat": [n if shown(i) else 0 for i, n in enumerate(hits)],
        }

    def _is_shown(self, cell: int) -> bool:
        return cell // SIZE < self.rows and cell % SIZE < self.columns


def _with(state: State, *, owned: ProgramId | None = None, coming: int | None = None) -> State:
    """A position in which the player owns a program, or a transmission is on its way."""
    if owned is not None:
        state.owned = [owned]
    if coming is not None:
        state.transmissions = [Transmission(coming, 1, EnemyType.VIRUS)]
    return state


def _waiting(cells: dict[int, Cell], *enemies: Enemy) -> State:
    """The player in the corner, about to let the enemies move."""
    player = Player(0, credits=FUNDS, energy=FUNDS)
    return _with(room(player, cells, enemies), owned=ProgramId.WAIT)


def _stunned_example() -> State:
    hit = enemy(EnemyType.DAEMON, 1, 2)
    hit.stunned = True
    return _waiting({}, hit)


def _hidden_example() -> State:
    cryptog = enemy(EnemyType.CRYPTOG, SIZE + 2)
    cryptog.last = 2
    return room(Player(0), {}, [cryptog, enemy(EnemyType.CRYPTOG, SIZE)])


RULES = (
    RuleText(
        "Reach the exit.",
        "Eight stages of 6 x 6 cells, each with one more enemy on its way than the last. Walk onto "
        "the exit to finish a stage; finish all eight to win. You have 3 hp, and get one back with "
        "each stage.",
        room(Player(1), {2: Cell(Content.EXIT)}),
        action=_RIGHT,
    ),
    RuleText(
        "One thing a turn.",
        "Move one cell, attack, or siphon; then the enemies move. Attack by going in a direction: "
        "the first enemy or transmission in that line is hit, at any distance, and you stay where "
        "you are. So you can't walk towards an enemy in your line: you shoot it. Blocks stop "
        "walking and shots.",
        room(Player(0), {}, [enemy(EnemyType.DAEMON, 3)]),
        columns=4,
        action=_RIGHT,
    ),
    RuleText(
        "Virus: 2 hp, two steps a turn.",
        "It comes one cell nearer and hits in the same turn.",
        _waiting({}, enemy(EnemyType.VIRUS, 2)),
        action=_WAIT,
    ),
    RuleText(
        "Daemon: 3 hp.",
        "Slow and tough.",
        _waiting({}, enemy(EnemyType.DAEMON, 2)),
        action=_WAIT,
    ),
    RuleText(
        "Glitch: 2 hp, walks over blocks.",
        "No way is closed to it.",
        _waiting({1: data_block(3)}, enemy(EnemyType.GLITCH, 2)),
        action=_WAIT,
    ),
    RuleText(
        "Cryptog: 2 hp, hidden.",
        "You see it only in your row or column; the dashed sign is where it was seen last.",
        _hidden_example(),
        rows=2,
    ),
    RuleText(
        "Hit enemies lose a turn.",
        "An enemy that you hit and did not destroy is stunned for one turn. One that has just "
        "arrived rests for a turn too. An enemy next to you hits you for 1 hp instead of moving.",
        _stunned_example(),
    ),
    RuleText(
        "Transmissions.",
        "Enemies on their way; the number is the turns left. One shot destroys one. They come by "
        'schedule ("spawn in" beside the board), and from siphoning.',
        _with(room(Player(0), {}), coming=2),
        action=_RIGHT,
    ),
    RuleText(
        "Data siphons.",
        "Walk onto one to pick it up. Use one (S) to siphon your cell and its four neighbors: that "
        "gives their credits and energy, the points of data blocks, the programs of program "
        "blocks. Resources are never picked up by walking.",
        room(
            Player(SIZE + 1, siphons=1),
            {1: Cell(credits=2), SIZE: Cell(energy=1), SIZE + 2: data_block(4), 2: Cell(energy=2)},
        ),
        rows=3,
        action=SIPHON,
    ),
    RuleText(
        "Blocks fight back.",
        "The red number on a block is how many transmissions come when you siphon it. Question "
        "blocks hide what they hold.",
        room(
            Player(35),
            {
                0: data_block(4),
                1: program_block(ProgramId.ROW),
                2: Cell(Content.QUESTION, points=3, spawn=3, holds_data=True),
            },
        ),
    ),
    RuleText(
        "Credits and energy pay for programs.",
        "Programs don't end your turn, except WAIT: run as many as you can pay for. The panel "
        "tells what each does; here ROW hits your whole row.",
        _with(
            room(
                Player(2, credits=FUNDS, energy=FUNDS),
                {1: data_block(3)},
                [enemy(EnemyType.VIRUS, 0), enemy(EnemyType.DAEMON, 3)],
            ),
            owned=ProgramId.ROW,
        ),
        columns=4,
        action=FIRST_PROGRAM + ProgramId.ROW,
    ),
    RuleText(
        "Score.",
        "Points of siphoned data blocks. They count when you win.",
        room(Player(0, siphons=1), {1: data_block(7)}),
        columns=2,
        action=SIPHON,
    ),
    RuleText(
        "Threats.",
        "Red edges mark cells on which enemies in sight can hit you next turn; a notch for each "
        "hit. What an action does, and why one is not possible, is said beside the board when you "
        "point at it.",
        room(Player(SIZE), {SIZE + 1: data_block(2)}, [enemy(EnemyType.VIRUS, 3)]),
        columns=4,
        rows=2,
        threats=True,
    ),
)
