"""The content of a recorded game."""

from dataclasses import dataclass

from hackmatrix.game.engine.state import Position, State
from hackmatrix.game.engine.undo import snapshot
from hackmatrix.game.rules.actions import FIRST_PROGRAM
from hackmatrix.game.rules.programs import MAX_SAVED_STATES, ProgramId

UNDO = FIRST_PROGRAM + ProgramId.UNDO
FLAGS = ("success", "done", "stage_advanced", "won", "died")


@dataclass(slots=True)
class RecordedState:
    """A state as the original recorded it.

    Attributes:
        state: the state in the engine's form, without dice; or a text that describes the first
            value that the engine cannot represent.
        history: number of states that the original had saved for UNDO.
        undoable: the position that the original's UNDO would restore.
    """

    state: State | str
    history: int
    undoable: Position | None = None


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One action and its results.

    Attributes:
        valid: the valid actions before it.
        action: the action taken.
        after: the state after it, including the enemy turn.
        parts: the reward in units of 0.005, by the names of `rules.rewards`.
        flags: bools by the names of `FLAGS`.
        order: for each sub-step, the list positions of the enemies in the order they acted.
    """

    valid: list[int]
    action: int
    after: RecordedState
    parts: dict[str, float]
    flags: dict[str, bool]
    order: list[list[int]]


@dataclass(frozen=True, slots=True)
class RecordedGame:
    """A recorded game: its first state and its steps."""

    initial: RecordedState
    steps: list[RecordedStep]


def rebuild_saved_states(game: RecordedGame) -> None:
    """Fills in, by following the game, the states that UNDO can restore after each step.

    `state.saved` becomes what the rules keep: the newest 4, cleared when a stage begins. `undoable`
    is the newest of all, which the original never clears.
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
