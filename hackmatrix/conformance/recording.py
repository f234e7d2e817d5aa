"""What is in a recorded game."""

from dataclasses import dataclass

from hackmatrix.engine.state import Position, State
from hackmatrix.engine.undo import snapshot
from hackmatrix.rules.actions import FIRST_PROGRAM
from hackmatrix.rules.programs import MAX_SAVED_STATES, ProgramId

UNDO = FIRST_PROGRAM + ProgramId.UNDO
FLAGS = ("success", "done", "stage_advanced", "won", "died")


@dataclass(slots=True)
class RecordedState:
    """A state as the original had it.

    Attributes:
        state: the same in the engine's form, without dice; or, in words, the first value that the
            engine cannot hold.
        history: how many states the original had saved for UNDO.
        undoable: the one that the original's UNDO would bring back.
    """

    state: State | str
    history: int
    undoable: Position | None = None


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One action and what came of it.

    Attributes:
        valid: the valid actions before it.
        action: what was done.
        after: the state after it, enemy turn included.
        parts: the reward in units of 0.005, by the names of `rules.rewards`.
        flags: by the names of `FLAGS`.
        order: the places of the enemies in the order that was drawn, for each sub-step.
    """

    valid: list[int]
    action: int
    after: RecordedState
    parts: dict[str, float]
    flags: dict[str, bool]
    order: list[list[int]]


@dataclass(frozen=True, slots=True)
class RecordedGame:
    """A whole game."""

    initial: RecordedState
    steps: list[RecordedStep]


def rebuild_saved_states(game: RecordedGame) -> None:
    """Fill in, by following the game, what UNDO can bring back in each state.

    `state.saved` becomes what the rules keep: the newest 4, forgotten when a stage begins.
    `undoable` is the newest of all, which the original never forgets.
    """
    ours: list[Position] = []
    original: list[Position] = []
    before = game.initial
    for step in game.steps:
        after = step.after
        if step.flags["stage_advanced"] and not step.flags["won"]:
            ours = []
        elif step.action == UNDO and step.flags["success"]:
            ours, original = ours[:-1], original[:-1]
        elif after.history == before.history + 1 and isinstance(after.state, State):
            saved = snapshot(after.state)
            ours, original = [*ours, saved][-MAX_SAVED_STATES:], [*original, saved]
        if isinstance(after.state, State):
            after.state.saved = ours
        after.undoable = original[-1] if original else None
        before = after
