"""Recorded games against the engine, step by step."""

from collections.abc import Iterator
from dataclasses import dataclass

from hackmatrix.conformance.differences import ReplayAsOriginal, Rule
from hackmatrix.conformance.recording import RecordedGame, RecordedState, RecordedStep
from hackmatrix.conformance.replay import Replay


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be said of a step: it is reproduced, unless one of these is there.

    Attributes:
        rules: the differences of section 13 by which it is declared.
        failure: the first difference that is none of those.
    """

    rules: tuple[Rule, ...] = ()
    failure: str | None = None


def check_game(game: RecordedGame) -> Iterator[Verdict]:
    """The verdict on each step of a game."""
    before, ended = game.initial, False
    for step in game.steps:
        yield check_step(before, step, ended=ended)
        before, ended = step.after, ended or step.flags["done"]


def check_step(before: RecordedState, step: RecordedStep, *, ended: bool = False) -> Verdict:
    """Play one step by the rules and, if the recording has it otherwise, as the original does.

    Args:
        before: the state before it.
        step: the recorded step.
        ended: the game had ended before it.
    """
    if isinstance(before.state, str):
        return Verdict(failure=f"before: {before.state}")
    if isinstance(step.after.state, str):
        return Verdict(failure=step.after.state)
    if not ended and Replay(before.state, step, step.after.state).difference() is None:
        return Verdict()
    original = ReplayAsOriginal(before.state, step, step.after.state, before.undoable, ended)
    failure = original.difference()
    return Verdict(tuple(sorted(original.rules)) if failure is None else (), failure)
