"""Starts for lockstep games: new games, and rich ones that random play would not reach."""

import random

from hackmatrix.game.engine import Game
from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.state import Cell, Enemy, Player, State, Transmission, empty_board
from hackmatrix.game.rules.board import CELLS, CORNERS, NEIGHBOURS, Content
from hackmatrix.game.rules.enemies import MAX_ENEMIES, MAX_HP, EnemyType
from hackmatrix.game.rules.programs import PROGRAMS, ProgramId
from hackmatrix.game.rules.stages import LAST_STAGE


def new(rng: random.Random) -> State:
    """A new game."""
    return Game.new(rng.getrandbits(32), rng.getrandbits(32)).state


def rich(rng: random.Random) -> State:
    """Any stage, most programs, means to run them, and between no and many enemies."""
    exit, *siphons = rng.sample(CORNERS, rng.randint(1, 3))
    cells = empty_board()
    cells[exit].content = Content.EXIT
    for corner in siphons:
        cells[corner].content = Content.SIPHON
    inner = [cell for cell in range(CELLS) if cell not in CORNERS]
    for cell in rng.sample(inner, rng.choice((0, 4, 8, 12))):
        cells[cell] = _block(rng)
    for cell in cells:
        if not cell.is_block and cell.content != Content.EXIT:
            setattr(cell, rng.choice(("credits", "energy")), rng.randint(0, 3))
        cell.siphoned = rng.random() < 0.1 and cell.content != Content.QUESTION
    state = _state(rng, cells, exit, at=rng.randrange(CELLS))
    crowd = rng.choice((0, 2, 4, 6, 10, 20, 28, MAX_ENEMIES))
    state.enemies = [_enemy(rng, rng.randrange(CELLS)) for _ in range(crowd)]
    open_cells = [cell for cell in range(CELLS) if not cells[cell].is_block]
    coming = rng.sample(open_cells, min(len(open_cells), rng.choice((0, 1, 3, 8, CELLS))))
    state.transmissions = [_transmission(rng, cell) for cell in coming]
    return state


def quiet(rng: random.Random) -> State:
    """Few enemies, whole health and plenty of credits: time for UNDO."""
    state = rich(rng)
    state.player.hp, state.player.credits = 3, 60
    state.owned = [ProgramId.UNDO, *(number for number in state.owned if number != ProgramId.UNDO)]
    state.enemies, state.transmissions = state.enemies[:2], state.transmissions[:2]
    return state


def next_to_the_exit(rng: random.Random) -> State:
    """One step before the end of a stage, mostly the last one, which wins the game."""
    state = rich(rng)
    state.stage = rng.choice((LAST_STAGE, LAST_STAGE, rng.randint(1, LAST_STAGE)))
    state.player.cell = rng.choice(NEIGHBOURS[state.exit])
    state.cells[state.player.cell] = Cell()
    state.enemies, state.transmissions = state.enemies[:2], state.transmissions[:2]
    return state


def no_layout(rng: random.Random) -> State:
    """A step before a stage for which there is no valid layout.

    Enemies and transmissions leave only the two neighbours of (0, 0) and the player's old cell for
    blocks, so every try walls that corner in.
    """
    cells = empty_board()
    cells[35].content = Content.EXIT
    state = _state(rng, cells, exit=35, at=34)
    inner = [cell for cell in range(CELLS) if cell not in (*CORNERS, 1, 6, 34)]
    rng.shuffle(inner)
    for cell in inner[:20]:
        state.enemies.append(_enemy(rng, cell))
    for cell in inner[20:]:
        state.transmissions.append(_transmission(rng, cell))
    state.stage = rng.randint(1, LAST_STAGE - 1)
    return state


def full(rng: random.Random) -> State:
    """No cell is empty, spawns are owed, and transmissions wait at the limit of enemies."""
    cells = empty_board()
    cells[35].content = Content.EXIT
    state = _state(rng, cells, exit=35, at=rng.randrange(CELLS))
    state.pending = rng.randint(0, 9)
    state.enemies = [_enemy(rng, cell) for cell in rng.sample(range(CELLS), MAX_ENEMIES)]
    left = set(range(CELLS)) - state.occupied()
    state.transmissions = [_transmission(rng, cell) for cell in left]
    return state


def _state(rng: random.Random, cells: list[Cell], exit: int, at: int) -> State:
    player = Player(
        at,
        hp=rng.randint(1, 3),
        credits=rng.randint(0, 60),
        energy=rng.randint(0, 60),
        siphons=rng.randint(0, 4),
        attack=rng.randint(1, 3),
        score=rng.randint(0, 99),
    )
    owned = rng.sample(range(len(PROGRAMS)), rng.choice((6, 12, len(PROGRAMS))))
    return State(
        player=player,
        cells=cells,
        owned=owned,
        dice=Dice(rng.getrandbits(32), rng.getrandbits(32)),
        exit=exit,
        stage=rng.randint(1, LAST_STAGE),
        turn=rng.randint(0, 12),
        interval=rng.randint(4, 12),
        next_task=rng.randint(0, 20),
        pending=rng.choice((0, 0, 3, 9)),
        step=rng.random() < 0.1,
        show=rng.random() < 0.2,
        calm=rng.random() < 0.2,
    )


def _block(rng: random.Random) -> Cell:
    is_data, number = rng.random() < 0.5, rng.randrange(len(PROGRAMS))
    points = rng.randint(0, 9) if is_data else 0
    cell = Cell(
        Content.DATA if is_data else Content.PROGRAM,
        points=points,
        program=0 if is_data else number,
        spawn=points if is_data else PROGRAMS[number].spawn,
    )
    if rng.random() < 0.3:
        cell.content, cell.holds_data = Content.QUESTION, is_data
    return cell


def _enemy(rng: random.Random, cell: int) -> Enemy:
    kind = rng.choice(list(EnemyType))
    return Enemy(
        kind,
        cell,
        hp=rng.randint(1, MAX_HP[kind]),
        disabled=rng.choice((0, 0, 0, 1, 2)),
        stunned=rng.random() < 0.2,
        from_schedule=rng.random() < 0.2,
        from_siphon=rng.random() < 0.3,
        last=rng.randrange(CELLS),
    )


def _transmission(rng: random.Random, cell: int) -> Transmission:
    return Transmission(
        cell,
        turns=rng.choice((1, 1, 2, 5)),
        type=rng.choice(list(EnemyType)),
        from_schedule=rng.random() < 0.2,
        from_siphon=rng.random() < 0.3,
    )
