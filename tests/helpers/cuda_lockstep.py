"""Lockstep of the kernels for NVIDIA's GPUs with the native engine on CPUs: every result of a step.

`python tests/helpers/cuda_lockstep.py --games 4096 --steps 500` runs on JAX's GPU; with `--on-cpu
FOLDER`, which `cuda_on_cpu.py` has built, the kernels run on this processor.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from cuda_on_cpu import install

from hackmatrix.agents.scripted.weights import TUNED
from hackmatrix.core.processes import num_cores
from hackmatrix.game.native import batch, cuda
from hackmatrix.game.native.__main__ import random_actions
from hackmatrix.game.native.layout import Games

Array = np.ndarray[Any, Any]
Choose = Callable[[Array, Array, np.random.Generator], Array]

_WEIGHTS = np.hstack(TUNED)


def play(games: int, steps: int, seed: int, choose: Choose) -> Counter[str]:
    """Plays games in both; counts steps, episodes, wins, and games that differ, by what differs."""
    from hackmatrix.game.native import xla

    rng = np.random.default_rng(seed)
    nothing = np.zeros(games, np.uint32)
    streams = nothing + np.arange(seed, seed + games, dtype=np.uint32)
    counts: Counter[str] = Counter()

    def compare(name: str, got: Any, wanted: Any) -> None:
        pairs = zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True)
        rows = [
            (np.asarray(one) != np.asarray(other)).reshape(games, -1).any(axis=1)
            for one, other in pairs
        ]
        if different := int(np.any(rows, axis=0).sum()):
            counts[f"different {name}"] += different

    step = jax.jit(
        xla.step, static_argnames=("max_episode_steps", "progress"), donate_argnums=(0, 1, 2)
    )
    state_of, games_of = jax.jit(xla.state_of), jax.jit(xla.games_of)
    tactical, imagined, observe = map(jax.jit, (xla.tactical_numbers, xla.imagine, xla.observe))
    expected = batch.reset(streams, nothing)
    record, mask = batch.observe(expected)
    played = jax.jit(xla.reset)(streams, nothing)
    compare("reset", (observe(played), played.mask), (record, mask))
    totals = [jnp.zeros(games, jnp.int32)] * 2
    for number in range(1, steps + 1):
        actions = choose(record, mask, rng)
        progress = number % 2 == 0
        stepped = step(
            played, *map(jnp.copy, totals), actions, max_episode_steps=300, progress=progress
        )
        reward = "progress" if progress else "game"
        made = batch.step(expected, actions, max_episode_steps=300, reward=reward)
        played, totals = stepped.games, [stepped.episode_return, stepped.episode_length]
        compare("step", stepped.step, made)
        record, mask = made.observation, made.mask
        compare("tactical", tactical(record), batch.tactical_numbers(record))
        counts.update(steps=games, episodes=int(made.episode_done.sum()), wins=int(made.won.sum()))
        if number % 25 == 0:
            state = state_of(played)
            compare("state", state, _on_cpu(state_of, _in_jax(expected, mask)))
            compare("state there and back", state_of(games_of(state)), state)
            memory = np.stack([np.roll(record, i, axis=0) for i in range(4)], axis=1)
            words = rng.integers(2**32, size=(2, games), dtype=np.uint32)
            seen = (record, memory, (streams % 5).astype(np.int32), *words)
            made_up, wanted = imagined(*seen), _on_cpu(imagined, *seen)
            compare("imagined", state_of(made_up), _on_cpu(state_of, wanted))
            compare("mask of imagined", made_up.mask, wanted.mask)
    return counts


def _random(record: Array, mask: Array, rng: np.random.Generator) -> Array:
    del record
    return random_actions(mask, rng)


def _scripted(record: Array, mask: Array, rng: np.random.Generator) -> Array:
    del mask, rng
    return batch.scripted_actions(record, _WEIGHTS, threads=num_cores())


def _in_jax(games: Games, mask: np.ndarray) -> Any:
    from hackmatrix.game.native.xla import XlaGames

    rows = (
        structs.view(np.uint8).reshape(len(structs), -1) for structs in (games.states, games.saved)
    )
    return XlaGames(*rows, mask)


def _on_cpu(function: Any, *arguments: Any) -> Any:
    device = jax.devices("cpu")[0]
    with jax.default_device(device):
        return function(*jax.device_put(arguments, device))


def main() -> int:
    """Plays, prints what was counted, and exits with 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scripted", action="store_true", help="the scripted player plays")
    parser.add_argument("--on-cpu", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    if options.on_cpu:
        install(options.on_cpu)
    else:
        cuda.register()
    choose = _scripted if options.scripted else _random
    counts = play(options.games, options.steps, options.seed, choose)
    print(dict(counts))
    return int(any(name.startswith("different") for name in counts))


if __name__ == "__main__":
    sys.exit(main())
