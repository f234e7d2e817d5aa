"""The primitive that calls the batch functions."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, PartitionSpec

import hackmatrix
from hackmatrix.environments.hackmatrix import EnvState

GAMES = 8


def test_games_give_the_same_results_in_every_form() -> None:
    env = hackmatrix.make()
    streams = jnp.arange(GAMES, dtype=jnp.uint32)
    _, state = jax.vmap(env.reset_game, (0, None))(streams, jnp.uint32(0))
    expected = [env.observe(jax.tree.map(lambda x, k=k: x[k], state)) for k in range(GAMES)]

    mapped = jax.vmap(env.observe)
    mesh, spec = jax.make_mesh((1,), ("games",), (AxisType.Auto,)), PartitionSpec("games")
    sharded = jax.shard_map(mapped, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)

    def in_pairs(state: EnvState) -> jax.Array:
        pairs = jax.tree.map(lambda x: x.reshape(-1, 2, *x.shape[1:]), state)
        return jax.vmap(mapped)(pairs).reshape(GAMES, -1)

    def with_a_gradient(state: EnvState) -> jax.Array:
        value = jax.checkpoint(lambda weight, state: (weight * mapped(state)).sum())
        return mapped(state) + 0 * jax.grad(value)(1.0, state).astype(jnp.uint8)

    for form in (mapped, sharded, in_pairs, with_a_gradient):
        np.testing.assert_array_equal(jax.jit(form)(state), np.stack(expected))
