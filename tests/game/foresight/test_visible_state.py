"""The board as the player sees it, and what the player can work out from it by the rules."""

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from lockstep_starts import rich
from strategies import Data, legal_states

from hackmatrix.game.engine.actions import can_go as can_go_by_the_rules
from hackmatrix.game.engine.enemy_turn import enemy_turn as enemy_turn_by_the_rules
from hackmatrix.game.engine.game import Game, act
from hackmatrix.game.engine.observation import observe
from hackmatrix.game.engine.programs import can_run, shift_goal
from hackmatrix.game.engine.programs import run as run_by_the_rules
from hackmatrix.game.engine.state import State
from hackmatrix.game.engine.undo import copy_state
from hackmatrix.game.foresight.actions import EFFECTS, can_go, enemy_turn, go, run, siphon
from hackmatrix.game.foresight.imagination import threat, visible_copy
from hackmatrix.game.foresight.jax_board import look
from hackmatrix.game.foresight.jax_strikes import after_strikes, surviving
from hackmatrix.game.foresight.visible_state import VisibleEnemy, VisibleState
from hackmatrix.game.jaxgame.records import Records
from hackmatrix.game.rules.actions import NUM_DIRECTIONS, SIPHON
from hackmatrix.game.rules.board import CELLS, Content
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.programs import PROGRAMS, ProgramId
from hackmatrix.game.rules.tactical import STRIKES

CHANCE, PAST = {ProgramId.POLY, ProgramId.WARP}, {ProgramId.UNDO}
UNSEEN = {ProgramId.SCORE, ProgramId.REDUC}  # change what nobody who looks ahead asks for
GAMES = 128


@given(legal_states())
def test_a_state_is_seen_as_its_record_is(data: Data) -> None:
    game = Game.from_dict(data)
    assert VisibleState.of_state(game.state) == VisibleState.of_record(game.observation())


def visible(rng: random.Random) -> State:
    """A state in which nothing is hidden and few enemies have each a cell of their own."""
    state = rich(rng)
    state.show = state.show or rng.random() < 0.5
    state.owned = [*range(len(PROGRAMS))]
    state.player.credits = state.player.energy = 20
    for cell in state.cells:
        if cell.content == Content.QUESTION:
            cell.content = Content.DATA if cell.holds_data else Content.PROGRAM
            cell.holds_data = False
        if cell.is_block:
            cell.credits = cell.energy = 0
    first = {enemy.cell: enemy for enemy in state.enemies}
    state.enemies = [first[cell] for cell in sorted(first)][: rng.randrange(9)]
    for enemy in state.enemies:
        if not state.show and enemy.type == EnemyType.CRYPTOG:
            enemy.type = EnemyType.GLITCH
    return state


def by_cell(seen: VisibleState) -> VisibleState:
    return seen._replace(enemies=tuple(sorted(seen.enemies, key=lambda enemy: enemy.cell)))


def test_directions_and_siphoning_are_played_out_as_the_engine_plays_them() -> None:
    rng = random.Random(3)
    played: Counter[int] = Counter()
    for _ in range(100):
        state = visible(rng)
        seen = VisibleState.of_state(state)
        for action in (*range(NUM_DIRECTIONS), SIPHON):
            if action == SIPHON and not seen.siphons:
                continue
            if action != SIPHON:
                assert can_go(seen, action) == can_go_by_the_rules(state, action)
                if not can_go(seen, action):
                    continue
            after = copy_state(state)
            act(after, action)
            assert (
                siphon(seen) if action == SIPHON else go(seen, action)
            ) == VisibleState.of_state(after)
            played[action] += 1
    assert min(played.values()) > 25
    assert len(played) == NUM_DIRECTIONS + 1


def test_all_programs_are_foreseen_but_those_that_cannot_be() -> None:
    assert {*EFFECTS} == {*ProgramId} - CHANCE - PAST - UNSEEN
    assert {*STRIKES} <= {*EFFECTS}


