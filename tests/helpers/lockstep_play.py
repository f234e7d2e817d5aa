"""Plays the same games in two engines, a batch at a time, and compares all after each action.

No tolerance anywhere: complete states (saved ones and dice included), masks, compact observations
and integer reward parts are equal, or the game is shown as text with the first difference.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Protocol

import jax
import numpy as np
from jax_games import GAMES, begin, masks, observations, parts_of, step

from hackmatrix.game.engine import Game
from hackmatrix.game.engine.movement import exit_distances
from hackmatrix.game.engine.state import Ending, Event, Position, State
from hackmatrix.game.engine.text import state_to_text
from hackmatrix.game.jaxgame.conversion import state_to_engine
from hackmatrix.game.rules.actions import ACTION_NAMES, FIRST_PROGRAM, NUM_DIRECTIONS
from hackmatrix.game.rules.board import CELLS, NEIGHBOUR
from hackmatrix.game.rules.enemies import MAX_ENEMIES
from hackmatrix.game.rules.programs import MAX_SAVED_STATES, ProgramId
from hackmatrix.game.rules.rewards import REWARD_PARTS

UNDO = FIRST_PROGRAM + ProgramId.UNDO

Policy = Callable[[random.Random, Game, list[int]], int]


def any_action(rng: random.Random, _: Game, valid: list[int]) -> int:
    """A random valid action; rarely an invalid one."""
    return rng.choice(valid) if rng.random() > 0.002 else rng.randrange(len(ACTION_NAMES))


def to_the_exit(rng: random.Random, game: Game, valid: list[int]) -> int:
    """Mostly the shortest way to the exit."""
    distances = exit_distances(game.state)
    ways = {
        direction: distances[cell]
        for direction in range(NUM_DIRECTIONS)
        if direction in valid
        and (cell := NEIGHBOUR[game.state.player.cell][direction]) is not None
        and distances[cell] is not None
    }
    if not ways or rng.random() < 0.1:
        return any_action(rng, game, valid)
    return min(ways, key=lambda direction: ways[direction] or 0)


def rarest_programs() -> Policy:
    """The program that ran least often so far whenever one can run, a turn now and then."""
    ran: Counter[int] = Counter()

    def policy(rng: random.Random, _: Game, valid: list[int]) -> int:
        programs = [action for action in valid if action >= FIRST_PROGRAM]
        if not programs or rng.random() < 0.15:
            return rng.choice(valid)
        rarest = min(programs, key=lambda action: ran[action])
        ran[rarest] += 1
        return rarest

    return policy


def undo_in_chains() -> Policy:
    """Turns until 4 states are saved, then one UNDO after the other until none is left."""
    undoing: set[int] = set()

    def policy(rng: random.Random, game: Game, valid: list[int]) -> int:
        if len(game.state.saved) == MAX_SAVED_STATES:
            undoing.add(id(game))
        if UNDO in valid and id(game) in undoing:
            return UNDO
        undoing.discard(id(game))
        turns = [action for action in valid if action < FIRST_PROGRAM]
        return rng.choice(turns or valid)

    return policy


class Batch(Protocol):
    """Games under way in an engine under test; those that have ended stay as they are."""

    name: str

    def __init__(self, states: Sequence[State]) -> None: ...

    def states(self) -> list[State]:
        """The games, converted."""

    def masks(self) -> list[int]:
        """The valid actions of each game as bits."""

    def observations(self) -> np.ndarray:
        """uint8[N, RECORD_SIZE]."""

    def step(self, actions: Sequence[int]) -> np.ndarray:
        """Takes an action in each game; int32[N, 15], the parts in units of 0.005."""


class JaxBatch:
    name = "jax"

    def __init__(self, states: Sequence[State]) -> None:
        assert len(states) == GAMES
        self._convert = Conversion()
        self._games = begin(list(states))
        self._seen = observations(self._games)

    def states(self) -> list[State]:
        return self._convert(self._games.game)

    def masks(self) -> list[int]:
        return np.asarray(masks(self._games)).tolist()

    def observations(self) -> np.ndarray:
        return np.asarray(self._seen)

    def step(self, actions: Sequence[int]) -> np.ndarray:
        stepped = step(self._games, np.array(actions))
        self._games, self._seen = stepped.state, stepped.observation
        return parts_of(stepped.info)


def play(
    states: Sequence[State],
    policy: Policy,
    rng: random.Random,
    steps: int,
    engine: type[Batch] = JaxBatch,
) -> Counter[str]:
    """Play games from these states in the Python engine and another; returns what was covered.

    Raises:
        AssertionError: the engines differ.
    """
    games = [Game(state) for state in states]
    covered: Counter[str] = Counter(games=len(games))
    chains = [0] * len(games)
    batch = engine(states)
    for _ in range(steps):
        before = _compared(games, batch)
        if all(game.state.over for game in games):
            break
        chosen = []
        parts = np.zeros((len(games), len(REWARD_PARTS)), np.int32)
        for i, game in enumerate(games):
            valid = game.valid_actions()
            action = policy(rng, game, valid) if valid else rng.randrange(len(ACTION_NAMES))
            chosen.append(action)
            if game.state.over:
                continue
            _count_before(covered, game)
            outcome = game.step(action)
            parts[i] = list(outcome.parts.values())
            _count_after(covered, game, action, parts[i], outcome.stage_completed)
            chains[i] = _chain(covered, chains[i], action)
        made = batch.step(chosen)
        for i in np.nonzero((made != parts).any(axis=1))[0]:
            got = dict(zip(REWARD_PARTS, made[i].tolist(), strict=True))
            action = ACTION_NAMES[chosen[i]]
            raise AssertionError(f"{state_to_text(before[i])}{action}: {parts[i]} but {got}")
    return covered


class Conversion:
    """Games of the JAX engine as states of the Python engine.

    It takes most of the time of lockstep, so what has been converted is kept: saved positions, each
    of which was the game's position before, and games that have ended.
    """

    def __init__(self) -> None:
        self._states: dict[bytes, State] = {}
        self._saved: dict[bytes, Position] = {}

    def __call__(self, games: Any) -> list[State]:
        """A batch of games, each with the leaves that it has on the host."""
        host = jax.tree.map(np.asarray, games)
        rows = [np.uint32(x).reshape(GAMES, -1) for x in jax.tree.leaves(host)]
        words = np.concatenate(rows, axis=1)
        known = [self._states.get(words[i].tobytes()) for i in range(GAMES)]
        states = [
            self._converted(jax.tree.map(lambda x, i=i: x[i], host)) if state is None else state
            for i, state in enumerate(known)
        ]
        self._states = {words[i].tobytes(): state for i, state in enumerate(states)}
        return states

    def _converted(self, game: Any) -> State:
        saved, exit = game.saved, game.exit.tobytes()  # a saved position has the game's exit
        ages = reversed(range(int(saved.count)))
        rows = [saved.rows[(saved.newest - age) % MAX_SAVED_STATES] for age in ages]
        kept = {row.tobytes() + exit: row for row in rows}
        new = {key: row for key, row in kept.items() if key not in self._saved}
        few = replace(
            saved,
            rows=np.array([*new.values(), *saved.rows])[:MAX_SAVED_STATES],
            count=np.int32(len(new)),
            newest=np.int32(len(new) - 1),
        )
        state = state_to_engine(replace(game, saved=few))
        self._saved |= dict(zip(new, state.saved, strict=True))
        state.saved = [self._saved[row.tobytes() + exit] for row in rows]
        return state


def _compared(games: list[Game], batch: Batch) -> list[State]:
    """The states of the batch, which are those of the games."""
    seen, states, bits = batch.observations(), batch.states(), batch.masks()
    for i, game in enumerate(games):
        difference = first_difference(_plain(game.state), _plain(states[i]))
        assert difference is None, f"{_shown(game)}python, then {batch.name}: {difference}"
        mask = sum(1 << action for action in game.valid_actions())
        assert mask == bits[i], f"{_shown(game)}{batch.name}: {mask ^ bits[i]:b}"
        assert game.observation() == seen[i].tobytes(), f"{_shown(game)}{batch.name}"
    return states


def _shown(game: Game) -> str:
    return state_to_text(game.state)


def _plain(state: State) -> State:
    """A state as it is compared: `last` means nothing but for cryptogs; events are not kept."""
    state.events = list[Event]()
    for position in (state, *state.saved):
        for enemy in position.enemies:
            if enemy.type.name != "CRYPTOG":
                enemy.last = enemy.cell
    return state


def first_difference(a: Any, b: Any, path: str = "state") -> str | None:
    """Where two trees of dataclasses and lists part; None if they are equal."""
    if a == b:
        return None
    if is_dataclass(a) and is_dataclass(b):
        pairs = [(f".{f.name}", getattr(a, f.name), getattr(b, f.name)) for f in fields(a)]
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        pairs = [(f"[{i}]", x, y) for i, (x, y) in enumerate(zip(a, b, strict=True))]
    else:
        return f"{path}: {a} / {b}"
    return next((found for name, x, y in pairs if (found := first_difference(x, y, path + name))))


def _count_before(covered: Counter[str], game: Game) -> None:
    state = game.state
    covered[f"stage {state.stage}"] += 1
    covered["20 enemies"] += len(state.enemies) >= 20
    taken = state.blocks() | state.occupied() | {state.player.cell}
    covered["full board"] += len(taken) == CELLS
    due = any(transmission.turns <= 1 for transmission in state.transmissions)
    covered["limit of 32"] += len(state.enemies) == MAX_ENEMIES and due


def _count_after(
    covered: Counter[str], game: Game, action: int, parts: np.ndarray, completed: bool
) -> None:
    state = game.state
    covered["steps"] += 1
    covered[ACTION_NAMES[action]] += state.over != Ending.INVALID_ACTION
    covered["invalid actions"] += state.over == Ending.INVALID_ACTION
    covered["wins"] += state.over == Ending.WON
    covered["deaths"] += state.over == Ending.DIED
    covered["stages laid out"] += completed and not state.over
    covered["100 failed layouts"] += completed and not state.over and not state.blocks()
    for name, part in zip(REWARD_PARTS, parts, strict=True):
        covered[name] += part != 0


def _chain(covered: Counter[str], length: int, action: int) -> int:
    if action != UNDO:
        return 0
    covered[f"UNDO chain of {length + 1}"] += 1
    return length + 1
