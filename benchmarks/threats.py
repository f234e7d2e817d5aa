"""Which networks can learn the hits to expect: they predict them from positions of a good agent.

Each network is asked, by its logits of the four directions, for the hits of the enemy turn after a
step in that direction, which the layout `tactical` works out (`go_hits`). So this shows what a
network can find in the raw observation at all, apart from whether rewards lead it there.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.command import run_command
from hackmatrix.agents import shipped
from hackmatrix.agents.networks import distribution
from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.network import encoded, make_network
from hackmatrix.agents.networks.policy import load_policy
from hackmatrix.core import machine
from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
from hackmatrix.core.options import option
from hackmatrix.environments.registry import make_environment
from hackmatrix.game.foresight.jax_layout import tactical_numbers
from hackmatrix.game.rules.actions import NUM_DIRECTIONS
from hackmatrix.game.rules.tactical import START
from hackmatrix.research.bench.options import Options

GAMES = 512
LATER = 256  # actions of each game before the first position, so that all stages are among them
APART = 4  # actions from one position of a game to the next
MINIBATCH = 512
NETWORKS = {
    "mlp, full": ("full", NetworkConfig("mlp")),
    "cells, full": ("full", NetworkConfig("cells")),
    "mlp, tactical": ("tactical", NetworkConfig("mlp")),
}


@dataclass(frozen=True)
class ThreatsOptions(Options):
    """The options of the command."""

    positions: int = option(65_536, "positions to learn from", at_least=GAMES)
    epochs: int = option(4, "how often each is learned from", at_least=1)


@dataclass(frozen=True)
class Threats:
    """The variance of the hits that is explained, after each epoch, and what that took."""

    found: dict[str, list[dict[str, float]]]

    def as_dict(self) -> dict[str, Any]:
        """All of it."""
        return self.found

    def text(self) -> str:
        """A table."""
        rows = ["| network, observation | samples | explained | processor seconds |"]
        rows.append("|---|---:|---:|---:|")
        for name, epochs in self.found.items():
            for each in epochs:
                samples, seconds = f"{each['samples']:,.0f}", f"{each['seconds']:.0f}"
                rows.append(f"| {name} | {samples} | {each['explained']:.2f} | {seconds} |")
        return "\n".join([*rows, machine.line(machine.machine(), machine.versions())])


def measure(options: ThreatsOptions) -> Threats:
    """Plays for positions, then trains each network on them and tests it on other games."""
    enable_compilation_cache()
    records = positions(-(-options.positions // GAMES))
    hits = jax.jit(tactical_numbers)(records.reshape(-1, records.shape[-1]))
    hits = hits[:, START["go_hits"] :][:, :NUM_DIRECTIONS].astype(jnp.float32)
    hits = hits.reshape(*records.shape[:2], NUM_DIRECTIONS)
    data = {"records": records, "hits": hits}
    test = {name: x[:, : GAMES // 8].reshape(-1, x.shape[-1]) for name, x in data.items()}
    train = {name: x[:, GAMES // 8 :].reshape(-1, x.shape[-1]) for name, x in data.items()}
    return Threats(
        {
            name: learned(layout, config, train, test, options.epochs)
            for name, (layout, config) in NETWORKS.items()
        }
    )


def positions(count: int) -> jax.Array:
    """uint8[count, GAMES, RECORD_SIZE]: what the agent of the package sees."""
    policy = load_policy(shipped.PARAMS)
    env, network = policy.make()

    def act(carry: Any, key: jax.Array) -> tuple[Any, None]:
        observations, states = carry
        logits, _, _ = network(policy.params, encoded(network, observations))
        masks = jax.vmap(env.action_mask)(states)
        log_probs = distribution.log_probabilities(logits, masks)
        actions = distribution.sample(log_probs, masks, jax.random.uniform(key, (GAMES,)))
        observations, states, *_ = jax.vmap(env.step, (None, 0, 0))(key, states, actions)
        return (observations, states), None

    def several(carry: Any, keys: jax.Array) -> tuple[Any, jax.Array]:
        carry, _ = jax.lax.scan(act, carry, keys)
        return carry, carry[0]

    games, earlier, later = jax.random.split(jax.random.key(0), 3)
    start = jax.vmap(env.reset)(jax.random.split(games, GAMES))
    start, _ = jax.jit(several)(start, jax.random.split(earlier, LATER))
    keys = jax.random.split(later, (count, APART))
    _, records = jax.jit(lambda start: jax.lax.scan(several, start, keys))(start)
    return records


def learned(
    layout: str, config: NetworkConfig, train: dict[str, Any], test: dict[str, Any], epochs: int
) -> list[dict[str, float]]:
    """A row for each epoch."""
    env = make_environment("HackMatrix-v1", layout)
    network = make_network(env, config)
    params = network.init(jax.random.key(0))
    adam = optax.adam(1e-3)
    count = len(train["hits"]) // MINIBATCH * MINIBATCH

    def error(params: Any, records: jax.Array, hits: jax.Array) -> jax.Array:
        logits, _, _ = network(params, encoded(network, records))
        return jnp.mean((logits[:, :NUM_DIRECTIONS] - hits) ** 2)

    def epoch(carry: Any, key: jax.Array, data: dict[str, Any]) -> Any:
        def step(carry: Any, indices: jax.Array) -> tuple[Any, None]:
            params, state = carry
            grads = jax.grad(error)(params, data["records"][indices], data["hits"][indices])
            updates, state = adam.update(grads, state)
            return (optax.apply_updates(params, updates), state), None

        order = jax.random.permutation(key, len(data["hits"]))[:count]
        return jax.lax.scan(step, carry, order.reshape(-1, MINIBATCH))[0]

    carry = params, adam.init(params)
    run = jax.jit(epoch).lower(carry, jax.random.key(0), train).compile()
    judge = jax.jit(error)
    rows, seconds = [], 0.0
    for number in range(epochs):
        start = time.process_time()
        carry = jax.block_until_ready(run(carry, jax.random.key(number), train))
        seconds += time.process_time() - start
        left = float(judge(carry[0], test["records"], test["hits"]))
        variance = float(np.var(np.asarray(test["hits"]), axis=0).mean())
        rows.append(
            {
                "samples": float(count * (number + 1)),
                "explained": 1 - left / variance,
                "seconds": seconds,
            }
        )
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "threats",
        measure,
        ThreatsOptions,
        argv,
        purpose="Shows which networks can learn the hits to expect from positions.",
        example="--positions 16384 --epochs 2",
    )


if __name__ == "__main__":
    sys.exit(main())
