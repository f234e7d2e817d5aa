"""The events of a game of HackMatrix, counted while it is played.

This module imports neither JAX nor NumPy: processes that play games start fast.
"""

from collections.abc import Callable
from typing import NamedTuple

from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.events import EventKind
from hackmatrix.game.engine.game import Outcome, ends_turn, new_game, step
from hackmatrix.game.engine.state import Ending, State
from hackmatrix.game.rules import rewards
from hackmatrix.game.rules.actions import SIPHON

Choose = Callable[[State], int]


class Holdings(NamedTuple):
    """The numbers of a state that accounts are made of."""

    stage: int
    hp: int
    siphons: int
    credits: int
    energy: int
    points: int
    programs: int  # owned
    enemies: int
    spawns: int  # that siphoning can still release on this board


class AccountEntry(NamedTuple):
    """The player's numbers when a stage began."""

    hp: int
    enemies: int  # left over from the stage before
    siphons: int  # likewise unused, as are credits and energy
    credits: int
    energy: int
    programs: int


class StageAccount(NamedTuple):
    """The events of one stage of a game."""

    stage: int
    entry: AccountEntry
    actions: int
    hits: int  # that the player took
    siphonings: int
    cleared: bool


class Siphoning(NamedTuple):
    """The yield of one siphoning."""

    credits: int
    energy: int
    points: int
    programs: int
    spawns: int
    missed: int  # credits and energy that a better cell would have given (section 7)


class Death(NamedTuple):
    """The last enemy turn of a lost game."""

    stage: int
    killer: str  # kind of the enemy whose hit took the last hp
    hits: int  # in that turn
    from_siphon: bool  # the killer came from siphoning
    unseen: bool  # the killer was out of sight when the player acted


class Account(NamedTuple):
    """The events of one game."""

    actions: bytes  # in order
    ending: str | None  # an `Ending`; None if the game was cut off
    score: int
    programs: int  # owned at the end
    units: int  # the sum of rewards, in units of 0.005
    stages: tuple[StageAccount, ...]
    siphonings: tuple[Siphoning, ...]
    chances: int  # spells in which siphoning was valid
    taken_at_once: int  # those that began with siphoning
    death: Death | None

    @property
    def won(self) -> bool:
        """Whether the game was won."""
        return self.ending == Ending.WON

    @property
    def stages_cleared(self) -> int:
        """The number of stages completed, 0..8."""
        return sum(stage.cleared for stage in self.stages)


def account(stream: int, episode: int, choose: Choose, max_steps: int) -> Account:
    """Plays a game to its end, or until `max_steps` actions, and tells what happened."""
    state = new_game(Dice(stream, episode))
    recorder, units = Recorder(holdings(state)), 0
    while not state.over and len(recorder.actions) < max_steps:
        action = choose(state)
        outcome, death = take(state, action)
        missed = outcome.parts["siphon_quality"] // rewards.SIPHON_QUALITY
        recorder.note(action, holdings(state), outcome.stage_completed, missed, death)
        units += sum(outcome.parts.values())
    return recorder.account(state.over, units)


def take(state: State, action: int) -> tuple[Outcome, Death | None]:
    """Takes an action, which changes the state, and tells how the player died by it."""
    hp = state.player.hp
    visible = {id(enemy) for enemy in state.enemies if state.sees(enemy)}
    outcome = step(state, action)
    if outcome.ending != Ending.DIED:
        return outcome, None
    hits = [event for event in outcome.events if event.kind == EventKind.HIT]
    fatal = hits[hp - 1]
    killers = [e for e in state.enemies_on(fatal.cell or 0) if e.type.name.lower() == fatal.piece]
    return outcome, Death(
        state.stage,
        fatal.piece or "",
        len(hits),
        any(enemy.from_siphon for enemy in killers),
        not any(id(enemy) in visible for enemy in killers),
    )


def holdings(state: State) -> Holdings:
    """The numbers of a state that accounts are made of."""
    player = state.player
    return Holdings(
        state.stage,
        player.hp,
        player.siphons,
        player.credits,
        player.energy,
        player.score,
        len(state.owned),
        len(state.enemies),
        sum(cell.spawn for cell in state.cells),
    )


class Recorder:
    """The account of a game so far."""

    def __init__(self, first: Holdings) -> None:
        """Begins with the holdings before the first action."""
        self.actions = bytearray()
        self._now = first
        self._stages: list[StageAccount] = []
        self._siphonings: list[Siphoning] = []
        self._chances = self._taken_at_once = 0
        self._death: Death | None = None
        self._could_siphon = False
        self._begin_stage()

    def _begin_stage(self) -> None:
        now = self._now
        self._entry = AccountEntry(
            now.hp, now.enemies, now.siphons, now.credits, now.energy, now.programs
        )
        self._since = (len(self.actions), len(self._siphonings))
        self._hits = 0

    def note(
        self, action: int, after: Holdings, completed: bool, missed: int, death: Death | None
    ) -> None:
        """Notes an action.

        Args:
            action: the action.
            after: the holdings after it.
            completed: whether it completed a stage.
            missed: credits and energy that siphoning at a better cell would have given.
            death: how the player died by it, if so.
        """
        before, self._now = self._now, after
        can_siphon = before.siphons > 0
        if can_siphon and not self._could_siphon:
            self._chances += 1
            self._taken_at_once += action == SIPHON
        self._could_siphon = can_siphon
        self.actions.append(action)
        if action == SIPHON:
            self._siphonings.append(_siphoning(before, after, missed))
        if death is not None:
            self._death = death
            self._hits += death.hits
        elif ends_turn(action) and not completed:  # only enemy turns cost hp
            self._hits += before.hp - after.hp
        if completed:
            self._end_stage(before.stage, cleared=True)
            self._begin_stage()

    def _end_stage(self, stage: int, *, cleared: bool) -> None:
        actions, siphonings = self._since
        self._stages.append(
            StageAccount(
                stage,
                self._entry,
                len(self.actions) - actions,
                self._hits,
                len(self._siphonings) - siphonings,
                cleared,
            )
        )

    def account(self, ending: Ending | None, units: int) -> Account:
        """The account of the whole game, by its ending and the sum of its rewards."""
        now = self._now
        if ending != Ending.WON:
            self._end_stage(now.stage, cleared=False)
        return Account(
            bytes(self.actions),
            ending,
            now.points,
            now.programs,
            units,
            tuple(self._stages),
            tuple(self._siphonings),
            self._chances,
            self._taken_at_once,
            self._death,
        )


def _siphoning(before: Holdings, after: Holdings, missed: int) -> Siphoning:
    return Siphoning(
        credits=after.credits - before.credits,
        energy=after.energy - before.energy,
        points=after.points - before.points,
        programs=after.programs - before.programs,
        spawns=before.spawns - after.spawns,
        missed=missed,
    )
