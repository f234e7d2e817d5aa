"""Speed of random play in the native engine: `python -m hackmatrix.game.native`.

Steps a second, masks and observations included, the choice of actions not; and steps in a second
of the processor's time, which says more on a machine that has other work.
"""

import argparse
import sys
import time

import numpy as np

from hackmatrix.game.native import available
from hackmatrix.game.rules.actions import NUM_ACTIONS


def random_actions(masks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A valid action of each game, all equally likely."""
    allowed = masks[:, None] >> np.arange(NUM_ACTIONS, dtype=np.uint32) & 1
    scores: np.ndarray = rng.random(allowed.shape, np.float32) * allowed
    return scores.argmax(axis=1).astype(np.int32)


def speed(games: int, steps: int, threads: int) -> tuple[float, float]:
    """Steps a second of random play, and steps in a second of the processor's time."""
    from hackmatrix.game.native import batch
    from hackmatrix.game.native.layout import empty_step

    rng = np.random.default_rng(0)
    words = np.arange(games, dtype=np.uint32)
    played = batch.reset(words, np.zeros_like(words), threads=threads)
    out = empty_step(games)
    out.mask[:] = batch.observe(played, threads=threads)[1]
    passed = np.zeros(2)
    for _ in range(steps):
        actions = random_actions(out.mask, rng)
        start = _clocks()
        batch.step(played, actions, out=out, threads=threads)
        passed += _clocks() - start
    by_clock, by_processor = games * steps / passed
    return by_clock, by_processor


def _clocks() -> np.ndarray:
    return np.array([time.perf_counter(), time.process_time()])


def main() -> int:
    """Measures with the number of games, steps and threads asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if not available:
        print("the native engine was left out: see docs/native-engine.md", file=sys.stderr)
        return 2
    by_clock, by_processor = speed(**vars(options))
    print(f"{by_clock:,.0f} steps/s, {by_processor:,.0f} in a second of the processor's time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
