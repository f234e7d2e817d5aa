"""What moves cost and what may come, by the packaged agent; nothing that the player can't see.

Games go on from made-up ones that look the same to the player (`game/foresight/imagination.py`).
"""

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hackmatrix.agents.roster.judge import Judge, Odds
from hackmatrix.agents.roster.opinion import Opinion, opinion
from hackmatrix.game.engine.actions import is_valid, valid_actions
from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.events import EventKind
from hackmatrix.game.engine.game import Outcome, new_game, step
from hackmatrix.game.engine.observation import observe
from hackmatrix.game.engine.replay import GameId
from hackmatrix.game.engine.state import Ending, State
from hackmatrix.game.engine.undo import copy_state
from hackmatrix.game.foresight.imagination import imagine
from hackmatrix.game.rules.actions import NUM_ACTIONS

SAMPLES = 16  # made-up games over which a move is judged
TRAIL = 12  # actions of a future that is drawn
MOST_STEPS = 2_000  # after which a game counts as truncated, as in `hackmatrix evaluate`


class Move(NamedTuple):
    """A move that was made, beside the agent's."""

    best: int  # what the agent would have done
    cost: float  # by how much smaller the chance of winning is after the move; 0 if it is not


class Future(NamedTuple):
    """How a game may go on."""

    trail: list[int]  # the player's cells, the first the one of now
    end: str | None  # `won`, `died`, `stage` (completed), or None where it goes on


def odds_at(judge: Judge, state: State) -> Odds:
    """The odds of a position, or how the game ended."""
    if state.over:
        return Odds.of_end(state.stage, won=state.over is Ending.WON)
    return judge.odds(observe(state))


def review_move(judge: Judge, state: State, action: int, seed: str) -> Move:
    """A move at a position, judged by the mean of the odds after it in made-up games."""
    best = view_of(judge, state).best
    if action == best:
        return Move(best, 0.0)
    rng = random.Random(seed)
    games = [imagine(state, rng) for _ in range(SAMPLES)]
    loss = worth(judge, games, best) - worth(judge, games, action)
    return Move(best, max(0.0, loss))


def worth(judge: Judge, games: Sequence[State], action: int) -> float:
    """The mean chance of winning after an action; the dice are the same for every action."""
    total = 0.0
    for game in map(copy_state, games):
        _take(game, action)
        total += odds_at(judge, game).win
    return total / len(games)


def _take(game: State, action: int) -> None:
    """Takes an action that is valid in the true game; a made-up one may lack what it needs."""
    if is_valid(game, action):
        step(game, action)


def future(judge: Judge, state: State, action: int, seed: str) -> Future:
    """The next actions after `action` as the agent may take them, to the end of the stage."""
    trail, end = [state.player.cell], None
    for game in _play(judge, state, action, seed, TRAIL):
        end = game.over.value if game.over else "stage" if game.stage > state.stage else None
        if end == "stage":
            break
        trail.append(game.player.cell)
    return Future(trail, end)


def play_out(judge: Judge, state: State, seeds: Sequence[str]) -> list[tuple[bool, int]]:
    """Whether the agent wins games that go on from here, and how many stages it clears in each."""
    if judge.play_together is not None and not state.over:
        rngs = [random.Random(seed) for seed in seeds]
        games = [imagine(state, rng) for rng in rngs]
        ends = judge.play_together(games, rngs, MOST_STEPS)
    else:
        ends = [_play_to_end(judge, state, seed) for seed in seeds]
    return [(won, int(Odds.of_end(stage, won=won).stages)) for won, stage in ends]


def _play_to_end(judge: Judge, state: State, seed: str) -> tuple[bool, int]:
    game = state
    for game in _play(judge, state, None, seed, MOST_STEPS):  # noqa: B007
        pass
    return game.over is Ending.WON, game.stage


def _play(judge: Judge, state: State, action: int | None, seed: str, most: int) -> Iterator[State]:
    """The position after each action: the given one, if any, then what the agent samples."""
    rng = random.Random(seed)
    game = imagine(state, rng)
    for _ in range(most):
        if game.over:
            return
        if action is None:
            probabilities = view_of(judge, game).probabilities
            action = rng.choices(range(NUM_ACTIONS), probabilities)[0]
        _take(game, action)
        action = None
        yield game


def view_of(judge: Judge, state: State) -> Opinion:
    """What the packaged agent thinks of a position."""
    valid = set(valid_actions(state))
    return opinion(judge.agent, observe(state), [a in valid for a in range(NUM_ACTIONS)])


class Ghost(NamedTuple):
    """A game as the packaged agent plays it."""

    actions: list[int]
    path: list[tuple[int, int]]  # stage and player's cell at the start and after each action
    won: bool
    score: int
    hits: int  # that it took


def ghost(judge: Judge, game: GameId) -> Ghost:
    """The game as the packaged agent plays it, to its end."""
    state, actions, hits = new_game(Dice(*game)), list[int](), 0
    path = [(state.stage, state.player.cell)]
    while not state.over and len(actions) < MOST_STEPS:
        actions.append(view_of(judge, state).sample(game, len(actions)))
        hits += _hits_in(step(state, actions[-1]))
        path.append((state.stage, state.player.cell))
    return Ghost(actions, path, state.over is Ending.WON, state.player.score, hits)


def hits_taken(game: GameId, actions: Sequence[int]) -> int:
    """How many hits the player takes in a game with these actions."""
    state = new_game(Dice(*game))
    return sum(_hits_in(step(state, action)) for action in actions)


def _hits_in(outcome: Outcome) -> int:
    return sum(event.kind is EventKind.HIT for event in outcome.events)
