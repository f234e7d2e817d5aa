"""The primitive that calls the batch functions."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, PartitionSpec

import hackmatrix
from hackmatrix.environments.hackmatrix import EnvState

pytestmark = pytest.mark.slow

GAMES = 8


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
        lambda observe: observe,
        sharded,
        in_pairs,
        remade,
    ],
    ids=["mapped", "sharded", "in pairs", "with a gradient"],
)
def test_games_give_the_same_results_in_every_form(form: Any) -> None:
    env = hackmatrix.make(engine="jax")
    state = starts(env)
    expected = [env.observe(jax.tree.map(lambda x, k=k: x[k], state)) for k in range(GAMES)]
    observations = jax.jit(form(jax.vmap(env.observe)))(state)
    np.testing.assert_array_equal(observations, np.stack(expected))
