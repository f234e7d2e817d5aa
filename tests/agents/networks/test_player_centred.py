"""The network that sees from the player: its answers, its gradient, and what it can be made for."""

import functools
import importlib
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import probe_environments as probes
import pytest
from lockstep_starts import rich

import hackmatrix
from hackmatrix.agents.networks import player_centred
from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.network import make_network
from hackmatrix.agents.networks.rows import DEFINITION, DIRECTION_ROWS, PLAYER_ROWS, rows_of
from hackmatrix.core.errors import UserError
from hackmatrix.environments.hackmatrix.observations import observations_of, records_of_features
from hackmatrix.environments.registry import make_environment
from hackmatrix.game import native
from hackmatrix.game.engine.observation import observe
from hackmatrix.game.rules.actions import NUM_ACTIONS

CONFIG = NetworkConfig("player_centred", hidden_dim=16, num_layers=1)
needs_native = pytest.mark.skipif(not native.available, reason="the native engine was left out")


@functools.cache
def records() -> np.ndarray:
    rng = random.Random(4)
    return np.array([list(observe(rich(rng))) for _ in range(70)], np.uint8)


def tables() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = (PLAYER_ROWS, 12), (DIRECTION_ROWS, 5)
    player, direction = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
    return player, direction


@pytest.mark.thorough
def test_sums_and_gradients_are_those_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the native engine, where it is there, and by XLA.

    XLA takes half a minute to compile the rows (`test_rows.py`): here it looks them up.
    """
    rows = rows_of(records(), np)
    expected = [
        np.where(each[..., None] > 0, table[each], 0).sum(axis=-2)
        for each, table in zip(rows, tables(), strict=True)
    ]

    def result(boards: np.ndarray, *, natively: bool) -> Any:
        def loss(weights: Any) -> Any:
            own, others = player_centred.sum_rows(jnp.asarray(boards), *weights)
            return (own**2).sum() + (others**3).sum(), (own, others)

        monkeypatch.setattr(player_centred, "_has_native_engine", lambda: natively)
        (_, sums), gradient = jax.jit(jax.value_and_grad(loss, has_aux=True))(tables())
        for found, wanted in zip(sums, expected, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-4)
        return gradient

    looked_up = [jnp.asarray(each) for each in rows]
    monkeypatch.setattr(player_centred, "rows_of", lambda x, _: [y[x[:, 0]] for y in looked_up])
    of_native = result(records(), natively=True) if native.available else None
    numbers = np.arange(len(records()), dtype=np.uint8)[:, None]
    gradient = result(numbers, natively=False)
    on_gpus = jax.jit(player_centred._gathered_sums)(numbers, *tables())
    for one, other in zip(on_gpus, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)
    for one, other in zip(of_native or gradient, gradient, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-2)
        assert other.any()
        assert not other[0].any()  # row 0 is none


@pytest.mark.thorough
def test_accelerators_do_without_the_native_engine() -> None:
    def loss(weights: Any) -> Any:
        return sum(x.sum() for x in player_centred.sum_rows(jnp.asarray(records()), *weights))

    exported = jax.export.export(jax.jit(jax.grad(loss)), platforms=["cuda", "tpu"])(tables())
    assert "hackmatrix_row" not in exported.mlir_module()


@needs_native
def test_the_number_of_threads_changes_nothing() -> None:
    importlib.import_module("hackmatrix.game.native.xla")  # which registers the call
    rng = np.random.default_rng(1)
    gradients = [rng.normal(size=(70, *shape)).astype(np.float32) for shape in ((12,), (4, 5))]
    shapes = (PLAYER_ROWS, 12), (DIRECTION_ROWS, 5)
    results = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    call = jax.ffi.ffi_call("hackmatrix_row_gradients", results)
    one, three = (
        call(records(), *DEFINITION.arrays(), *gradients, threads=np.int32(threads))
        for threads in (1, 3)
    )
    assert all(map(np.array_equal, one, three))


def no_sums(records: Any, player: Any, direction: Any) -> Any:
    games = len(records)
    return jnp.zeros((games, player.shape[1])), jnp.zeros((games, 4, direction.shape[1]))


@pytest.mark.thorough
def test_answers_are_the_same_under_vmap_and_of_features(monkeypatch: pytest.MonkeyPatch) -> None:
    if native.available:  # what is for other platforms takes seconds to trace
        for name in ("_gathered_sums", "_counted_sums"):
            monkeypatch.setattr(player_centred, name, no_sums)
    full = observations_of(records(), "full")
    again = observations_of(np.asarray(records_of_features(full)), "full")
    np.testing.assert_array_equal(again, full)
    network, of_full = (
        make_network(env, CONFIG)
        for env in (make_environment("HackMatrix-v1", "full"), hackmatrix.make(observation="full"))
    )
    shapes, rng = jax.eval_shape(network.init, jax.random.key(0)), np.random.default_rng(2)
    params = jax.tree.map(lambda x: np.float32(0.1 * rng.normal(size=x.shape)), shapes)
    boards = jnp.asarray(records()[:4])

    @jax.jit
    def answers(params: Any) -> Any:
        mapped = jax.vmap(lambda one: network(params, one[None])[:2])(boards)
        alone = tuple(each[:, 0] for each in mapped)
        return network(params, boards)[:2], alone, of_full(params, jnp.asarray(full[:4]))[:2]

    expected, *others = answers(params)
    assert [each.shape for each in expected] == [(4, NUM_ACTIONS), (4,)]
    for other in others:
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), other, expected)


@pytest.mark.parametrize("env", [probes.Grid(), make_environment("HackMatrix-v1", "tactical")])
def test_it_is_made_for_the_whole_board_alone(env: Any) -> None:
    with pytest.raises(UserError, match=r"player_centred reads the whole board .*--observation"):
        make_network(env, CONFIG)


def test_its_width_is_shared_by_the_directions() -> None:
    with pytest.raises(UserError, match="--hidden-dim must be a multiple of 4, got 10"):
        make_network(make_environment("HackMatrix-v1"), NetworkConfig("player_centred", 10))


SMALL = (
    "--architecture player_centred --observation full --reward programs --program-worth 1 "
    "--num-envs 8 --num-steps 8 --hidden-dim 8 --num-layers 1 --log-interval 1 --no-tensorboard "
    "--no-wandb --lr-schedule constant --ent-coef 0.01 --final-ent-coef 0.01"
)


@pytest.mark.slow
def test_it_is_trained_on_one_device_or_two_resumed_and_searched(tmp_path: Path) -> None:
    def command(line: str) -> None:
        words = [sys.executable, "-m", "hackmatrix", *line.split()]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr

    def params_of(run: str) -> dict[str, np.ndarray]:
        with np.load(tmp_path / "checkpoints" / run / "final_params.npz") as arrays:
            return dict(arrays)

    command(f"train {SMALL} --num-devices 1 --total-timesteps 256 --run-name whole")
    command(f"train {SMALL} --num-devices 1 --total-timesteps 128 --run-name half")
    command("train --resume checkpoints/half --num-devices 1 --total-timesteps 256")
    command(f"train {SMALL} --num-devices 2 --total-timesteps 256 --run-name two")
    command(f"train {SMALL} --num-seeds 2 --total-timesteps 128 --run-name seeds")
    command("evaluate checkpoints/whole/final_params.npz@4 --episodes 2 --max-steps 20")
    whole, half, two = map(params_of, ("whole", "half", "two"))
    assert all(np.array_equal(whole[name], half[name]) for name in whole)
    assert all(np.allclose(whole[name], two[name], atol=1e-3) for name in whole)
    seeds = [params_of(f"seeds/seed_{number}")["params.player"] for number in (0, 1)]
    assert not np.array_equal(*seeds)
