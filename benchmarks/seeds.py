"""Training steps per second of many agents in one program, beside those of a single one."""

import dataclasses
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax

from hackmatrix.bench.options import SeedsOptions
from hackmatrix.environments.registry import make_environment
from hackmatrix.learner import seeds
from hackmatrix.learner.trainer import Trainer
from hackmatrix.runs import machine
from hackmatrix.settings.config import TrainConfig

_DEFAULT = SeedsOptions()
_WAYS = {"one by one": seeds.one_by_one, "side by side": seeds.side_by_side}


class Speeds(NamedTuple):
    """Steps/s of all agents together, of each repeat, by how they are trained."""

    env: str
    num_seeds: int
    batch: str
    rates: dict[str, list[float]]

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        medians = {name: statistics.median(rates) for name, rates in self.rates.items()}
        return {
            "env": self.env,
            "num_seeds": self.num_seeds,
            "batch": self.batch,
            "steps_per_second": medians,
            "min": {name: min(rates) for name, rates in self.rates.items()},
            "max": {name: max(rates) for name, rates in self.rates.items()},
            **machine.machine(),
            "versions": machine.versions(),
        }

    def text(self) -> str:
        """For people."""
        it = self.as_dict()
        lines = [f"{it['env']}, {it['batch']} of each agent, training steps/s of all together:"]
        for name, median in it["steps_per_second"].items():
            low, high = it["min"][name], it["max"][name]
            lines.append(f"{name:<24}{median:>12,.0f}  ({low:,.0f} to {high:,.0f})")
        return "\n".join([*lines, machine.line(it, it["versions"])])


def measure(
    config: Path | None = _DEFAULT.config,
    num_seeds: int = _DEFAULT.num_seeds,
    updates: int = _DEFAULT.updates,
    repeats: int = _DEFAULT.repeats,
) -> Speeds:
    """Times a single agent and both ways to train many, in turn.

    Args:
        config: settings of an agent; None: the defaults of `hackmatrix train`.
        num_seeds: agents.
        updates: of each agent in a repeat.
        repeats: of each way, after one update that compiles.
    """
    alone = TrainConfig() if config is None else _settings(config)
    env = make_environment(alone.env, alone.observation, alone.max_episode_steps)
    many = dataclasses.replace(alone, num_seeds=num_seeds)
    ways = {"1 agent": _timed(Trainer(env, alone), updates)}
    for name, over in _WAYS.items():
        label = f"{num_seeds} agents, {name}"
        ways[label] = _timed(Trainer(env, many, over_agents=over), updates)
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, rate in ways.items():
            rates[name].append(rate())
    batch = f"{alone.num_envs:,} games x {alone.num_steps} steps"
    return Speeds(alone.env, num_seeds, batch, rates)


def _settings(file: Path) -> TrainConfig:
    from hackmatrix.settings.config_file import read_config
    from hackmatrix.settings.resolve import resolve

    return resolve({}, read_config(file))[0]


def _timed(trainer: Trainer, updates: int) -> Callable[[], float]:
    """What makes some updates and tells their steps/s."""
    config = trainer.config
    state = jax.block_until_ready(trainer.run(trainer.init(config.seed), 1))

    def rate() -> float:
        nonlocal state
        start = time.perf_counter()
        state = jax.block_until_ready(trainer.run(state, updates))
        steps = updates * config.batch_size * config.num_seeds
        return steps / (time.perf_counter() - start)

    return rate
