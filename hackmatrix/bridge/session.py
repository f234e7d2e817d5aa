"""A client's session: turns any request, valid or not, into an answer."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hackmatrix.bridge.answers import Json, internal_state, observation, step_answer
from hackmatrix.bridge.set_state import read_state
from hackmatrix.engine import Game, Outcome
from hackmatrix.engine.dice import Dice
from hackmatrix.engine.fields import Fields
from hackmatrix.engine.state import Ending
from hackmatrix.errors import UserError
from hackmatrix.rules.actions import NUM_ACTIONS
from hackmatrix.rules.board import SIZE
from hackmatrix.rules.chance import EVALUATION_STREAM
from hackmatrix.rules.observation import CELL_FEATURES, PLAYER_FEATURES
from hackmatrix.rules.rewards import REWARD_PARTS

AFTER_THE_END = Outcome(
    dict.fromkeys(REWARD_PARTS, 0), stage_completed=False, ending=Ending.INVALID_ACTION, events=()
)


class Session:
    """The game of one client and the commands on it. A refused request changes nothing."""

    def __init__(self, log: Callable[[str], None]) -> None:
        """Starts without a game.

        Args:
            log: is called with a line for every game that begins, is set or ends.
        """
        self._log = log
        self._game: Game | None = None
        self._commands: dict[str, Callable[[Fields], Json]] = {
            "reset": self._reset,
            "step": self._step,
            "getValidActions": self._valid_actions,
            "getActionSpace": self._action_space,
            "getObservationSpace": self._observation_space,
            "setState": self._set_state,
            "getInternalState": self._internal_state,
        }

    def answer(self, line: bytes) -> Json:
        """Answers one line; an invalid request is answered by an error."""
        try:
            fields = Fields(parse(line), "request")
            fields.prefix = ""
            return self._commands[fields.choice("action", self._commands)](fields)
        except UserError as error:
            return {"error": str(error)}
        except RecursionError:
            return {"error": "not JSON: nested too deeply"}

    @property
    def game(self) -> Game:
        """The current game."""
        if self._game is None:
            raise UserError("there is no game yet: send reset or setState first")
        return self._game

    def _reset(self, fields: Fields) -> Json:
        if fields.left.get("seed") is None:
            stream = random_stream()
        else:
            stream = fields.number("seed", 0, EVALUATION_STREAM - 1)
        self._game = Game.new(stream)
        self._log(f"reset: stream {stream} episode 0")
        return {"observation": observation(self.game.state)}

    def _step(self, fields: Fields) -> Json:
        state = self.game.state
        action = fields.number("actionIndex", 0, NUM_ACTIONS - 1)
        if state.over:
            return step_answer(state, AFTER_THE_END)
        outcome = self.game.step(action)
        if outcome.ending:
            self._log(f"over: {outcome.ending} in stage {state.stage}, {state.dice.clock} actions")
        return step_answer(state, outcome)

    def _valid_actions(self, _: Fields) -> Json:
        return {"validActions": self.game.valid_actions()}

    def _action_space(self, _: Fields) -> Json:
        return {"actionSpaceSize": NUM_ACTIONS}

    def _observation_space(self, _: Fields) -> Json:
        return {
            "gridSize": SIZE,
            "playerFeatures": PLAYER_FEATURES,
            "cellFeatures": CELL_FEATURES,
        }

    def _set_state(self, fields: Fields) -> Json:
        dice = replace(self._game.state.dice) if self._game else Dice(random_stream(), 0)
        self._game = Game(read_state(fields.take("state"), dice))
        self._log(f"setState: stream {dice.stream} episode 0 clock {dice.clock}")
        return {"observation": observation(self.game.state)}

    def _internal_state(self, _: Fields) -> Json:
        return internal_state(self.game.state)


def random_stream() -> int:
    """A random stream, below those reserved for evaluation."""
    return int.from_bytes(os.urandom(4), "big") % EVALUATION_STREAM


def parse(line: bytes) -> Any:
    """Parses a line as one JSON value.

    Raises:
        UserError: the line is not a single JSON value.
    """
    try:
        return json.loads(line.decode(), parse_constant=_refuse_constant)
    except ValueError as error:  # also broken UTF-8 and numbers of thousands of digits
        raise UserError(f"not JSON: {error}") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")
