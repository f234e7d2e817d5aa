"""A client's session: turns any request, valid or not, into an answer."""

import json
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from hackmatrix.core.errors import UserError
from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.fields import Fields
from hackmatrix.game.engine.game import Game, Outcome, new_game
from hackmatrix.game.engine.state import Ending, State
from hackmatrix.game.rules.actions import ACTION_NAMES, NUM_ACTIONS
from hackmatrix.game.rules.board import SIZE
from hackmatrix.game.rules.chance import EVALUATION_STREAM, Site
from hackmatrix.game.rules.rewards import REWARD_PARTS
from hackmatrix.integrations.process.answers import (
    internal_state,
    observation,
    step_answer,
    to_json,
)
from hackmatrix.integrations.process.set_state import read_state

AFTER_THE_END = Outcome(
    dict.fromkeys(REWARD_PARTS, 0), stage_completed=False, ending=Ending.INVALID_ACTION, events=()
)
_LONGEST = 200  # bytes of a refused request that are shown


class ProcessSession:
    """The game of one client and the commands on it. A refused request changes nothing."""

    def __init__(
        self,
        log: Callable[[str], None] | None = None,
        *,
        trace: Callable[[str], None] | None = None,
        exact_breakdown: bool = False,
        programs: Collection[int] = (),
    ) -> None:
        """Starts without a game.

        Args:
            log: is called with a line for every game that begins, is set or ends.
            trace: is called with a line for every step and every refused request.
            exact_breakdown: whether `reward_breakdown` has the parts of the original alone, without
                `stepPenalty`.
            programs: numbers of the programs that blocks of new stages may carry; empty for all.
        """
        self._log = log or (lambda _: None)
        self._trace = trace or (lambda _: None)
        # Told of the state after each step with its action, and of a game's first one with None.
        self.on_change: Callable[[State, int | None], None] = lambda *_: None
        self._exact = exact_breakdown
        self._programs = tuple(sorted(programs))
        self._game: Game | None = None
        self._commands: dict[str, Callable[[Fields], str]] = {
            "reset": self._reset,
            "step": self._step,
            "getValidActions": self._valid_actions,
            "getActionSpace": self._action_space,
            "getObservationSpace": self._observation_space,
            "setState": self._set_state,
            "getInternalState": self._internal_state,
        }

    def answer(self, line: bytes) -> str:
        """Answers one line by JSON text without a line end; an invalid request by an error."""
        try:
            fields = Fields(parse(line), "request")
            fields.prefix = ""
            return self._commands[fields.choice("action", self._commands)](fields)
        except UserError as error:
            return self._refuse(line, str(error))
        except RecursionError:
            return self._refuse(line, "not JSON: nested too deeply")

    def _refuse(self, line: bytes, why: str) -> str:
        self._trace(f"refused: {line[:_LONGEST]!r}: {why}")
        return to_json({"error": why})

    @property
    def game(self) -> Game:
        """The current game."""
        if self._game is None:
            raise UserError("there is no game yet: send reset or setState first")
        return self._game

    def _reset(self, fields: Fields) -> str:
        if fields.left.get("seed") is None:
            stream = random_stream()
        else:
            stream = fields.integer("seed", 0, EVALUATION_STREAM - 1)
        self._log(f"reset: stream {stream} episode 0")
        return self._begin(new_game(self._dice(stream)))

    def _begin(self, state: State) -> str:
        self._game = Game(state)
        self.on_change(state, None)
        return f'{{"observation":{observation(state)}}}'

    def _dice(self, stream: int) -> Dice:
        if not self._programs:
            return Dice(stream, 0)
        return LimitedDice(stream, 0, 0, self._programs)

    def _step(self, fields: Fields) -> str:
        state = self.game.state
        action = fields.integer("actionIndex", 0, NUM_ACTIONS - 1)
        if state.over:
            return step_answer(state, AFTER_THE_END, exact=self._exact)
        was_dead = state.player.hp == 0  # only setState makes such a game
        outcome = self.game.step(action)
        if was_dead and not outcome.done:
            state.over = Ending.DIED
            outcome = replace(outcome, ending=Ending.DIED)
        self.on_change(state, action)
        name = ACTION_NAMES[action]
        self._trace(f"stage {state.stage} turn {state.turn}: {name}, {outcome.reward:g}")
        if outcome.ending:
            self._log(f"over: {outcome.ending} in stage {state.stage}, {state.dice.clock} actions")
        return step_answer(state, outcome, exact=self._exact)

    def _valid_actions(self, _: Fields) -> str:
        return to_json({"validActions": self._game.valid_actions() if self._game else []})

    def _action_space(self, _: Fields) -> str:
        return to_json({"actionSpaceSize": NUM_ACTIONS})

    def _observation_space(self, _: Fields) -> str:
        from hackmatrix.game.rules import (
            observation as layout,  # here, as the process starts faster
        )

        sizes = {"playerFeatures": layout.PLAYER_FEATURES, "cellFeatures": layout.CELL_FEATURES}
        return to_json({"gridSize": SIZE, **sizes})

    def _set_state(self, fields: Fields) -> str:
        dice = replace(self._game.state.dice) if self._game else self._dice(random_stream())
        state = read_state(fields.take("state"), dice)
        self._log(f"setState: stream {dice.stream} episode 0 clock {dice.clock}")
        return self._begin(state)

    def _internal_state(self, _: Fields) -> str:
        return internal_state(self._game.state if self._game else None)


def random_stream() -> int:
    """A random stream, below those reserved for evaluation."""
    return int.from_bytes(os.urandom(4), "big") % EVALUATION_STREAM


def parse(line: bytes) -> Any:
    """Parses a line as one JSON value; numbers such as 1.0 are read as integers.

    Raises:
        UserError: the line is not a single JSON value.
    """
    try:
        return _DECODER.decode(line.decode())
    except UserError:
        raise
    except UnicodeDecodeError as error:
        why = f"byte {error.start + 1} is no UTF-8"
    except json.JSONDecodeError as error:
        why = f"cannot be read from character {error.pos + 1} on"
    except ValueError:  # Python refuses to read integers of thousands of digits
        why = "a number has too many digits"
    raise UserError(f"not JSON: {why}")


def _parse_number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number


def _refuse_constant(name: str) -> None:
    raise UserError(f"not JSON: {name} is no JSON number")


_DECODER = json.JSONDecoder(parse_float=_parse_number, parse_constant=_refuse_constant)


# --- Dice for `--programs`: blocks of new stages carry only some of the programs ------------------


@dataclass(slots=True)
class LimitedDice(Dice):
    """Draws the programs of blocks among `programs`, again among all when each is on the board."""

    programs: tuple[int, ...] = ()

    def choose(self, site: Site, options: Sequence[Any], index: int = 0) -> Any:
        """Draws one of the options, all equally likely."""
        if site == Site.BLOCK_PROGRAM:
            options = [program for program in options if program in self.programs] or self.programs
        return Dice.choose(self, site, options, index)


# --- The main loop of the game process: reads requests and writes answers, one JSON object a line -


def serve(requests: BinaryIO, answers: BinaryIO, session: ProcessSession) -> None:
    """Answers each line of `requests` with a line of `answers` before reading the next.

    Args:
        requests: JSON lines.
        answers: JSON lines.
        session: answers them.
    """
    for line in requests:
        answers.write(session.answer(line).encode() + b"\n")
        answers.flush()
