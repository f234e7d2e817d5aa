"""Replays one recorded step on the engine and compares the result with the recording."""

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import Any

from hackmatrix.game.conformance.format import RecordedStep
from hackmatrix.game.conformance.recorded_dice import ImpossibleOutcome, RecordedDice
from hackmatrix.game.engine.game import Game, Outcome
from hackmatrix.game.engine.state import Cell, Ending, Enemy, Player, Position, State, Transmission
from hackmatrix.game.engine.undo import snapshot
from hackmatrix.game.rules.board import col, row
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.rewards import UNIT


class StepReplay:
    """Replays a step by the unchanged rules.

    Args:
        before: the state before the step; it is not changed.
        step: the recorded step.
        after: the state after it.

    Attributes:
        dice: the dice that the step is played with.
    """

    def __init__(self, before: State, step: RecordedStep, after: State) -> None:
        self.state = _playable(before)
        self.step = step
        self.after = after
        self.dice = self.recorded_dice()

    def recorded_dice(self) -> RecordedDice:
        """Dice that return the recorded outcomes."""
        return RecordedDice(self.state, self.after, self.step.order)

    def difference(self) -> str | None:
        """Path and values of the first difference from the recording; None if there is none."""
        game = Game(self.state)
        valid = game.valid_actions()
        if valid != self.step.valid:
            return _mask_difference(valid, self.step.valid)
        everyone = list(range(len(self.after.enemies)))
        for order in self.step.order:  # even where the engine does not need it
            if sorted(order) != everyone:
                return f"order: {order} is none of {len(everyone)} enemies"
        try:
            outcome = self.play(game)
        except ImpossibleOutcome as impossible:
            return str(impossible)
        return first_difference(self.state, self.after) or self._result_difference(outcome)

    def play(self, game: Game) -> Outcome:
        """Takes the action."""
        return game.step(self.step.action)

    def _result_difference(self, outcome: Outcome) -> str | None:
        for name, value in flags_of(outcome).items():
            if value != self.step.flags[name]:
                return f"{name}: engine {value}, recorded {self.step.flags[name]}".lower()
        for name, units in outcome.parts.items():
            recorded = self.step.parts[name]
            if units != recorded:
                return f"reward.{name}: engine {units * UNIT:.10g}, recorded {recorded * UNIT:.10g}"
        return None


def flags_of(outcome: Outcome) -> dict[str, bool]:
    """The outcome as the recorded flags, `recording.FLAGS`."""
    return {
        "success": outcome.ending != Ending.INVALID_ACTION,
        "done": outcome.done,
        "stage_advanced": outcome.stage_completed,
        "won": outcome.ending == Ending.WON,
        "died": outcome.ending == Ending.DIED,
    }


def _mask_difference(engine: list[int], recorded: list[int]) -> str:
    only_engine = [action for action in engine if action not in recorded]
    only_recorded = [action for action in recorded if action not in engine]
    if not only_engine and not only_recorded:
        return f"valid: engine {engine}, recorded {recorded}"
    return f"valid: engine also {only_engine}, recorded also {only_recorded}"


def _playable(state: State) -> State:
    """A copy that can be played without changing the state or its saved states."""
    position = snapshot(state)
    saved = [*state.saved[:-1], *(snapshot(newest) for newest in state.saved[-1:])]
    changes = {f.name: getattr(position, f.name) for f in fields(Position)}
    return replace(state, **changes, saved=saved)


# --- Finds the first difference between a state of the engine and the recorded one ----------------


_POSITION = [f.name for f in fields(Position)]
# The fields that a recording contains. It lacks the dice, the events and how the game ended.
_STATE = ["stage", "exit", "interval", "next_task", "pending", "step", *_POSITION, "saved"]
_PARTS = {kind: [f.name for f in fields(kind)] for kind in (Cell, Player, Enemy, Transmission)}
_CELL_FIELDS = ("exit", "cell", "last")


def first_difference(engine: State, recorded: State) -> str | None:
    """Path and values of the first field that differs, None if there is none."""
    return next(_in_fields(_STATE, "", engine, recorded), None)


def _in_fields(names: Iterable[str], path: str, engine: Any, recorded: Any) -> Iterator[str]:
    for name in names:
        yield from _in_value(name, path + name, getattr(engine, name), getattr(recorded, name))


def _in_value(name: str, path: str, engine: Any, recorded: Any) -> Iterator[str]:
    if engine is recorded or engine == recorded:
        return
    if isinstance(engine, list):
        yield from _in_list(name, path, engine, recorded)
    elif isinstance(engine, Position):
        yield from _in_fields(_POSITION, f"{path}.", engine, recorded)
    elif type(engine) in _PARTS:
        names = _PARTS[type(engine)]
        if isinstance(engine, Enemy) and not engine.type == recorded.type == EnemyType.CRYPTOG:
            names = [name for name in names if name != "last"]  # only cryptogs have one
        yield from _in_fields(names, f"{path}.", engine, recorded)
    else:
        yield f"{path}: engine {_format(name, engine)}, recorded {_format(name, recorded)}"


def _in_list(name: str, path: str, engine: list[Any], recorded: list[Any]) -> Iterator[str]:
    if len(engine) != len(recorded):
        yield f"{path}: engine has {len(engine)}, recorded {len(recorded)}"
    for i, (a, b) in enumerate(zip(engine, recorded, strict=False)):
        place = _format("cell", i) if name == "cells" else str(i)
        yield from _in_value("", f"{path}[{place}]", a, b)


def _format(name: str, value: Any) -> str:
    if name in _CELL_FIELDS:
        return f"{row(value)},{col(value)}"
    return getattr(value, "name", str(value)).lower()
