"""Which game it is, and replays: a game is a seed and a list of actions."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

from hackmatrix.core.errors import UserError
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.state import State
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.chance import EVALUATION_STREAM, MAX_WORD

FORMAT = "hackmatrix-replay"
VERSION = 1
LONGEST = 5_000  # actions of a replay

_SEED = re.compile(r"(e?)(\d{1,10})(?:\.(\d{1,10}))?")


class GameId(NamedTuple):
    """A game of HackMatrix. In text: `7`, `7.3` for episode 3, `e0.3` in an evaluation stream."""

    stream: int
    episode: int = 0

    @classmethod
    def read(cls, text: str) -> Self:
        """Reads the text form.

        Raises:
            UserError: it is no game.
        """
        match = _SEED.fullmatch(text.strip())
        if match is not None:
            first = EVALUATION_STREAM if match[1] else 0
            stream, episode = first + int(match[2]), int(match[3] or 0)
            if max(stream, episode) <= MAX_WORD:
                return cls(stream, episode)
        raise UserError(
            f"a seed is a number up to {MAX_WORD}, such as 7, with an episode 7.3, "
            f"or a game of evaluations e0.3; got {text!r:.60}"
        )

    def __str__(self) -> str:
        is_evaluation = self.stream >= EVALUATION_STREAM
        seed = f"e{self.stream - EVALUATION_STREAM}" if is_evaluation else str(self.stream)
        return f"{seed}.{self.episode}" if self.episode or is_evaluation else seed


class Replay(NamedTuple):
    """A whole game."""

    game: GameId
    actions: tuple[int, ...]

    def as_json(self) -> dict[str, Any]:
        """The content of a replay file."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "seed": str(self.game),
            "actions": list(self.actions),
        }

    @classmethod
    def of_json(cls, data: Any) -> Self:
        """Reads the content of a replay file and checks that the game can be played so.

        Raises:
            UserError: it is something else, or an action is not valid where it is taken.
        """
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise UserError(f"not a replay: it must be an object with format {FORMAT!r}")
        if data.get("version") != VERSION:
            raise UserError(f"this replay has version {data.get('version')!r:.20}, not {VERSION}")
        seed, actions = data.get("seed"), data.get("actions")
        if not isinstance(seed, str):
            raise UserError(f"seed: expected text, got {seed!r:.60}")
        if not isinstance(actions, list) or len(actions) > LONGEST:
            raise UserError(f"actions: expected a list of at most {LONGEST} numbers")
        if not all(type(action) is int for action in actions):
            raise UserError(f"actions: expected numbers 0..{NUM_ACTIONS - 1}")
        replay = cls(GameId.read(seed), tuple(actions))
        replay.check()
        return replay

    def states(self) -> Iterator[State]:
        """Its states, that before the first action included; each is valid until the next."""
        game = Game.new(*self.game)
        yield game.state
        for action in self.actions:
            game.step(action)
            yield game.state

    def check(self) -> None:
        """Raises `UserError` if one of the actions is not valid where it is taken."""
        game = Game.new(*self.game)
        for step, action in enumerate(self.actions):
            if action not in game.valid_actions():
                raise UserError(f"actions: number {step} ({action}) is not valid there")
            game.step(action)


def load_replay(path: Path) -> Replay:
    """Reads a replay file.

    Raises:
        UserError: it is missing, or is no replay.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: is no replay, or a damaged one ({error!s:.80})") from None
    try:
        return Replay.of_json(data)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
