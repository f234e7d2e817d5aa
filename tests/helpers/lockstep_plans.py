"""Plans of lockstep games: starts and policies that together reach every rule."""

import random
from collections import Counter
from collections.abc import Callable

from lockstep_play import (
    GAMES,
    Batch,
    JaxBatch,
    Policy,
    any_action,
    play,
    rarest_programs,
    to_the_exit,
    undo_in_chains,
)
from lockstep_starts import full, new, next_to_the_exit, no_layout, quiet, rich

from hackmatrix.game.engine.state import State
from hackmatrix.game.rules.actions import ACTION_NAMES
from hackmatrix.game.rules.rewards import REWARD_PARTS

Start = Callable[[random.Random], State]

# start, policy, most steps a game, batches in the short run and in the full one
PLANS: list[tuple[Start, Policy, int, int, int]] = [
    (new, any_action, 100, 1, 4),
    (new, to_the_exit, 100, 0, 5),
    (rich, any_action, 15, 0, 4),
    (rich, rarest_programs(), 30, 1, 16),
    (quiet, undo_in_chains(), 30, 1, 3),
    (next_to_the_exit, to_the_exit, 6, 0, 3),
    (no_layout, to_the_exit, 2, 0, 1),
    (full, any_action, 5, 0, 1),
]


def run(full_run: bool, engine: type[Batch] = JaxBatch) -> Counter[str]:
    """All plans, the same games each time; in the short run fewer steps of fewer games."""
    covered: Counter[str] = Counter()
    for number, (start, policy, steps, quick, whole) in enumerate(PLANS):
        rng = random.Random(number)
        most = steps if full_run else max(steps // 4, 12)
        for _ in range(whole if full_run else quick):
            covered += play([start(rng) for _ in range(GAMES)], policy, rng, most, engine)
    return covered


def check_coverage(covered: Counter[str]) -> None:
    """Whether the full run has met everything often enough."""
    wanted = {"games": 3000, "wins": 50, "20 enemies": 100, "full board": 100, "limit of 32": 100}
    wanted |= {"100 failed layouts": 100} | {f"UNDO chain of {n}": 100 for n in (2, 3, 4)}
    wanted |= {f"stage {stage}": 100 for stage in range(1, 9)}
    wanted |= dict.fromkeys(REWARD_PARTS, 100)
    wanted |= dict.fromkeys(ACTION_NAMES, 1000)
    print("\n".join(f"{name:24}{covered[name]:9}" for name in [*wanted, "steps", "deaths"]))
    short = {name: covered[name] for name, number in wanted.items() if covered[name] < number}
    assert not short
