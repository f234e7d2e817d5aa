"""Puzzles: positions in which one action alone keeps the chance of winning.

`hackmatrix puzzles` finds them in games of the packaged agent. What an action is worth is the mean
of the odds after it, over made-up games that look the same to the player (`review.py`).
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

from hackmatrix.agents.roster.built_in import BUILT_IN
from hackmatrix.agents.roster.judge import Judge
from hackmatrix.core.errors import UserError
from hackmatrix.game.engine.actions import valid_actions
from hackmatrix.game.engine.replay import GameId
from hackmatrix.game.engine.state import State
from hackmatrix.game.foresight.imagination import imagine
from hackmatrix.game.rules.actions import ACTION_NAMES, FIRST_PROGRAM, NUM_ACTIONS
from hackmatrix.ui.session.review import odds_at, view_of, worth
from hackmatrix.ui.session.variations import Tree

PACKAGED = Path(__file__).with_name("puzzles.json")
FORMAT = "hackmatrix-puzzles"
_LOSS = 0.15  # of winning, at least, with any other action
_LEAST = 0.4  # chance of winning with the solution
_GLANCE, _LOOK = 4, 64  # made-up games for a first and for the final judgement
_MOST_ACTIONS = 400  # of a game in which puzzles are looked for
_EASIEST, _HARDER = 800, 300  # ratings: of one that everybody solves, for each that does not


class Puzzle(NamedTuple):
    """A position, what to do there, and what everything else costs."""

    game: GameId
    actions: tuple[int, ...]  # which lead to the position
    worth: dict[int, float]  # of each valid action: the chance of winning after it
    rating: int  # as of a chess player: who has it solves half of such puzzles

    @property
    def solution(self) -> int:
        """The one action that keeps the chance of winning."""
        return max(self.worth, key=self.worth.__getitem__)

    def as_json(self) -> dict[str, Any]:
        """A puzzle of a file."""
        worth = {str(action): round(chance, 3) for action, chance in self.worth.items()}
        return {
            "seed": str(self.game),
            "actions": list(self.actions),
            "worth": worth,
            "rating": self.rating,
        }

    @classmethod
    def of_json(cls, puzzle: dict[str, Any]) -> Self:
        """Reads it."""
        worth = {int(action): float(chance) for action, chance in puzzle["worth"].items()}
        game, actions = GameId.read(puzzle["seed"]), tuple(map(int, puzzle["actions"]))
        return cls(game, actions, worth, int(puzzle["rating"]))

    def progress(self, index: int, of: int, action: int | None) -> dict[str, Any]:
        """What the page shows, before and after an action."""
        facts: dict[str, Any] = {"kind": "puzzle", "number": index, "of": of}
        facts |= {"title": f"Puzzle, rated {self.rating}", "rating": self.rating, "outcome": None}
        if action is None:
            return facts | {"text": "One action alone keeps your chances. Which?"}
        solution = self.solution
        chosen, chance = self.worth[action], self.worth[solution]
        if action == solution:
            others = [other for a, other in self.worth.items() if a != solution]
            text = f"Right: {chance:.0%} of such games are won, with any other at most "
            return facts | {"outcome": "done", "text": f"{text}{max(others):.0%}."}
        text = f"No: {ACTION_NAMES[solution]} wins {chance:.0%} of such games, yours {chosen:.0%}."
        return facts | {"outcome": "lost", "text": text}


def load(path: Path = PACKAGED) -> list[Puzzle]:
    """The puzzles of a file, the easiest first.

    Raises:
        UserError: it is not such a file.
    """
    try:
        content = json.loads(path.read_text())
        if content["format"] != FORMAT:
            raise ValueError
        puzzles = [Puzzle.of_json(puzzle) for puzzle in content["puzzles"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise UserError(
            f"{path}: no file of puzzles: `hackmatrix puzzles -o FILE` makes one"
        ) from None
    return sorted(puzzles, key=lambda puzzle: puzzle.rating)


def mine(judge: Judge, game: GameId) -> Iterator[Puzzle]:
    """The puzzles of a game that the packaged agent plays, at most one of each stage."""
    tree, at, stage = Tree(game), 0, 0
    for _ in range(_MOST_ACTIONS):
        state = tree.state(at)
        if state.over:
            return
        if state.stage > stage:
            found = _puzzle(judge, game, tree.line(at), state)
            if found is not None:
                stage = state.stage
                yield found
        action = view_of(judge, state).sample(game, tree.nodes[at].step)
        at = tree.play(at, action, "").index


def _puzzle(judge: Judge, game: GameId, actions: tuple[int, ...], state: State) -> Puzzle | None:
    """The puzzle of a position, if it is one."""
    valid = valid_actions(state)
    if len(valid) < 3 or odds_at(judge, state).win < _LEAST / 2:
        return None
    chances: dict[int, float] = {}
    for count in (_GLANCE, _LOOK):
        rng = random.Random(f"{game} {len(actions)} {count}")
        games = [imagine(state, rng) for _ in range(count)]
        chances = {action: worth(judge, games, action) for action in valid}
        best, second = sorted(chances.values(), reverse=True)[:2]
        if best - second < _LOSS or best < _LEAST:
            return None
    return Puzzle(game, actions, chances, _rating(judge, state, chances))


def _rating(judge: Judge, state: State, chances: dict[int, float]) -> int:
    """It is harder if a walker to the exit, a script and the agent fail, and for a program."""
    solution = max(chances, key=chances.__getitem__)
    missed = sum(BUILT_IN[name].choose(state, ()) != solution for name in ("exit", "scripted"))
    unsure = 1 - view_of(judge, state).probabilities[solution]
    choices = len(chances) / NUM_ACTIONS
    hard = missed + unsure + choices + (solution >= FIRST_PROGRAM)
    return round(_EASIEST + _HARDER * hard)
