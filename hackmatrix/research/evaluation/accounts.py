"""The events of a game of HackMatrix, counted by the Python engine that plays it.

A game that another engine played is played again from its actions, so the accounts of all players
are made here. This module imports neither JAX nor NumPy: processes that play games start fast.
"""

from collections.abc import Callable
from typing import NamedTuple

from hackmatrix.game.engine.events import EventKind
from hackmatrix.game.engine.game import Game, Outcome
from hackmatrix.game.engine.state import Ending, State
from hackmatrix.game.rules import rewards
from hackmatrix.game.rules.actions import SIPHON

Choose = Callable[[State], int]


class Entry(NamedTuple):
    """The player's numbers when a stage began."""

    hp: int
    enemies: int  # left over from the stage before
    credits: int
    energy: int
    programs: int


class StageAccount(NamedTuple):
    """The events of one stage of a game."""

    stage: int
    entry: Entry
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
    game = Game.new(stream, episode)
    recorder = _Recorder(game.state)
    while not game.state.over and len(recorder.actions) < max_steps:
        action = choose(game.state)
        recorder.before(game.state, action)
        recorder.after(game.state, action, game.step(action))
    return recorder.account(game.state)


class _Recorder:
    """The account of a game so far."""

    def __init__(self, state: State) -> None:
        self.actions = bytearray()
        self.units = 0
        self.stages: list[StageAccount] = []
        self.siphonings: list[Siphoning] = []
        self.chances = self.taken_at_once = 0
        self.death: Death | None = None
        self._could_siphon = False
        self._begin_stage(state)

    def _begin_stage(self, state: State) -> None:
        player = state.player
        self._entry = Entry(
            player.hp, len(state.enemies), player.credits, player.energy, len(state.owned)
        )
        self._since = (len(self.actions), len(self.siphonings))
        self._hits = 0

    def before(self, state: State, action: int) -> None:
        """Notes what the action will change."""
        player = state.player
        if action == SIPHON:
            self._had = _holdings(state)
        self._hp, self._stage = player.hp, state.stage
        self._seen = {id(enemy) for enemy in state.enemies if state.sees(enemy)}
        can_siphon = player.siphons > 0
        if can_siphon and not self._could_siphon:
            self.chances += 1
            self.taken_at_once += action == SIPHON
        self._could_siphon = can_siphon

    def after(self, state: State, action: int, outcome: Outcome) -> None:
        """Notes what the action has changed."""
        self.actions.append(action)
        self.units += sum(outcome.parts.values())
        if action == SIPHON:
            self._siphoned(state, outcome)
        hits = [event for event in outcome.events if event.kind == EventKind.HIT]
        self._hits += len(hits)
        if outcome.ending == Ending.DIED:
            fatal = hits[self._hp - 1]
            killers = [
                e for e in state.enemies_on(fatal.cell or 0) if e.type.name.lower() == fatal.piece
            ]
            self.death = Death(
                state.stage,
                fatal.piece or "",
                len(hits),
                any(enemy.from_siphon for enemy in killers),
                not any(id(enemy) in self._seen for enemy in killers),
            )
        if outcome.stage_completed:
            self._end_stage(cleared=True)
            self._begin_stage(state)

    def _siphoned(self, state: State, outcome: Outcome) -> None:
        had, has = self._had, _holdings(state)
        missed = outcome.parts["siphon_quality"] // rewards.SIPHON_QUALITY
        self.siphonings.append(
            Siphoning(
                credits=has.credits - had.credits,
                energy=has.energy - had.energy,
                points=has.points - had.points,
                programs=has.programs - had.programs,
                spawns=had.spawns - has.spawns,
                missed=missed,
            )
        )

    def _end_stage(self, *, cleared: bool) -> None:
        actions, siphonings = self._since
        self.stages.append(
            StageAccount(
                self._stage,
                self._entry,
                len(self.actions) - actions,
                self._hits,
                len(self.siphonings) - siphonings,
                cleared,
            )
        )

    def account(self, state: State) -> Account:
        """The account of the whole game."""
        if state.over != Ending.WON:
            self._end_stage(cleared=False)
        return Account(
            bytes(self.actions),
            state.over,
            state.player.score,
            len(state.owned),
            self.units,
            tuple(self.stages),
            tuple(self.siphonings),
            self.chances,
            self.taken_at_once,
            self.death,
        )


def _holdings(state: State) -> Siphoning:
    """The player's numbers, and the spawns that are left on the board."""
    player, spawns = state.player, sum(cell.spawn for cell in state.cells)
    return Siphoning(
        player.credits, player.energy, player.score, len(state.owned), spawns, missed=0
    )
