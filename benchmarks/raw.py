"""Learning curves of agents that read the board alone, and the first layer of one of them."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import RESULTS, run_command, to_json
from hackmatrix.agents.networks.policy import Policy, load_policy
from hackmatrix.agents.networks.rows import DEFINITION, REACH, rows_of
from hackmatrix.agents.roster.names import params_of
from hackmatrix.core.options import option
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.research.bench.options import Options
from hackmatrix.research.figures import COLOURS, label, line, panels, svg
from hackmatrix.runs.metrics_file import read_metrics

CURVES = {
    "stats/mean_stage": "stage in which games end",
    "stats/programs_owned": "programs owned",
    "stats/win_rate": "wins",
}
ENEMIES = 0  # the table of `row_tables.PLAYER.around` with the symbol `enemy`
GAMES, STEPS, EVERY = 256, 400, 2  # of positions: games, their actions, actions between positions
LEAST = 50  # positions that show an effect


@dataclass(frozen=True)
class RawOptions(Options):
    """The options of this benchmark."""

    runs: tuple[str, ...] = option((), "runs of `--config raw`, for the curves", positional=True)
    agent: str = option("raw", "the agent whose first layer is drawn")
    out: Path = option(RESULTS, "folder for raw.json, raw.svg and raw_rows.svg")


@dataclass(frozen=True)
class RawFigures:
    """The curves of runs by seed, and the effects of enemies by kind and offset."""

    curves: dict[str, dict[str, list[float]]]
    effects: np.ndarray  # float[4, 11, 11], NaN where an enemy hardly ever was
    out: Path

    def as_dict(self) -> dict[str, Any]:
        """The curves."""
        return {"curves": self.curves}

    def text(self) -> str:
        """The pictures, and the strongest effects."""
        near = [np.nanmin(effects) for effects in self.effects]
        worst = ", ".join(
            f"{kind.name.lower()} {effect:+.2f}"
            for kind, effect in zip(EnemyType, near, strict=True)
        )
        return f"{self.out / 'raw_rows.svg'}\nworst for the value: {worst}"


def measure(options: RawOptions) -> RawFigures:
    """Draws both pictures; without runs, that of the first layer alone."""
    curves = _draw_curves(options.runs, options.out) if options.runs else {}
    policy = load_policy(params_of(options.agent))
    effects = measure_effects(policy, play_positions(policy))
    (options.out / "raw_rows.svg").write_text(svg(_draw_effects(effects)))
    return RawFigures(curves, effects, options.out)


def _draw_curves(runs: Sequence[str], out: Path) -> dict[str, Any]:
    """Draws the curves of runs, and keeps them."""
    curves = {}
    for run in runs:
        rows = list(read_metrics(Path(run)))[::2]
        seed = json.loads((Path(run) / "final_params.json").read_text())["config"]["seed"]
        curves[f"seed {seed}"] = {
            "timesteps": [row["timesteps"] for row in rows],
            **{name: [round(row[name], 3) for row in rows] for name in CURVES},
        }
    figure, axes = panels("hackmatrix train --config raw, from nothing, games of training", 3)
    for panel, (metric, title) in zip(axes, CURVES.items(), strict=True):
        for (seed, curve), colour in zip(curves.items(), COLOURS, strict=False):
            line(panel, curve["timesteps"], curve[metric], colour=colour, name=seed)
        label(panel, title, "steps")
    axes[0].legend(loc="lower right", fontsize=7, frameon=False)
    (out / "raw.svg").write_text(svg(figure))
    (out / "raw.json").write_text(to_json({"curves": curves}) + "\n")
    return curves


def play_positions(policy: Policy) -> np.ndarray:
    """Records uint8[B, RECORD_SIZE] of positions from games of the agent."""
    import jax

    env, _ = policy.make()
    choose = jax.vmap(partial(policy, policy.params))

    def act(carry: Any, key: Any) -> Any:
        observations, states = carry
        keys = jax.random.split(key, (2, GAMES))
        actions = choose(observations, jax.vmap(env.action_mask)(states), keys[0])
        after, states, *_ = jax.vmap(env.step)(keys[1], states, actions)
        return (after, states), observations

    games = jax.vmap(env.reset)(jax.random.split(jax.random.key(0), GAMES))
    _, observations = jax.lax.scan(act, games, jax.random.split(jax.random.key(1), STEPS))
    records = np.asarray(observations)[::EVERY]
    return records.reshape(-1, records.shape[-1])


def measure_effects(policy: Policy, records: np.ndarray) -> np.ndarray:
    """The change of the value by the row of an enemy, by its offset from the player.

    It is of first order: the mean gradient of the value by the sum that the row is part of, times
    the row. Rows of enemies that are awake, weighted by how often they were in the line of fire.

    Returns:
        float[4, 11, 11]: by kind, and offset in rows and columns on the mirrored board; NaN where
        there were fewer than `LEAST`.
    """
    import jax
    import jax.numpy as jnp

    _, network = policy.make()

    def value(params: Any) -> Any:
        return jnp.mean(network(params, jnp.asarray(records))[1])

    gradient = np.asarray(jax.grad(value)(policy.params)["params"]["player_bias"])
    table = np.asarray(policy.params["params"]["player"]) @ gradient
    counts = np.bincount(rows_of(records, np)[0].ravel(), minlength=len(table))
    _, first, symbols, _ = DEFINITION.player.around[ENEMIES]
    shape = REACH, REACH, len(EnemyType), 2, 2  # the last two: stunned, in the line of fire
    block = slice(first, first + REACH**2 * symbols)
    awake = ..., 0, slice(None)
    weights, rows = counts[block].reshape(shape)[awake], table[block].reshape(shape)[awake]
    count = weights.sum(axis=-1)
    mean = (weights * rows).sum(axis=-1) / np.maximum(count, 1)
    return np.moveaxis(np.where(count < LEAST, np.nan, mean), -1, 0)


def _draw_effects(effects: np.ndarray) -> Any:
    most = float(np.nanmax(np.abs(effects)))
    title = "What an enemy adds to the value, by its offset from the player (exit up and right)"
    figure, axes = panels(title, 4, height=3.2, columns=2)
    reach = REACH // 2 + 0.5
    for panel, kind, effect in zip(axes, EnemyType, effects, strict=True):
        image = panel.imshow(
            effect,
            origin="lower",
            extent=(-reach, reach, -reach, reach),
            cmap="RdBu",
            vmin=-most,
            vmax=most,
        )
        panel.plot(0, 0, marker="o", color="black", markersize=4)
        label(panel, kind.name.lower())
    figure.colorbar(image, ax=axes, shrink=0.7)
    return figure


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "raw",
        measure,
        RawOptions,
        argv,
        purpose="Draws how runs of `--config raw` learn, and an agent's first layer.",
        example="checkpoints/raw-1 checkpoints/raw-2 checkpoints/raw-3",
    )


if __name__ == "__main__":
    sys.exit(main())
