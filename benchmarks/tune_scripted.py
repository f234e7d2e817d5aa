"""Tunes the weights of the scripted player by playing: a cross-entropy search.

Each generation draws candidates around a mean, plays the same games of a training stream with all
of them, and moves mean and spread to the best (Rubinstein 1999, "The Cross-Entropy Method for
Combinatorial and Continuous Optimization"). Evaluation streams are never played.

It goes on from the file if it exists, else from the player's weights, which are in
`hackmatrix/agents/scripted/weights.py`.
"""

import json
import os
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, NamedTuple

from benchmarks.command import run_command
from hackmatrix.agents.scripted.scripted import best_action
from hackmatrix.agents.scripted.weights import TUNED, Weights
from hackmatrix.core.options import option
from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.enemy_turn import enemy_turn
from hackmatrix.game.engine.game import act, complete_stage, ends_turn, new_game
from hackmatrix.game.engine.state import Ending
from hackmatrix.game.foresight.seen import Seen
from hackmatrix.research.bench.options import Options

CANDIDATES, ELITE = 24, 7  # in a generation
FIRST_STREAM = 1_000  # of the games of the first generation; each has its own
LONGEST = 1_200  # actions
SPREAD = 0.22  # at the start, of each weight's size
KEPT = 0.3  # of the mean, from one generation to the next
WINNING = 2.0  # counts as that many stages

Vector = list[float]


class Search(NamedTuple):
    """Where the search stands."""

    generation: int
    mean: Vector
    spread: Vector

    def as_dict(self) -> dict[str, Any]:
        """The fields."""
        return self._asdict()

    def text(self) -> str:
        """The weights at the mean."""
        return str(weights_of(self.mean))


@dataclass(frozen=True)
class TuneOptions(Options):
    """The command's options."""

    file: Path = option(Path("weights.json"), "where the search stands, as JSON; it goes on there")
    generations: int = option(20, "generations to search", at_least=1)
    games: int = option(40, "games that each candidate of a generation plays", at_least=1)


def measure(options: TuneOptions) -> Search:
    """Searches, and keeps the file up to date."""
    search = _start(options.file)
    with get_context("spawn").Pool(os.cpu_count()) as pool:
        for _ in range(options.generations):
            began = time.perf_counter()
            search, scores = generation(search, pool, options.games)
            options.file.write_text(json.dumps(search.as_dict()))
            best = fmean(sorted(scores)[-ELITE:])
            print(
                f"generation {search.generation}: mean candidate {scores[0]:.2f}, all "
                f"{fmean(scores):.2f}, best {best:.2f}, {time.perf_counter() - began:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    return search


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "tune_scripted",
        measure,
        TuneOptions,
        argv,
        purpose="Searches weights for the scripted player by the cross-entropy method.",
        example="--file weights.json --generations 5",
    )


def _start(file: Path) -> Search:
    if file.exists():
        return Search(**json.loads(file.read_text()))
    mean = vector_of(TUNED)
    return Search(0, mean, [SPREAD * abs(weight) + 0.1 for weight in mean])


def generation(search: Search, pool: Pool, games: int) -> tuple[Search, list[float]]:
    """The search after one more generation, and the scores of its candidates, the mean first."""
    rng = random.Random(search.generation)
    drawn = [list(map(rng.gauss, search.mean, search.spread)) for _ in range(CANDIDATES - 1)]
    candidates = [search.mean, *drawn]
    stream = FIRST_STREAM + search.generation
    jobs = [(weights_of(each), stream, game) for game in range(games) for each in candidates]
    results = pool.starmap(score, jobs, chunksize=8)
    scores = [fmean(results[place::CANDIDATES]) for place in range(CANDIDATES)]
    best = sorted(range(CANDIDATES), key=lambda place: -scores[place])[:ELITE]
    columns = list(zip(*(candidates[place] for place in best), strict=True))
    mean = [
        KEPT * old + (1 - KEPT) * fmean(column)
        for old, column in zip(search.mean, columns, strict=True)
    ]
    spread = [
        max(0.4 * old + 0.6 * pstdev(column), 0.03 * abs(weight) + 0.01)
        for old, column, weight in zip(search.spread, columns, mean, strict=True)
    ]
    return Search(search.generation + 1, mean, spread), scores


def vector_of(weights: Weights) -> Vector:
    """The weights as one list."""
    *numbers, programs = weights
    return [*numbers, *programs]


def weights_of(vector: Vector) -> Weights:
    """The weights of a list, none of them negative."""
    positive = [max(weight, 0.0) for weight in vector]
    names = Weights._fields[:-1]
    numbers = dict(zip(names, positive, strict=False))
    numbers |= {"deep": min(numbers["deep"], 1.0), "enough": max(numbers["enough"], 1.0)}
    return Weights(**numbers, programs=tuple(positive[len(names) :]))


def score(weights: Weights, stream: int, episode: int) -> float:
    """The stages that the player clears in a game, more if it wins; without rewards, for speed."""
    state = new_game(Dice(stream, episode))
    for _ in range(LONGEST):
        action = best_action(Seen.of_state(state), weights)
        state.events = []
        state.dice.clock += 1
        _, _, completed = act(state, action)
        if completed:
            complete_stage(state)
        elif ends_turn(action):
            enemy_turn(state)
        if state.over == Ending.WON:
            return state.stage + WINNING
        if state.player.hp == 0:
            break
    return state.stage - 1


if __name__ == "__main__":
    sys.exit(main())
