"""Recorded games against the engine, step by step."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hackmatrix.conformance.chance import Draw
from hackmatrix.conformance.differences import ReplayAsOriginal, Rule
from hackmatrix.conformance.recording import RecordedGame, RecordedState, RecordedStep
from hackmatrix.conformance.replay import Replay


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be said of a step: it is reproduced, unless one of these is there.

    Attributes:
        rules: the differences of section 13 by which it is declared.
        failure: the first difference that is none of those.
        draws: the outcomes of chance in it, unless it failed.
    """

    rules: tuple[Rule, ...] = ()
    failure: str | None = None
    draws: Sequence[Draw] = ()


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
    if not ended:
        replay = Replay(before.state, step, step.after.state)
        if replay.difference() is None:
            return Verdict(draws=replay.dice.draws)
    original = ReplayAsOriginal(before.state, step, step.after.state, before.undoable, ended)
    failure = original.difference()
    if failure is not None:
        return Verdict(failure=failure)
    return Verdict(tuple(sorted(original.rules)), draws=original.dice.draws)
