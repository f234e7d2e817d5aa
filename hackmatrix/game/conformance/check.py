"""Checks recorded games against the engine, step by step."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hackmatrix.game.conformance.declared_differences import DeclaredDifference, ReplayAsOriginal
from hackmatrix.game.conformance.format import RecordedGame, RecordedState, RecordedStep
from hackmatrix.game.conformance.frequencies import Draw
from hackmatrix.game.conformance.step import StepReplay


@dataclass(frozen=True, slots=True)
class StepVerdict:
    """Result of checking one step: it is reproduced if `rules` and `failure` are empty.

    Attributes:
        rules: the known differences of rules.md, section 13, that explain the step.
        failure: the first difference that none of them explains.
        draws: the random outcomes of the step, unless it failed.
    """

    rules: tuple[DeclaredDifference, ...] = ()
    failure: str | None = None
    draws: Sequence[Draw] = ()


def check_game(game: RecordedGame) -> Iterator[StepVerdict]:
    """Yields the verdict on each step of a game."""
    before, ended = game.initial, False
    for step in game.steps:
        yield check_step(before, step, ended=ended)
        before, ended = step.after, ended or step.flags["done"]


def check_step(before: RecordedState, step: RecordedStep, *, ended: bool = False) -> StepVerdict:
    """Replays one step by the rules and, if the recording differs, as the original plays it.

    Args:
        before: the state before the step.
        step: the recorded step.
        ended: whether the game had ended before the step.
    """
    if isinstance(before.state, str):
        return StepVerdict(failure=f"before: {before.state}")
    if isinstance(step.after.state, str):
        return StepVerdict(failure=step.after.state)
    if not ended:
        replay = StepReplay(before.state, step, step.after.state)
        if replay.difference() is None:
            return StepVerdict(draws=replay.dice.draws)
    original = ReplayAsOriginal(before.state, step, step.after.state, before.undoable, ended)
    failure = original.difference()
    if failure is not None:
        return StepVerdict(failure=failure)
    return StepVerdict(tuple(sorted(original.rules)), draws=original.dice.draws)
