"""States that a player can't tell apart: for tests that nothing hidden is used."""

import random
from dataclasses import fields

from lockstep_starts import rich

from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.game import Game
from hackmatrix.game.engine.state import Position, State
from hackmatrix.game.engine.undo import copy_state
from hackmatrix.game.rules.board import CELLS, MAX_POINTS, Content
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.programs import PROGRAMS


def rich_game(rng: random.Random) -> State:
    """A rich state as games have them, one enemy to a cell, with a position to go back to."""
    state = rich(rng)
    for enemy in state.enemies:
        if not state.sees(enemy) and state.cells[enemy.cell].is_block:
            enemy.type = EnemyType.GLITCH
    state.enemies = list({enemy.cell: enemy for enemy in state.enemies}.values())[:12]
    before = {field.name: getattr(copy_state(state), field.name) for field in fields(Position)}
    state.saved = [Position(**before)]
    return state


def beside_a_hidden_cryptog() -> Game:
    """CRASH is valid for the cryptog alone, which left the way from where it was last seen."""
    return Game.from_text("""
        .. .. .. .. .. X.
        .. .. .. .. .. ..
        .. .. .. .c .. ..
        .. .. .@ .. .. ..
        .. .. .. .. .. ..
        .. .. .. .. .. ..
        stage 3
        player hp 3 credits 9 energy 9 siphons 1
        owned CRASH
        enemy cryptog 3,3 last 5,5
    """)


def other_secrets(state: State, rng: random.Random) -> State:
    """The same to the eye, with all else drawn anew, also in the positions saved for UNDO."""
    other = copy_state(state)
    other.dice = Dice(rng.getrandbits(31), rng.getrandbits(32), rng.getrandbits(8))
    for position in (other, *other.saved):
        _change_blocks(position, rng)
        _change_pieces(position, rng)
    return other


def _change_blocks(position: Position, rng: random.Random) -> None:
    for cell in position.unsiphoned_blocks():
        cell.credits, cell.energy = rng.choice([(rng.randint(0, 3), 0), (0, rng.randint(0, 3))])
        if cell.content == Content.QUESTION:
            cell.holds_data = rng.random() < 0.5
            cell.program = 0 if cell.holds_data else rng.randrange(len(PROGRAMS))
            cell.points = rng.randint(1, MAX_POINTS) if cell.holds_data else 0
            cell.spawn = rng.randint(1, MAX_POINTS)


def _change_pieces(position: Position, rng: random.Random) -> None:
    for enemy in position.enemies:
        enemy.from_schedule = rng.random() < 0.5
        if not position.sees(enemy):
            taken = position.blocks() | position.occupied()
            free = [c for c in range(CELLS) if c not in taken and not position.in_line(c)]
            enemy.cell = rng.choice([*free, enemy.cell])
    for piece in position.transmissions:
        piece.from_schedule = rng.random() < 0.5
        if not position.show:
            piece.type = rng.choice(tuple(EnemyType))
