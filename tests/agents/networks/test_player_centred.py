"""The network that sees from the player: its answers, its gradient, and what it can be made for."""

import functools
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

CONFIG = NetworkConfig("player_centred", hidden_dim=16, num_layers=1)
needs_native = pytest.mark.skipif(not native.available, reason="the native engine was left out")


@functools.cache
def records() -> np.ndarray:
    rng = random.Random(4)
    return np.array([list(observe(rich(rng))) for _ in range(70)], np.uint8)


@functools.cache
def network() -> Any:
    return make_network(make_environment("HackMatrix-v1", "full"), CONFIG)


@functools.cache
def params() -> Any:
    return jax.jit(network().init)(jax.random.key(0))


def tables() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = (PLAYER_ROWS, 12), (DIRECTION_ROWS, 5)
    player, direction = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
    return player, direction


def test_sums_and_gradients_are_those_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the native engine, where it is there, and by XLA."""

    def loss(weights: Any) -> Any:
        own, others = player_centred.sum_rows(jnp.asarray(records()), *weights)
        return (own**2).sum() + (others**3).sum(), (own, others)

    own, others = rows_of(records(), np)
    of_player, of_directions = (
        np.where(rows[..., None] > 0, table[rows], 0).sum(axis=-2)
        for rows, table in zip((own, others), tables(), strict=True)
    )
    gradients = []
    for is_native in (True, False):
        monkeypatch.setattr(
            player_centred, "_has_native_engine", lambda yes=is_native: yes and native.available
        )
        (_, sums), gradient = jax.jit(jax.value_and_grad(loss, has_aux=True))(tables())
        np.testing.assert_allclose(sums[0], of_player, atol=1e-4)
        np.testing.assert_allclose(sums[1], of_directions, atol=1e-4)
        gradients.append(gradient)
    on_gpus = player_centred._gathered_sums(jnp.asarray(records()), *map(jnp.asarray, tables()))
    for one, other in zip(on_gpus, sums, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)
    for one, other in zip(*gradients, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-2)
        assert not one[0].any()  # row 0 is none


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_accelerators_do_without_the_native_engine(platform: str) -> None:
    def loss(weights: Any) -> Any:
        return sum(x.sum() for x in player_centred.sum_rows(jnp.asarray(records()), *weights))

    exported = jax.export.export(jax.jit(jax.grad(loss)), platforms=[platform])(tables())
    assert "hackmatrix_row" not in exported.mlir_module()


@needs_native
def test_the_number_of_threads_changes_nothing() -> None:
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


def test_a_network_under_vmap_answers_the_same() -> None:
    boards = jnp.asarray(records()[:4])
    logits, values, _ = jax.jit(network())(params(), boards)
    mapped = jax.jit(jax.vmap(lambda one: network()(params(), one[None])[:2]))(boards)
    np.testing.assert_allclose(mapped[0][:, 0], logits, atol=1e-5)
    np.testing.assert_allclose(mapped[1][:, 0], values, atol=1e-5)


def test_features_are_read_as_records_are() -> None:
    full = observations_of(records(), "full")
    again = observations_of(np.asarray(records_of_features(full)), "full")
    np.testing.assert_array_equal(again, full)
    env = hackmatrix.make(observation="full")
    other = make_network(env, CONFIG)
    of_records = jax.jit(network())(params(), jnp.asarray(records()))
    of_features = jax.jit(other)(params(), jnp.asarray(full))
    for one, two in zip(of_records[:2], of_features[:2], strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5)


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


def command(folder: Path, line: str, code: int = 0) -> str:
    """What a command prints, run in a folder as a user runs it."""
    done = subprocess.run(
        [sys.executable, "-m", "hackmatrix", *line.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def params_in(file: Path) -> dict[str, np.ndarray]:
    with np.load(file) as arrays:
        return dict(arrays)


@pytest.mark.slow
def test_it_is_trained_and_resumed_on_one_device_or_two(tmp_path: Path) -> None:
    command(tmp_path, f"train {SMALL} --num-devices 1 --total-timesteps 256 --run-name whole")
    command(tmp_path, f"train {SMALL} --num-devices 1 --total-timesteps 128 --run-name half")
    command(tmp_path, "train --resume checkpoints/half --num-devices 1 --total-timesteps 256")
    whole, resumed = (
        params_in(tmp_path / "checkpoints" / run / "final_params.npz") for run in ("whole", "half")
    )
    assert all(np.array_equal(whole[name], resumed[name]) for name in whole)

    command(tmp_path, f"train {SMALL} --num-devices 2 --total-timesteps 256 --run-name two")
    two = params_in(tmp_path / "checkpoints/two/final_params.npz")
    assert all(np.allclose(whole[name], two[name], atol=1e-3) for name in whole)

    command(tmp_path, f"train {SMALL} --num-seeds 2 --total-timesteps 128 --run-name seeds")
    seeds = [params_in(tmp_path / f"checkpoints/seeds/seed_{s}/final_params.npz") for s in (0, 1)]
    assert not np.array_equal(seeds[0]["params.player"], seeds[1]["params.player"])


@pytest.mark.slow
def test_it_is_evaluated_searched_cloned_and_converted(tmp_path: Path) -> None:
    command(tmp_path, f"train {SMALL} --total-timesteps 64 --run-name mine")
    params = "checkpoints/mine/final_params.npz"
    few = "--episodes 2 --max-steps 20"
    assert "2" in command(tmp_path, f"evaluate {params} {few}")
    assert "2" in command(tmp_path, f"evaluate {params}@4 {few}")
    command(tmp_path, "data record games --agent exit --episodes 4")
    command(tmp_path, "clone games cloned.npz --config raw --positions 2000 --epochs 1 --batch 32")
    command(tmp_path, f"checkpoint convert {params} same.safetensors")
    refused = command(tmp_path, f"checkpoint convert {params} no.onnx", code=2)
    assert "only the network mlp is written as ONNX" in refused
    assert refused.count("\n") == 1
