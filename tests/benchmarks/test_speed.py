"""`benchmarks.scaling` and `benchmarks.peers`: who takes turns, and what is written."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import pytest

from benchmarks import peers, scaling
from hackmatrix.research.bench.env import Speed
from hackmatrix.research.bench.replayed_games import ReplayTotals

pytestmark = pytest.mark.thorough


def figures_of(
    capsys: pytest.CaptureFixture[str], main: Callable[[list[str]], int], *argv: str
) -> dict[str, Any]:
    assert main([*argv, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


class FakeBench:
    """Stands for `EnvBench`: its rate is its number of games, divided by enemies at the start."""

    order: ClassVar[list[int]] = []

    def __init__(
        self, num_envs: int = 8, _: int = 1, positions: Sequence[Any] = (), **__: Any
    ) -> None:
        self.num_envs, self.num_steps = num_envs, 1
        self.enemies = len(positions[0].enemies) if positions else 0
        self.rates: list[float] = []

    def repeat(self) -> float:
        self.order.append(self.num_envs)
        self.rates.append(self.num_envs / (1 + self.enemies) + len(self.rates))
        return self.rates[-1]

    def result(self, games: int = 64) -> Speed:
        seen = ReplayTotals(steps=games, enemies=games * self.enemies)
        return Speed(self.num_envs, 1, "random", "compact", "native", self.rates, 1, seen)


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeBench, "order", [])
    monkeypatch.setattr(scaling, "EnvBench", FakeBench)
    monkeypatch.setattr(peers, "EnvBench", FakeBench)


def test_scaling(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    argv = ["--max-envs", "256", "--max-enemies", "4", "--num-envs", "60", "--repeats", "3"]
    figures = figures_of(capsys, scaling.main, *argv, "--output", str(tmp_path))
    by_games = [(it["num_envs"], it["min"], it["median"]) for it in figures["games"]]
    assert by_games == [(64, 64, 65), (128, 128, 129), (256, 256, 257)]
    enemies = [(it["enemies"], it["mean_enemies"], it["min"]) for it in figures["enemies"]]
    assert enemies == [(0, 0, 60), (1, 1, 30), (2, 2, 20), (4, 4, 12)]
    assert FakeBench.order == [64, 128, 256] * 3 + [60] * 4 * 3
    assert json.loads((tmp_path / "scaling.json").read_text()) == figures
    for name in ("scaling_games", "scaling_enemies"):
        assert "HackMatrix, " in (tmp_path / f"{name}.svg").read_text()


class Counter:
    """A peer that counts: action 0 or 2 is added to the number that is its state."""

    def reset(self, keys: jax.Array) -> jax.Array:
        return jnp.zeros(keys.shape[0], jnp.int32)

    def mask(self, state: jax.Array) -> jax.Array:
        return jnp.stack([state >= 0, state < 0, state >= 0], axis=1)

    def step(self, keys: jax.Array, state: jax.Array, actions: jax.Array) -> Any:
        return state + actions, (actions, actions == 1, state * 0.5)


def test_a_peer_is_stepped_with_valid_actions() -> None:
    bench = peers.PeerBench(Counter(), num_envs=32, seconds=0.001)
    games = bench.num_envs
    run = bench._timed(jnp.zeros(games, jnp.int32), jnp.uint32(7), jnp.int32(50))
    state, (total, invalid, _) = run
    assert int(invalid) == 0
    assert int(total) == int(state.sum())
    assert games * 50 * 0.9 < int(total) < games * 50 * 1.1  # 0 and 2 are equally likely
    assert bench.repeat() == bench.rates[-1] > 0


def test_peers_take_turns(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(peers, "PEERS", (peers.Entry("counter", "jax", Counter, 16),))
    figures = figures_of(capsys, peers.main, "--seconds", "0.001", "--output", str(tmp_path))
    names = [it["name"] for it in figures["environments"]]
    assert names == [*peers.OURS, "counter"]
    numbers = [it["num_envs"] for it in figures["environments"]]
    assert numbers == [8] * 4 + [16 * jax.device_count()]
    assert json.loads((tmp_path / "peers.json").read_text()) == figures
    assert all(f"| {name} |" in (tmp_path / "peers.md").read_text() for name in names)
    assert "counter" in (tmp_path / "peers.svg").read_text()


def test_a_missing_peer_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = peers.Entry("no game", "no-such-package", Counter, 16)
    monkeypatch.setattr(peers, "PEERS", (entry,))
    assert peers.main([]) == 2
    assert "no game cannot be run" in capsys.readouterr().err
