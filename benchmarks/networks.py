"""Networks and observations compared: each learns for the same processor time."""

import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.command import RESULTS, run_command
from hackmatrix.agents.roster.batch_players import network_player
from hackmatrix.core import machine
from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import option
from hackmatrix.environments.checked_report import report_of
from hackmatrix.environments.registry import make_environment
from hackmatrix.learning.ppo.trainer import Trainer
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.learning.settings.resolve import resolve
from hackmatrix.research.bench.options import Options
from hackmatrix.research.evaluation.games import play
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.report import report_on

CONFIG = Path("configs/best.yaml")
GAMES = 10  # seed of the games that the trained networks play
TICKS = 10_000  # updates by which schedules are counted; they go by processor time

# What each differs in from the config.
NETWORKS: dict[str, dict[str, Any]] = {
    "mlp, tactical": {},
    "mlp with layer norm, tactical": {"layer_norm": True},
    "mlp 512, tactical": {"hidden_dim": 512},
    "cells, tactical": {"architecture": "cells"},
    "gru, tactical": {"architecture": "gru"},
    "mlp, full": {"observation": "full"},
    "cells, full": {"architecture": "cells", "observation": "full"},
}


@dataclass(frozen=True)
class NetworksOptions(Options):
    """The options of the command."""

    seconds: float = option(420.0, "processor time that each learns for, after compiling", above=0)
    seeds: int = option(2, "agents of each", at_least=1, at_most=100)
    episodes: int = option(1_000, "games that each of them plays at the end", at_least=2)
    networks: str = option("; ".join(NETWORKS), "which, with semicolons between")
    out: Path = option(RESULTS, "folder of networks.json; what is there is kept")


@dataclass(frozen=True)
class Comparison:
    """The results of each network: a list with an entry for each seed."""

    found: dict[str, list[dict[str, Any]]]

    def as_dict(self) -> dict[str, Any]:
        """All of it."""
        return self.found

    def text(self) -> str:
        """A table."""
        rows = [
            "| network, observation | params | steps/s | steps | stages cleared | wins |",
            "|---|---:|---:|---:|---|---|",
        ]
        for name, runs in self.found.items():
            one = runs[0]
            cells = [
                name,
                f"{one['params']:,}",
                " ".join(f"{run['steps'] / run['seconds']:,.0f}" for run in runs),
                " ".join(f"{run['steps'] / 1e6:.2f}M" for run in runs),
                " ".join(f"{run['stages']:.2f}" for run in runs),
                " ".join(f"{run['wins']:.1%}" for run in runs),
            ]
            rows.append(f"| {' | '.join(cells)} |")
        return "\n".join([*rows, machine.line(machine.machine(), machine.versions())])


def measure(options: NetworksOptions) -> Comparison:
    """Trains and evaluates what is not in `networks.json` yet.

    Raises:
        UserError: there is no such network.
    """
    names = [name.strip() for name in options.networks.split(";")]
    if unknown := set(names) - set(NETWORKS):
        known = "; ".join(NETWORKS)
        raise UserError(f"--networks: no {', '.join(sorted(unknown))}; there are {known}")
    enable_compilation_cache()
    options.out.mkdir(parents=True, exist_ok=True)
    kept = options.out / "networks.json"
    found = json.loads(kept.read_text()) if kept.exists() else {}
    for seed in range(options.seeds):
        for name in names:
            runs = found.setdefault(name, [])
            if len(runs) <= seed:
                print(f"{name}, seed {seed} ...", file=sys.stderr, flush=True)
                runs.append(_trained(NETWORKS[name], seed, options))
                kept.write_text(json.dumps(found) + "\n")
    return Comparison({name: found[name] for name in names})


def _trained(changed: dict[str, Any], seed: int, options: NetworksOptions) -> dict[str, Any]:
    config, _ = resolve({"seed": seed, **changed}, read_config(CONFIG))
    config = config.but(total_timesteps=TICKS * config.ppo.batch_size)
    trainer = Trainer(
        config.environment.make(), config.ppo, config.network, agents=config.run.seeds
    )
    state = jax.block_until_ready(trainer.run(trainer.init(seed), 0))
    start, updates, tick, spent = time.process_time(), 0, 0, 0.0
    while spent < options.seconds:
        # Each update is done with the learning rate of the share of the time that is over.
        tick = max(tick + 1, int(TICKS * spent / options.seconds))
        state = dataclasses.replace(state, update=jnp.int32(min(tick, TICKS - 1)))
        state = jax.block_until_ready(trainer.run(state, 1))
        spent, updates = time.process_time() - start, updates + 1
    return {
        "params": sum(leaf.size for leaf in jax.tree.leaves(state.params)),
        "steps": updates * config.ppo.batch_size,
        "seconds": spent,
        **_judged(trainer, config, state.params, options.episodes),
    }


def _judged(trainer: Trainer, config: TrainConfig, params: Any, episodes: int) -> dict[str, Any]:
    env = make_environment(config.environment.env, config.environment.observation)
    player = network_player("", trainer.network, params, greedy=False)
    games = play(env, player, Limits(episodes, seed=GAMES))
    means = report_on(report_of(env, games), games).means()
    return {"stages": means["mean_stages_cleared"], "wins": means["win_rate"]}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "networks",
        measure,
        NetworksOptions,
        argv,
        purpose="Trains networks and observations for the same processor time and compares them.",
        example='--networks "mlp, tactical; gru, tactical" --seconds 60 --seeds 1',
    )


if __name__ == "__main__":
    sys.exit(main())
