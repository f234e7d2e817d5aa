"""Training steps per second of many agents in one program, compared with a single one."""

import dataclasses
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax

from benchmarks.command import run_command
from hackmatrix.core import machine
from hackmatrix.core.options import option
from hackmatrix.environments.registry import make_environment
from hackmatrix.learning.ppo import seeds
from hackmatrix.learning.ppo.trainer import Trainer
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.learning.settings.resolve import resolve
from hackmatrix.research.bench.options import Options

_WAYS = {"one by one": seeds.one_by_one, "side by side": seeds.side_by_side}


@dataclass(frozen=True)
class SeedsOptions(Options):
    """The options of the command."""

    config: Path | None = option(None, "settings of an agent, as for `hackmatrix train`")
    num_seeds: int = option(4, "agents in one program", at_least=2, at_most=1024)
    updates: int = option(1, "updates of each agent in a repeat", at_least=1)
    repeats: int = option(3, "timed repeats of each, in turn", at_least=1)


class Speeds(NamedTuple):
    """Steps/s of all agents together in each repeat, by training method."""

    env: str
    num_seeds: int
    batch: str
    rates: dict[str, list[float]]

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
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
        """The figures as text."""
        it = self.as_dict()
        lines = [f"{it['env']}, {it['batch']} of each agent, training steps/s of all together:"]
        for name, median in it["steps_per_second"].items():
            low, high = it["min"][name], it["max"][name]
            lines.append(f"{name:<24}{median:>12,.0f}  ({low:,.0f} to {high:,.0f})")
        return "\n".join([*lines, machine.line(it, it["versions"])])


def measure(options: SeedsOptions) -> Speeds:
    """Times a single agent and both methods of training many, in turn."""
    num_seeds, updates = options.num_seeds, options.updates
    alone, _ = resolve({}, None if options.config is None else read_config(options.config))
    env = make_environment(alone.env, alone.observation, alone.max_episode_steps)
    many = dataclasses.replace(alone, num_seeds=num_seeds)
    ways = {"1 agent": _timed(Trainer(env, alone), updates)}
    for name, over in _WAYS.items():
        label = f"{num_seeds} agents, {name}"
        ways[label] = _timed(Trainer(env, many, over_agents=over), updates)
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.repeats):
        for name, rate in ways.items():
            rates[name].append(rate())
    batch = f"{alone.num_envs:,} games x {alone.num_steps} steps"
    return Speeds(alone.env, num_seeds, batch, rates)


def _timed(trainer: Trainer, updates: int) -> Callable[[], float]:
    """A function that runs some updates and returns their steps/s."""
    config = trainer.config
    state = jax.block_until_ready(trainer.run(trainer.init(config.seed), 1))

    def rate() -> float:
        nonlocal state
        start = time.perf_counter()
        state = jax.block_until_ready(trainer.run(state, updates))
        steps = updates * config.batch_size * config.num_seeds
        return steps / (time.perf_counter() - start)

    return rate


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "seeds",
        measure,
        SeedsOptions,
        argv,
        purpose="Measures training steps per second of many agents in one program.",
        example="--config configs/cartpole_best.yaml --num-seeds 10\n      ten agents beside one",
    )


if __name__ == "__main__":
    sys.exit(main())
