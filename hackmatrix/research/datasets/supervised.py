"""A network learns from lessons: the teacher's probabilities and values."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from hackmatrix.agents.networks import distribution
from hackmatrix.agents.networks.network import Network, sharing_of
from hackmatrix.core.errors import UserError
from hackmatrix.environments.interface.environment import PyTree
from hackmatrix.learning.trainer.seeds import are_finite
from hackmatrix.learning.trainer.values import value_loss

Array = jax.Array

_LARGEST_NORM = 0.5  # of a gradient


class Lessons(NamedTuple):
    """B positions with a teacher's opinion."""

    observations: PyTree  # as the network reads them
    mask: Array  # uint32[B], the valid actions
    policy: Array  # float16[B, A], the teacher's probabilities
    value: Array  # float32[B], the return that the teacher expects of these probabilities


class Loss(NamedTuple):
    """Means over lessons."""

    divergence: Array  # KL divergence of the network's policy from the teacher's
    value: Array  # of the values, see `value_loss`


def learn(
    network: Network,
    params: PyTree,
    lessons: Lessons,
    *,
    lr: float,
    epochs: int,
    batch: int,
    seed: int,
) -> tuple[PyTree, Loss]:
    """Learns by Adam, with a learning rate that falls linearly to 0.

    Args:
        network: the network.
        params: its params.
        lessons: at least one batch.
        lr: learning rate at the start.
        epochs: passes over the lessons.
        batch: lessons of a step; those that are left over in an epoch are left out.
        seed: of their order.

    Returns:
        The new params, and the loss in the last epoch.

    Raises:
        UserError: the params became NaN or infinite.
    """
    sharing, count = sharing_of(network), len(lessons.mask)
    steps = count // batch
    adam = optax.chain(
        optax.clip_by_global_norm(_LARGEST_NORM),
        optax.adam(optax.linear_schedule(lr, 0, epochs * steps), eps=1e-5),
    )
    params = sharing.independent(params)
    state, rng = adam.init(params), np.random.default_rng(seed)
    losses = Loss(jnp.zeros(()), jnp.zeros(()))
    for _ in range(epochs):
        order = jnp.asarray(rng.permutation(count)[: steps * batch].reshape(steps, batch))
        params, state, losses = _epoch(network, adam, params, state, lessons, order)
    if not are_finite(params):
        raise UserError(f"--lr {lr:g}: the params became NaN or infinite; take a smaller one")
    return sharing.whole(params), losses


def loss(network: Network, params: PyTree, lessons: Lessons) -> Loss:
    """The network's distance from its teacher."""
    logits, values, _ = network(params, lessons.observations)
    mask = distribution.unpack_mask(lessons.mask, network.num_actions)
    log_probs = distribution.log_probabilities(logits, mask)
    divergence = distribution.divergence(lessons.policy.astype(jnp.float32), log_probs, mask)
    return Loss(jnp.mean(divergence), value_loss(network, values, lessons.value))


@partial(jax.jit, static_argnums=(0, 1))
def _epoch(
    network: Network,
    adam: optax.GradientTransformation,
    params: PyTree,
    state: optax.OptState,
    lessons: Lessons,
    order: Array,
) -> tuple[PyTree, optax.OptState, Loss]:
    def objective(params: PyTree, some: Lessons) -> tuple[Array, Loss]:
        parts = loss(network, sharing_of(network).whole(params), some)
        return parts.divergence + parts.value, parts

    def step(
        carry: tuple[PyTree, optax.OptState], indices: Array
    ) -> tuple[tuple[PyTree, optax.OptState], Loss]:
        params, state = carry
        some = jax.tree.map(lambda x: x[indices], lessons)
        gradient, parts = jax.grad(objective, has_aux=True)(params, some)
        changes, state = adam.update(gradient, state, params)
        return (optax.apply_updates(params, changes), state), parts

    (params, state), losses = jax.lax.scan(step, (params, state), order)
    return params, state, jax.tree.map(jnp.mean, losses)
