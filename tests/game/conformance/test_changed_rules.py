"""Conformance notices a changed rule: an engine with any of these is refused by the recordings."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from recordings import Spot, spots

from hackmatrix.game.conformance.check import check_step
from hackmatrix.game.conformance.frequencies import Chance
from hackmatrix.game.engine import enemy_turn, game, movement, programs, siphoning, spawning
from hackmatrix.game.engine.events import EventKind
from hackmatrix.game.engine.state import Enemy, State
from hackmatrix.game.rules.board import AROUND, NEIGHBOUR, col
from hackmatrix.game.rules.enemies import MAX_HP
from hackmatrix.game.rules.programs import PROGRAMS, ProgramId

Change = Callable[[pytest.MonkeyPatch], None]


def direction_order(patch: pytest.MonkeyPatch) -> None:
    """Right comes first."""
    patch.setattr(movement, "NEIGHBOURS", tuple(n[::-1] for n in movement.NEIGHBOURS))


def transmissions_shield_from_fire(patch: pytest.MonkeyPatch) -> None:
    def line_of_fire(state: State) -> set[int]:
        stops = state.blocks() | state.occupied()
        line = set()
        for direction in range(4):
            cell = NEIGHBOUR[state.player.cell][direction]
            while cell is not None:
                line.add(cell)
                cell = None if cell in stops else NEIGHBOUR[cell][direction]
        return line

    patch.setattr(spawning, "line_of_fire", line_of_fire)


def stun_one_turn_longer(patch: pytest.MonkeyPatch) -> None:
    """In the turn in which it should end, the one that is compared, it has not ended."""

    def rest(state: State) -> None:
        for enemy in state.enemies:
            enemy.disabled = max(enemy.disabled - 1, 0)

    patch.setattr(enemy_turn, "rest", rest)


def a_virus_hits_twice(patch: pytest.MonkeyPatch) -> None:
    act = enemy_turn.act

    def never_done(state: State, enemy: Enemy) -> bool:
        act(state, enemy)
        return False

    patch.setattr(enemy_turn, "act", never_done)


def paths_through_transmissions(patch: pytest.MonkeyPatch) -> None:
    """They still do not step on one."""
    next_cell = enemy_turn.next_cell

    def through(state: State, enemy: Enemy) -> int:
        transmissions, state.transmissions = state.transmissions, []
        to = next_cell(state, enemy)
        state.transmissions = transmissions
        return enemy.cell if state.transmission_on(to) else to

    patch.setattr(enemy_turn, "next_cell", through)


def spawns_before_movement(patch: pytest.MonkeyPatch) -> None:
    move, spawn = enemy_turn.move_enemies, enemy_turn.spawn_due
    patch.setattr(enemy_turn, "move_enemies", lambda state: (spawn(state), move(state)))
    patch.setattr(enemy_turn, "spawn_due", lambda _state: None)


def interval_without_floor(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(siphoning, "MIN_INTERVAL", -99)


def undo_keeps_its_cost(patch: pytest.MonkeyPatch) -> None:
    restore = programs.restore

    def restore_but_pay(state: State) -> None:
        restore(state)
        state.player.add(credits=-PROGRAMS[ProgramId.UNDO].credits)

    patch.setattr(programs, "restore", restore_but_pay)


def pull_ties(patch: pytest.MonkeyPatch) -> None:
    """The last listed among equals."""
    shift_goal = programs.shift_goal

    def last_of_equals(here: int, cell: int, *, away: bool) -> int | None:
        goal = shift_goal(here, cell, away=away)
        if away or goal is None or col(goal) != col(cell) or col(cell) == col(here):
            return goal
        sideways = cell + (1 if col(here) > col(cell) else -1)  # only the column changes
        tie = movement.manhattan(sideways, here) == movement.manhattan(goal, here)
        return sideways if tie and sideways != here else goal

    patch.setattr(programs, "shift_goal", last_of_equals)


def poly_heals(patch: pytest.MonkeyPatch) -> None:
    poly = programs.poly

    def poly_of_healed(state: State) -> int:
        for enemy in state.enemies:
            enemy.hp = MAX_HP[enemy.type]
        return poly(state)

    patch.setattr(programs, "poly", poly_of_healed)


def crash_clears_siphoned(patch: pytest.MonkeyPatch) -> None:
    crash = programs.crash

    def crash_and_clear(state: State) -> int:
        kills = crash(state)
        for cell in AROUND[state.player.cell]:
            state.cells[cell].siphoned = False
        return kills

    patch.setattr(programs, "crash", crash_and_clear)


def siphon_death_penalty_only_for_the_killer(patch: pytest.MonkeyPatch) -> None:
    reward_parts = game.reward_parts

    def parts_of(before: Any, state: State, action: int, **facts: Any) -> dict[str, int]:
        parts = reward_parts(before, state, action, **facts)
        hits = [event for event in state.events if event.kind == EventKind.HIT]
        if state.player.hp == 0 and hits:
            killer = state.enemies_on(hits[before.hp - 1].cell or 0)
            if not any(enemy.from_siphon for enemy in killer):
                parts["siphon_death_penalty"] = 0
        return parts

    patch.setattr(game, "reward_parts", parts_of)


CHANGES = (
    direction_order,
    transmissions_shield_from_fire,
    stun_one_turn_longer,
    a_virus_hits_twice,
    paths_through_transmissions,
    spawns_before_movement,
    interval_without_floor,
    undo_keeps_its_cost,
    pull_ties,
    poly_heals,
    crash_clears_siphoned,
    siphon_death_penalty_only_for_the_killer,
)


def fault_found(steps: Iterable[Spot]) -> str | None:
    """The first thing that conformance has to say against the engine."""
    chance = Chance()
    for spot in steps:
        verdict = check_step(spot.before, spot.step)
        if verdict.failure is not None:
            return verdict.failure
        chance.add(verdict.draws)
    return next(iter(chance.faults()), None)


def ends_with_a_spawn(spot: Spot) -> bool:
    before, after = spot.before.state, spot.step.after.state
    assert isinstance(before, State)
    assert isinstance(after, State)
    return bool(after.transmissions) and after.transmissions[-1] not in before.transmissions


@pytest.mark.thorough
@pytest.mark.parametrize(
    "change",
    [
        # It takes all recordings, ten times as long as all others.
        pytest.param(change, marks=pytest.mark.slow)
        if change is transmissions_shield_from_fire
        else change
        for change in CHANGES
    ],
)
def test_a_changed_rule_is_noticed(change: Change, monkeypatch: pytest.MonkeyPatch) -> None:
    # What shields shows in no single step, only in where nothing ever spawns.
    of_all = change is transmissions_shield_from_fire
    steps = filter(ends_with_a_spawn, spots()) if of_all else spots()
    change(monkeypatch)
    assert fault_found(steps)
