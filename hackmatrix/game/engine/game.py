"""Section 10: a whole game, from the start to its end."""

from dataclasses import dataclass
from typing import Any, Self, SupportsIndex

from hackmatrix.core.integers import as_integer
from hackmatrix.game.engine.actions import go, is_valid, valid_actions
from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.enemy_turn import enemy_turn
from hackmatrix.game.engine.events import Event, EventKind
from hackmatrix.game.engine.programs import run
from hackmatrix.game.engine.reward import measure, reward_parts
from hackmatrix.game.engine.siphoning import siphon
from hackmatrix.game.engine.stage import begin_stage
from hackmatrix.game.engine.state import Ending, Player, State
from hackmatrix.game.rules.actions import FIRST_PROGRAM, NUM_ACTIONS, SIPHON
from hackmatrix.game.rules.board import CORNERS, Content
from hackmatrix.game.rules.chance import MAX_WORD, Site
from hackmatrix.game.rules.programs import ProgramId
from hackmatrix.game.rules.rewards import REWARD_PARTS, UNIT
from hackmatrix.game.rules.stages import LAST_STAGE, MAX_HP, STAGE_INTERVAL, START_BONUSES


class GameOverError(RuntimeError):
    """An action was taken after the end of the game."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one action.

    Attributes:
        parts: the 15 reward parts by name, in units of 0.005 (all 0 for an invalid action).
        stage_completed: whether the action completed a stage, the last one included.
        ending: how the game ended, None while it is running.
        events: the action's events, in order.
    """

    parts: dict[str, int]
    stage_completed: bool
    ending: Ending | None
    events: tuple[Event, ...]

    @property
    def reward(self) -> float:
        """The sum of the reward parts, in points."""
        return sum(self.parts.values()) * UNIT

    @property
    def done(self) -> bool:
        """Whether the game has ended."""
        return self.ending is not None


class Game:
    """One game of HackMatrix.

    >>> game = Game.new(stream=7, episode=0)
    >>> outcome = game.step(game.valid_actions()[0])

    What only some uses need (records, data, text) is imported when it is used, so that the
    game process starts at once.
    """

    def __init__(self, state: State) -> None:
        """Continues from a state; the game modifies it in place."""
        self.state = state

    @classmethod
    def new(cls, stream: SupportsIndex, episode: SupportsIndex = 0) -> Self:
        """Starts a new game; the same stream, episode and actions give the same game.

        Args:
            stream: 0..2^32-1, of any integer type; the top bit marks games for evaluation.
            episode: likewise, the number of the game in its stream.

        Raises:
            TypeError: one of them is no integer.
            ValueError: one of them is out of range.
        """
        words = (as_integer("stream", stream, MAX_WORD), as_integer("episode", episode, MAX_WORD))
        return cls(new_game(Dice(*words)))

    def valid_actions(self) -> list[int]:
        """The valid actions, ascending; none after the end of the game."""
        return [] if self.state.over else valid_actions(self.state)

    def step(self, action: SupportsIndex) -> Outcome:
        """Take an action, of any integer type; an invalid one ends the game.

        Raises:
            TypeError: the action is no integer.
            ValueError: the action is not in 0..27.
            GameOverError: the game has ended.
        """
        index = as_integer("action", action, NUM_ACTIONS - 1)
        if self.state.over:
            raise GameOverError(f"the game has ended ({self.state.over}); start a new one")
        return step(self.state, index)

    def observation(self) -> bytes:
        """The compact record of what the player can see (`rules.observation`)."""
        from hackmatrix.game.engine.observation import observe

        return observe(self.state)

    def to_dict(self) -> dict[str, Any]:
        """The complete state as JSON data; `from_dict` reads it back exactly."""
        from hackmatrix.game.engine.saving import state_to_dict

        return state_to_dict(self.state)

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Continues from saved or hand-made JSON data.

        Raises:
            IllegalStateError: the state is not legal; the message names the field.
        """
        from hackmatrix.game.engine.saving import state_from_dict

        return cls(state_from_dict(data))

    def to_text(self) -> str:
        """The complete state as a drawing and one line per fact (`docs/positions.md`)."""
        from hackmatrix.game.engine.text import state_to_text

        return state_to_text(self.state)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Continues from a position in text form.

        Raises:
            IllegalStateError: the state is not legal; the message names the line or the field.
        """
        from hackmatrix.game.engine.text import state_from_text

        return cls(state_from_text(text))


def new_game(dice: Dice) -> State:
    """The state before the first action."""
    corner = dice.choose(Site.START_CORNER, CORNERS)
    credits, energy, siphons = dice.choose(Site.START_BONUS, START_BONUSES)
    player = Player(corner, credits=credits, energy=energy, siphons=siphons)
    state = State(player=player, dice=dice, exit=corner)
    begin_stage(state)
    state.events = []
    return state


def step(state: State, action: int) -> Outcome:
    """Take an action in a game that has not ended."""
    state.events = []
    if not is_valid(state, action):
        state.over = Ending.INVALID_ACTION
        return Outcome(dict.fromkeys(REWARD_PARTS, 0), False, state.over, ())
    state.dice.clock = (state.dice.clock + 1) & MAX_WORD
    before = measure(state, action)
    kills, picked_up, completed = act(state, action)
    if completed:
        complete_stage(state)
    elif ends_turn(action):
        enemy_turn(state)
    if state.player.hp == 0:
        state.over = Ending.DIED
        state.events.append(Event(EventKind.DIED))
    parts = reward_parts(
        before,
        state,
        action,
        kills=kills,
        picked_up=picked_up,
        completed=completed,
        won=state.over == Ending.WON,
    )
    return Outcome(parts, completed, state.over, tuple(state.events))


def act(state: State, action: int) -> tuple[int, bool, bool]:
    """Applies the player's action.

    Returns:
        The kills that give a reward, whether a data siphon was picked up, and whether the player
        reached the exit by walking or WARP.
    """
    player = state.player
    before = player.cell
    if action < SIPHON:
        kills, picked_up = go(state, action)
        # Walking checks the cell's content, WARP checks `exit`. They agree in every legal state,
        # but not on boards of an older stage that the original's UNDO restores.
        at_exit = state.cells[player.cell].content == Content.EXIT
        return kills, picked_up, at_exit and player.cell != before
    if action == SIPHON:
        siphon(state)
        return 0, False, False
    kills = run(state, action - FIRST_PROGRAM)
    return kills, False, action == FIRST_PROGRAM + ProgramId.WARP and player.cell == state.exit


def ends_turn(action: int) -> bool:
    """Whether an enemy turn follows an action: always, except for programs other than WAIT."""
    return action <= SIPHON or action == FIRST_PROGRAM + ProgramId.WAIT


def complete_stage(state: State) -> None:
    """Heals the player, then begins the next stage at the player's cell or ends the game as won."""
    state.events.append(Event(EventKind.STAGE_COMPLETED, amount=state.stage))
    state.player.hp = min(state.player.hp + 1, MAX_HP)
    if state.stage == LAST_STAGE:
        state.over = Ending.WON
        state.events.append(Event(EventKind.WON))
        return
    state.stage += 1
    state.interval = STAGE_INTERVAL - state.stage
    begin_stage(state)
