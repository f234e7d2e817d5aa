"""Section 13: how the running original differs from the rules, and replays that follow it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from types import ModuleType
from typing import Any, TypeVar

from hackmatrix.game.conformance.format import UNDO, RecordedStep
from hackmatrix.game.conformance.recorded_dice import NEGLIGIBLE, ImpossibleOutcome, RecordedDice
from hackmatrix.game.conformance.step import StepReplay
from hackmatrix.game.engine import enemy_turn, stage
from hackmatrix.game.engine.actions import valid_actions
from hackmatrix.game.engine.game import Game, Outcome
from hackmatrix.game.engine.spawning import spawn
from hackmatrix.game.engine.state import Ending, Enemy, Position, State, Transmission
from hackmatrix.game.engine.undo import snapshot
from hackmatrix.game.rules.board import CELLS
from hackmatrix.game.rules.chance import Site
from hackmatrix.game.rules.enemies import MAX_ENEMIES

_T = TypeVar("_T")
_WINNING_PAYS = 12_800  # 64, in units of 0.005
_SPAWN_TRIES = 100
_NO_LIMIT = 1 << 20


class DeclaredDifference(IntEnum):
    """The numbered differences of section 13. The fifth cannot be recorded: the original hangs."""

    WINNING = 1
    SAVED_STATES = 2
    FORGOTTEN_FLAGS = 3
    SPAWN_CELLS = 4
    AFTER_THE_END = 6
    ENEMY_LIMIT = 7


class ReplayAsOriginal(StepReplay):
    """Replays a step with the differences of section 13 and nothing else changed.

    Args:
        before: the state before the step; it is not changed.
        step: the recorded step.
        after: the state after it.
        undoable: the position that the original's UNDO would restore.
        ended: whether the game had ended before the step.

    Attributes:
        rules: the differences that affected the step.
    """

    dice: "OriginalDice"

    def __init__(
        self,
        before: State,
        step: RecordedStep,
        after: State,
        undoable: Position | None,
        ended: bool,
    ) -> None:
        super().__init__(before, step, after)
        self.rules: set[DeclaredDifference] = {DeclaredDifference.AFTER_THE_END} if ended else set()
        self.undoable = snapshot(undoable) if undoable and not self.state.saved else None
        if self.undoable:
            self.state.saved = [self.undoable]
            if UNDO in valid_actions(self.state):
                self.rules.add(DeclaredDifference.SAVED_STATES)

    def recorded_dice(self) -> "OriginalDice":
        """Dice that can also follow behaviour that only the original has."""
        return OriginalDice(self.state, self.after, self.step.order)

    def play(self, game: Game) -> Outcome:
        """Takes the action as the original does."""
        dice = self.dice
        with (
            _replace_names(enemy_turn, spawn=dice.spawn, MAX_ENEMIES=_NO_LIMIT),
            _replace_names(stage, spawn=dice.spawn),
        ):
            outcome = game.step(self.step.action)
        if dice.overlooked:
            self.rules.add(DeclaredDifference.SPAWN_CELLS)
        if len(self.state.enemies) > MAX_ENEMIES:
            self.rules.add(DeclaredDifference.ENEMY_LIMIT)
        if outcome.ending == Ending.WON:
            outcome.parts["stage_completion"] = _WINNING_PAYS
            self.rules.add(DeclaredDifference.WINNING)
        if self.step.action == UNDO and outcome.ending != Ending.INVALID_ACTION:
            self._forget_flags()
        self.state.saved = [saved for saved in self.state.saved if saved is not self.undoable]
        return outcome

    def _forget_flags(self) -> None:
        pieces: list[Enemy | Transmission] = [*self.state.enemies, *self.state.transmissions]
        for piece in pieces:
            if piece.from_schedule or piece.from_siphon:
                piece.from_schedule = piece.from_siphon = False
                self.rules.add(DeclaredDifference.FORGOTTEN_FLAGS)


class OriginalDice(RecordedDice):
    """Recorded outcomes, including those where the original's random search for a cell gives up.

    In 100 tries it misses the only allowed cell once in 17 times, and both of two once in 300.

    Attributes:
        overlooked: whether it has missed cells that the rules would have used.
    """

    order_stride = _NO_LIMIT
    overlooked = False

    def choose(self, site: Site, options: Sequence[_T], index: int = 0) -> _T:
        """The recorded option, or a cell in the line of fire if few cells are outside it."""
        try:
            return super().choose(site, options, index)
        except ImpossibleOutcome:
            if site == Site.SPAWN_CELL and _may_overlook(len(options)):
                cell: Any = self.next_transmission(site).cell
                if cell in _empty_cells(self.state):
                    self.overlooked = True
                    return cell
            raise

    def spawn(
        self, state: State, index: int, *, from_schedule: bool = False, from_siphon: bool = False
    ) -> None:
        """The engine's `spawn`, or nothing if the original seems to have given up."""
        place, recorded = len(state.transmissions), self.recorded.transmissions
        is_recorded = place < len(recorded) and (
            (recorded[place].from_schedule, recorded[place].from_siphon)
            == (from_schedule, from_siphon)
        )
        empty = _empty_cells(state)
        if is_recorded or not empty or not _may_overlook(len(empty)):
            spawn(state, index, from_schedule=from_schedule, from_siphon=from_siphon)
        else:
            self.overlooked = True


def _may_overlook(cells: int) -> bool:
    """Whether 100 random cells of the board have a real chance of missing this number of cells."""
    return (1 - cells / CELLS) ** _SPAWN_TRIES > NEGLIGIBLE


def _empty_cells(state: State) -> set[int]:
    return set(range(CELLS)) - state.blocks() - state.occupied() - {state.player.cell}


@contextmanager
def _replace_names(module: ModuleType, **names: Any) -> Iterator[None]:
    old = {name: getattr(module, name) for name in names}
    vars(module).update(names)
    try:
        yield
    finally:
        vars(module).update(old)
