"""The primitive that calls the batch functions, and its programs that are kept on disk."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, PartitionSpec

import hackmatrix
from hackmatrix.core.compiled import kept_programs
from hackmatrix.environments.hackmatrix import EnvState, over_games
from hackmatrix.game.jaxgame import batch

pytestmark = pytest.mark.thorough

GAMES = 8

# Lowers a step and a reset of some games, in a scan, and counts how often the rules are traced.
_CODE = """
from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
enable_compilation_cache()
import hashlib
import jax, jax.numpy as jnp
import hackmatrix
from hackmatrix.game.jaxgame import batch

traced = []
for name in ("step", "new_games"):
    def counted(*arguments, rule=getattr(batch, name), name=name):
        traced.append(name)
        return rule(*arguments)
    setattr(batch, name, counted)

env = hackmatrix.make(max_episode_steps=50, engine="jax")
streams = jnp.arange(8, dtype=jnp.uint32)

def play(streams):
    _, state = jax.vmap(env.reset_game, (0, None))(streams, 0)
    def step(state, action):
        _, state, reward, *_ = jax.vmap(env.step, (None, 0, None))(None, state, action)
        return state, reward
    return jax.lax.scan(step, state, jnp.arange(4))

program = jax.jit(play).lower(streams).as_text()
print(*sorted(traced), hashlib.sha256(program.encode()).hexdigest())
"""


def test_a_warm_process_does_not_trace_the_game(tmp_path: Path) -> None:
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache")}

    def traced() -> list[str]:
        command = [sys.executable, "-c", _CODE]
        return subprocess.check_output(command, env=environment, text=True).split()

    *first, program = traced()
    assert first == ["new_games", "step"]
    assert traced() == [program]


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tmp_path.chmod(0o700)
    monkeypatch.setattr(kept_programs, "_folder", tmp_path)
    return tmp_path


def starts(env: Any) -> EnvState:
    streams = jnp.arange(GAMES, dtype=jnp.uint32)
    state: EnvState = jax.jit(jax.vmap(env.reset_game, (0, None)))(streams, jnp.uint32(0))[1]
    return state


def sharded(observe: Callable[[EnvState], jax.Array]) -> Callable[[EnvState], jax.Array]:
    mesh = jax.make_mesh((1,), ("games",), (AxisType.Auto,))
    spec = PartitionSpec("games")
    return jax.shard_map(observe, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)


def in_pairs(observe: Callable[[EnvState], jax.Array]) -> Callable[[EnvState], jax.Array]:
    def observe_pairs(state: EnvState) -> jax.Array:
        pairs = jax.tree.map(lambda x: x.reshape(-1, 2, *x.shape[1:]), state)
        return jax.vmap(observe)(pairs).reshape(GAMES, -1)

    return observe_pairs


def remade(observe: Callable[[EnvState], jax.Array]) -> Callable[[EnvState], jax.Array]:
    def value(weight: jax.Array, state: EnvState) -> jax.Array:
        return (weight * observe(state)).sum()

    return lambda state: (
        observe(state) + 0 * jax.grad(jax.checkpoint(value))(1.0, state).astype(jnp.uint8)
    )


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(lambda observe: observe, marks=pytest.mark.slow),
        sharded,
        pytest.param(in_pairs, marks=pytest.mark.slow),
        pytest.param(remade, marks=pytest.mark.slow),
    ],
    ids=["mapped", "sharded", "in pairs", "with a gradient"],
)
def test_kept_programs_give_the_same_results(form: Any, kept: Path) -> None:
    env = hackmatrix.make(engine="jax")
    state = starts(env)
    expected = [env.observe(jax.tree.map(lambda x, k=k: x[k], state)) for k in range(GAMES)]
    count = len(list(kept.iterdir()))
    for _ in range(2):
        jax.clear_caches()
        observations = jax.jit(form(jax.vmap(hackmatrix.make(engine="jax").observe)))(state)
        np.testing.assert_array_equal(observations, np.stack(expected))
    assert len(list(kept.iterdir())) == count + 1


def test_programs_for_several_platforms_are_traced(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traced = []
    rule = batch.observations
    monkeypatch.setattr(batch, "observations", lambda state: traced.append(1) or rule(state))
    env = hackmatrix.make(engine="jax")
    shapes = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct((GAMES, *x.shape), x.dtype), env.spec.state
    )
    lowered = jax.jit(jax.vmap(env.observe)).trace(shapes)
    lowered.lower(lowering_platforms=("cpu", "tpu"))
    lowered.lower(lowering_platforms=("cpu", "tpu"))
    assert not list(kept.iterdir())
    assert traced


class Asked(Exception):
    """Stands for a kept program: says for which one it was asked."""


def asked(name: str, *_: Any) -> Any:
    raise Asked(name)


def test_different_settings_are_different_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(over_games, "kept_program", asked)
    names = set()
    for settings in (
        {},
        {"max_episode_steps": 9},
        {"auto_reset": False},
        {"observation": "classic"},
    ):
        env = hackmatrix.make(**settings, engine="jax")
        shapes = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct((1, *x.shape), x.dtype), env.spec.state
        )
        action = jax.ShapeDtypeStruct((1,), jnp.int32)
        with pytest.raises(Asked) as error:
            jax.jit(jax.vmap(env.step, (None, 0, 0))).lower(None, shapes, action)
        names.add(str(error.value))
    assert len(names) == 3  # the layout of the features is no matter of the step
    assert all(
        name.startswith("hackmatrix.environments.hackmatrix.jax_games.step(") for name in names
    )


def next_number(x: jax.Array) -> jax.Array:
    return x + 1


def test_a_rule_that_is_not_of_the_package_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(over_games, "kept_program", asked)

    def local(x: jax.Array) -> jax.Array:
        return x + 1

    local.__module__ = "hackmatrix.environments.hackmatrix.env"
    for rule in (local, next_number):
        one = over_games.over_games(rule, lambda x: x)
        jax.jit(jax.vmap(one)).lower(jnp.arange(3))