@pytest.mark.parametrize("program", EFFECTS, ids=lambda program: program.name)
def test_a_program_is_played_out_as_the_engine_plays_it(program: ProgramId) -> None:
    rng = random.Random(4)
    changed = 0
    for _ in range(60):
        state = visible(rng)
        seen, after = VisibleState.of_state(state), copy_state(state)
        played = run(seen, program)
        if not can_run(state, program):
            assert played is None
            continue
        run_by_the_rules(after, program)
        left = VisibleState.of_state(after)
        if len({enemy.cell for enemy in after.enemies}) < len(after.enemies):
            continue  # PUSH has put two on a cell: a state shows the first one's kind for both
        if played is None:  # it would only cost
            assert seen == left._replace(credits=seen.credits, energy=seen.energy)
            continue
        assert by_cell(played) == left
        changed += 1
    assert changed > 5


@jax.jit
def boards_after_strikes(records: jax.Array) -> Any:
    seen = look(Records(records))
    return after_strikes(seen, surviving(seen))[0]


@pytest.mark.thorough
def test_the_layouts_boards_are_those_that_the_engine_leaves() -> None:
    """But for PUSH and PULL where an enemy is in another's way, which the layout leaves out."""
    rng = random.Random(5)
    states = [visible(rng) for _ in range(GAMES)]
    records = jnp.array([list(observe(state)) for state in states], jnp.uint8)
    boards = jax.tree.map(np.asarray, boards_after_strikes(records))
    compared: Counter[ProgramId] = Counter()
    for game, state in enumerate(states):
        for place, program in enumerate(STRIKES):
            if not can_run(state, program) or (program in _SHIFTS and crowded(state, program)):
                continue
            after = copy_state(state)
            run_by_the_rules(after, program)
            able = [enemy for enemy in after.enemies if not enemy.stunned]
            expected = {
                "blocks": after.blocks(),
                "enemies": {enemy.cell for enemy in after.enemies},
                "able": {enemy.cell for enemy in able},
                "viruses": {enemy.cell for enemy in able if enemy.type == EnemyType.VIRUS},
                "transmissions": {piece.cell for piece in after.transmissions},
            }
            for name, cells in expected.items():
                low, high = (word[1 + place, game] for word in getattr(boards, name))
                bits = int(low) | int(high) << CELLS // 2
                assert {c for c in range(CELLS) if bits >> c & 1} == cells, (program.name, name)
            compared[program] += 1
    assert min(compared[program] for program in STRIKES) > 10


_SHIFTS = (ProgramId.PUSH, ProgramId.PULL)


def crowded(state: State, program: ProgramId) -> bool:
    """Whether PUSH or PULL would move two enemies to one cell, or one to where another stays."""
    goals = [
        shift_goal(state.player.cell, enemy.cell, away=program == ProgramId.PUSH)
        for enemy in state.enemies
    ]
    cells = [
        enemy.cell if goal is None else goal
        for enemy, goal in zip(state.enemies, goals, strict=True)
    ]
    return len({*cells}) < len(cells)


def test_the_turn_of_a_single_enemy_is_foreseen() -> None:
    rng = random.Random(6)
    turns = hits = 0
    while turns < 150:
        state = visible(rng)
        state.player.hp, state.step, state.transmissions = 3, False, []
        state.next_task, state.pending, state.show = 1_000, 0, True
        if state.player.cell in state.blocks() | state.occupied():
            continue
        for enemy in state.enemies:
            enemy.disabled = 0  # a player's turn begins with all of them ready
            alone = copy_state(replace(state, enemies=[enemy]))
            foreseen = enemy_turn(VisibleState.of_state(alone))
            enemy_turn_by_the_rules(alone)
            (left,) = alone.enemies
            assert foreseen.enemies == (VisibleEnemy(left.type, left.cell, left.hp, left.stunned),)
            assert foreseen.hp == alone.player.hp
            turns += 1
            hits += foreseen.hp < 3
    assert hits > 7


def test_a_single_enemy_threatens_the_cells_where_it_would_hit() -> None:
    rng = random.Random(7)
    told: Counter[int] = Counter()
    for _ in range(12):
        state = visible(rng)
        state.player.hp, state.step, state.transmissions = 3, False, []
        state.next_task, state.pending, state.show = 1_000, 0, True
        for cell in {*range(CELLS)} - state.blocks() - state.occupied():
            state.player.cell = cell
            for enemy in state.enemies:
                alone = copy_state(replace(state, enemies=[enemy]))
                expected = threat(visible_copy(alone))[cell]
                enemy_turn_by_the_rules(alone)
                assert 3 - alone.player.hp == expected
                told[expected] += 1
    assert told[1] > 30
