"""Data sets of a tiny environment, made by hand or by the command."""

import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import probe_environments as probes
import pytest

from hackmatrix.cli.main import main
from hackmatrix.core.files import write_manifest
from hackmatrix.environments.registry import MAKERS
from hackmatrix.research.datasets.folder import FACTS, DatasetFacts, Shard, new_data_set
from hackmatrix.research.datasets.jax_replay import finals_of
from hackmatrix.research.evaluation.seeding import DATA

GRID = "Grid-v0"


def use_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the tiny environment known by its name."""
    monkeypatch.setitem(MAKERS, GRID, lambda: lambda **_: probes.Grid())


def recorded(path: Path, *flags: str, episodes: int = 40) -> Path:
    argv = ["--env", GRID, "--seed", "3", "--episodes", str(episodes), "--max-steps", "50", *flags]
    assert main(["data", "record", str(path), *argv]) == 0
    return path


def of_an_expert(path: Path, games: int) -> Path:
    """A data set whose player walks up, then right: always a shortest way to the goal."""
    positions, _ = DATA.begin(probes.Grid(), jnp.uint32(3), jnp.arange(games))
    lengths, actions, rewards, ends = [], [], [], []
    for start in np.asarray(positions)[:, 0]:
        moves = [0] * (4 - start // 5) + [3] * (4 - start % 5)
        taken = moves[: probes.Grid.max_episode_steps]
        lengths.append(len(taken))
        actions += taken
        rewards += [0.0] * (len(taken) - 1) + [float(len(taken) == len(moves))]
        row, col = start // 5 + taken.count(0), start % 5 + taken.count(3)
        ends.append(5 * row + col)
    finals = finals_of(np.array(ends, np.uint8)[:, None])
    with new_data_set(path) as writer:
        terminated = np.array(ends) == probes.Grid.goal
        writer.add(
            Shard(
                0,
                np.array(lengths, np.int32),
                terminated,
                finals,
                np.array(actions, np.uint8),
                np.array(rewards, np.float32),
            )
        )
        writer.add_facts(DatasetFacts(GRID, "expert", 3, games, 50, False, None, len(actions), "0"))
    return path


def change(path: Path, array: str, index: Any, value: Any) -> None:
    """Changes a number in the first shard, as somebody who mends the checksums too."""
    shard = path / "games-0000000000.npz"
    with np.load(shard) as file:
        arrays = dict(file)
    arrays[array][index] = value
    np.savez_compressed(shard, **arrays)
    write_manifest(path)


def change_facts(path: Path, **changes: Any) -> None:
    facts = json.loads((path / FACTS).read_text())
    (path / FACTS).write_text(json.dumps(facts | changes))
    write_manifest(path)
