"""Conformance notices a changed rule: an engine with any of these is refused by the recordings."""

from collections.abc import Callable, Iterable

import pytest
from recordings import Spot, spots

from hackmatrix.game.conformance.check import check_step
from hackmatrix.game.conformance.frequencies import Chance
from hackmatrix.game.engine import enemy_turn, movement, spawning
from hackmatrix.game.engine.state import Enemy, State
from hackmatrix.game.rules.board import NEIGHBOUR

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


def a_virus_hits_twice(patch: pytest.MonkeyPatch) -> None:
    act = enemy_turn.act

    def never_done(state: State, enemy: Enemy) -> bool:
        act(state, enemy)
        return False

    patch.setattr(enemy_turn, "act", never_done)


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
@pytest.mark.parametrize("change", [direction_order, a_virus_hits_twice])
def test_a_changed_rule_is_noticed(change: Change, monkeypatch: pytest.MonkeyPatch) -> None:
    change(monkeypatch)
    assert fault_found(spots())


@pytest.mark.slow  # it takes all recordings, ten times as long as the others
def test_a_chance_that_is_never_taken_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What shields shows in no single step, only in where nothing ever spawns."""
    transmissions_shield_from_fire(monkeypatch)
    assert fault_found(filter(ends_with_a_spawn, spots()))
