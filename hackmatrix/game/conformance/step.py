"""Replays one recorded step on the engine and compares the result with the recording."""

from dataclasses import fields, replace

from hackmatrix.game.conformance.recorded_dice import ImpossibleOutcome, RecordedDice
from hackmatrix.game.conformance.recording import RecordedStep
from hackmatrix.game.conformance.state_difference import first_difference
from hackmatrix.game.engine.game import Game, Outcome
from hackmatrix.game.engine.state import Ending, Position, State
from hackmatrix.game.engine.undo import snapshot
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
