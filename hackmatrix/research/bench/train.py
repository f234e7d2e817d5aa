"""Measures training steps per second, and the limit set by the network's matrix products."""

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.core import machine
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.observation import FEATURE_SIZE
from hackmatrix.learning.reporting.metrics import summarise
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.trainer.trainer import Trainer
from hackmatrix.research.bench.options import BenchTrainOptions, train_config

Array = jax.Array

_PRODUCT = (8192, 1545, 256)  # matrix product that measures the machine's speed: [a, b] x [b, c]
_PRODUCTS = 10  # number of products timed after each update
_SCALARS = ("total_loss", "pg_loss", "vf_loss", "entropy", "mean_episode_length")


class Training(NamedTuple):
    """Steps per second, and the rate that the network's matrix products would allow."""

    config: TrainConfig
    compile_seconds: float  # tracing, compiling and the first update
    rates: list[float]  # steps/s of each update
    product_rates: list[float]  # GFLOP/s of the product after each update
    scalars: dict[str, float | None]  # metrics of the timed updates

    @property
    def limit(self) -> float:
        """Steps/s if only matrix products took time, at the rate of the timed product."""
        return statistics.median(self.product_rates) * 1e3 / megaflops_per_step(self.config)

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        learning, network = self.config.learning, self.config.network
        median = statistics.median(self.rates)
        features = FEATURE_SIZE[self.config.environment.observation]
        return {
            "steps_per_second": median,
            "num_envs": learning.num_envs,
            "num_steps": learning.num_steps,
            "epochs": learning.update_epochs,
            "minibatches": learning.num_minibatches,
            "network": [features, *[network.hidden_dim] * network.num_layers],
            "dtype": network.dtype,
            "repeats": len(self.rates),
            "median": median,
            "min": min(self.rates),
            "max": max(self.rates),
            "compile_seconds": self.compile_seconds,
            "product_gflops": statistics.median(self.product_rates),
            "megaflops_per_step": megaflops_per_step(self.config),
            "limit": self.limit,
            "fraction_of_limit": median / self.limit,
            **self.scalars,
            **machine.machine(),
            "versions": machine.versions(),
        }

    def text(self) -> str:
        """The figures as text."""
        it = self.as_dict()
        layers = "-".join(map(str, it["network"]))
        lines = [
            f"{it['median']:,.0f} training steps/s (median of {it['repeats']}; {it['min']:,.0f} to "
            f"{it['max']:,.0f}), {it['num_envs']} x {it['num_steps']}, network {layers}, "
            f"{it['dtype']}, {it['epochs']} epochs of {it['minibatches']} minibatches",
            f"limit of the products: {it['limit']:,.0f} steps/s ({it['megaflops_per_step']:.2f} "
            f"MFLOP a step at {it['product_gflops']:,.0f} GFLOP/s); reached "
            f"{it['fraction_of_limit']:.0%} of it",
            f"first update after {it['compile_seconds']:.1f} s; "
            + ", ".join(f"{name} {_format(value)}" for name, value in self.scalars.items()),
            f"on {it['device']}, jax {it['versions']['jax']}",
        ]
        return "\n".join(lines)


def _format(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def megaflops_per_step(config: TrainConfig) -> float:
    """Millions of floating-point operations of the network's matrix products for each step.

    A multiplication with its addition counts as 2. The rollout takes one forward pass; each epoch
    takes a forward pass and the gradients with respect to the params, and to the inputs of all
    layers but the first.
    """
    width, layers = config.network.hidden_dim, config.network.num_layers
    first = FEATURE_SIZE[config.environment.observation] * width
    forward = first + (layers - 1) * width**2 + width * (NUM_ACTIONS + 1)
    return 2e-6 * (forward + config.learning.update_epochs * (3 * forward - first))


def measure(options: BenchTrainOptions) -> Training:
    """Times updates after one that compiles, and a matrix product after each of them."""
    config = train_config(options)
    trainer = Trainer(config.environment.make(), config.learning, config.network)
    product = _product()

    state = trainer.init(config.run.seed)
    state, compile_seconds = _time(trainer.run, state, 1)
    state, _ = trainer.take_sums(state)
    rates, product_rates = [], []
    for _ in range(options.repeats):
        state, seconds = _time(trainer.run, state, 1)
        rates.append(config.learning.batch_size / seconds)
        product_rates.append(product())
    row = summarise(trainer.take_sums(state)[1], trainer.metrics)
    scalars = {name: row[f"train/{name}"] for name in _SCALARS}
    return Training(config, compile_seconds, rates, product_rates, scalars)


def _time(work: Callable[..., Any], *args: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    result = jax.block_until_ready(work(*args))
    return result, time.perf_counter() - start


def _product() -> Callable[[], float]:
    """A function that times some matrix products and returns the GFLOP/s."""
    rows, inner, columns = _PRODUCT
    one, other = jnp.ones((rows, inner)), jnp.ones((inner, columns))
    multiply = jax.jit(jnp.matmul)
    jax.block_until_ready(multiply(one, other))

    def rate() -> float:
        _, seconds = _time(lambda: [multiply(one, other) for _ in range(_PRODUCTS)])
        return 2e-9 * rows * inner * columns * _PRODUCTS / seconds

    return rate
