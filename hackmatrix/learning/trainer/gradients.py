"""Gradient steps on minibatches, and the epochs of an update."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import optax
from flax import struct
from jax.flatten_util import ravel_pytree

from hackmatrix.agents.networks.network import sharing_of
from hackmatrix.core.devices import mesh
from hackmatrix.environments.interface.environment import PyTree
from hackmatrix.learning.trainer import anomalies
from hackmatrix.learning.trainer.algorithm import (
    Learned,
    LearnerState,
    Scalars,
    Setup,
    UpdateContext,
)
from hackmatrix.learning.trainer.batches import (
    Batch,
    Minibatches,
    explained_variance,
    shuffle,
)

Array = jax.Array
State = TypeVar("State", bound=LearnerState)

# From the network's params and a minibatch to the loss, and its parts by name.
Loss = Callable[[PyTree, Any], tuple[Array, Scalars]]


class EarlyStop(NamedTuple):
    """Ends the epochs of an update after one in which a scalar was above a limit."""

    scalar: str
    above: Any  # float32[]


class StepMetrics(struct.PyTreeNode):
    """Scalars of gradient steps as one array, as each array that a loop fills is a kernel."""

    values: Array  # float32[..., K]
    anomaly: Array | None  # int32[...], see `anomalies.first_of`; None: nothing is searched
    names: tuple[str, ...] = struct.field(pytree_node=False)

    def means(self) -> Scalars:
        """The mean over the gradient steps, [M, K], of each."""
        return dict(zip(self.names, jnp.mean(self.values, axis=0), strict=True))


def clip_by_global_norm(
    max_norm: Any, norm_of: Callable[[PyTree], Array] = optax.tree.norm
) -> optax.GradientTransformation:
    """Scales gradients down to a norm of at most `max_norm`, an input of the program.

    That of optax wants a Python number where params have several dtypes.
    """

    def clip(grads: PyTree, params: PyTree | None) -> PyTree:
        del params
        norm = norm_of(grads)

        def clipped(grad: Array) -> Array:
            scaled = grad / norm.astype(grad.dtype) * jnp.asarray(max_norm, grad.dtype)
            return jnp.where(norm < max_norm, grad, scaled)

        return jax.tree.map(clipped, grads)

    return optax.stateless(clip)


def norm_with_copies(setup: Setup) -> Callable[[PyTree], Array]:
    """The norm of the gradients of all weights, from those of the independent ones."""
    copies = sharing_of(setup.network).copies

    def norm(grads: PyTree) -> Array:
        if setup.few_kernels:
            scaled = jax.tree.map(lambda g, n: n**0.5 * g, grads, copies(grads))
            return jnp.sqrt(jnp.sum(ravel_pytree(scaled)[0] ** 2))
        squares = jax.tree.map(lambda g, n: n * jnp.sum(g**2), grads, copies(grads))
        return jnp.sqrt(optax.tree.sum(squares))

    return norm


def gradient_step(
    setup: Setup,
    state: State,
    minibatches: Any,
    context: UpdateContext,
    *,
    loss: Loss,
    losses: tuple[str, ...],
    optimizer: optax.GradientTransformation,
    scalars_of: Callable[[Scalars], Scalars] = lambda parts: parts,
) -> tuple[State, StepMetrics]:
    """One step of the optimizer, down the mean gradient of all devices.

    Args:
        setup: the network and the settings.
        state: params and optimizer state; other fields stay.
        minibatches: K minibatches of this device, with that leading axis, whose gradients make one
            step; a pytree.
        context: gives the learning rate, and what the network takes for the params.
        loss: of this device's share of one of them.
        losses: parts of the loss that are searched for NaN and infinity.
        optimizer: makes gradients into directions, which the learning rate scales.
        scalars_of: makes what is measured of the parts of the loss, means over all devices.
    """
    copies = sharing_of(setup.network).copies

    def objective(params: PyTree, minibatch: Any) -> tuple[Array, Scalars]:
        return loss(context.network_params(params), minibatch)

    def gradient(minibatch: Any) -> tuple[PyTree, Scalars]:
        (_, parts), grads = jax.value_and_grad(objective, has_aux=True)(state.params, minibatch)
        return grads, parts

    # The mean over the devices, of the gradients and of what is measured.
    grads, parts = mesh.pmean(_mean_over_minibatches(gradient, minibatches))
    grads = jax.tree.map(lambda grad, n: grad / n, grads, copies(grads))
    scalars = scalars_of(parts) | {"grad_norm": norm_with_copies(setup)(grads)}
    directions, opt_state = optimizer.update(grads, state.opt_state, state.params)
    params = jax.tree.map(
        lambda p, d: (p - context.learning_rate * d).astype(p.dtype), state.params, directions
    )
    anomaly = None
    if setup.detect_anomaly:
        tensors = anomalies.tensors_of_step(scalars, grads, params, losses)
        anomaly = anomalies.first_of(tensors)
    metrics = StepMetrics(jnp.stack([*scalars.values()]), anomaly, tuple(scalars))
    return state.replace(params=params, opt_state=opt_state), metrics


def learn_in_epochs(
    setup: Setup,
    state: State,
    batch: Batch,
    context: UpdateContext,
    *,
    loss: Callable[[PyTree, Batch], tuple[Array, Scalars]],
    losses: tuple[str, ...],
    optimizer: optax.GradientTransformation,
    scalars_of: Callable[[Scalars], Scalars] = lambda parts: parts,
    measure_advantages: bool = False,
    stop: EarlyStop | None = None,
) -> Learned:
    """Gradient steps on the minibatches of a batch, for `update_epochs` epochs.

    Args:
        setup: the network and the settings.
        state: params and optimizer state before the update.
        batch: the samples of this device's games.
        context: random keys, learning rate, and what the network takes for the params.
        loss: of this device's share of a minibatch, and its parts by name.
        losses: parts of the loss that are searched for NaN and infinity.
        optimizer: makes gradients into directions, which the learning rate scales.
        scalars_of: makes what is measured of the parts of the loss, means over all devices.
        measure_advantages: whether the loss reads `Batch.advantage_spread`.
        stop: when to leave out the epochs that are left.

    Returns:
        The state, and means over the last epoch that was made.
    """
    accumulation = setup.config.gradient_accumulation_steps

    def step(state: State, minibatches: Minibatches) -> tuple[State, StepMetrics]:
        return gradient_step(
            *(setup, state, minibatches, context),
            loss=lambda params, minibatch: loss(params, minibatch.of(batch)),
            losses=losses,
            optimizer=optimizer,
            scalars_of=scalars_of,
        )

    def epoch(state: State, index: Array) -> tuple[State, tuple[Scalars, Array | None]]:
        minibatches = shuffle(
            setup, batch, context.keys, index, measure_advantages=measure_advantages
        )
        parts = jax.tree.map(lambda x: x.reshape(-1, accumulation, *x.shape[1:]), minibatches)
        state, metrics = jax.lax.scan(step, state, parts)
        return state, (metrics.means(), metrics.anomaly)

    epochs = jnp.arange(setup.config.update_epochs)
    if stop is None:
        state, (scalars, anomaly) = jax.lax.scan(epoch, state, epochs)
        scalars = jax.tree.map(lambda epochs: epochs[-1], scalars)
    else:
        state, scalars, anomaly = _run_until(stop, epoch, state, epochs)
    scalars |= {"explained_variance": explained_variance(batch.samples)}
    return Learned(state, scalars, None if anomaly is None else anomaly.reshape(-1))


def _run_until(
    stop: EarlyStop, epoch: Callable[..., Any], state: State, epochs: Array
) -> tuple[State, Scalars, Any]:
    state, (scalars, first) = epoch(state, epochs[0])

    def go_on(last: tuple[State, Scalars], index: Array) -> tuple[tuple[State, Scalars], Any]:
        def one_more() -> tuple[tuple[State, Scalars], Any]:
            state, (scalars, anomaly) = epoch(last[0], index)
            return (state, scalars), anomaly

        over = last[1][stop.scalar] > stop.above  # on all devices alike, as scalars are means
        nothing = jax.tree.map(lambda x: jnp.full_like(x, anomalies.NONE), first)
        return jax.lax.cond(over, lambda: (last, nothing), one_more)

    (state, scalars), anomaly = jax.lax.scan(go_on, (state, scalars), epochs[1:])
    anomaly = jax.tree.map(lambda one, more: jnp.concatenate([one[None], more]), first, anomaly)
    return state, scalars, anomaly


def _mean_over_minibatches(gradient: Callable[[Any], PyTree], minibatches: Any) -> PyTree:
    """Mean of `gradient` over K minibatches, with K as the first axis, one after another."""
    count = len(jax.tree.leaves(minibatches)[0])
    first = gradient(jax.tree.map(lambda x: x[0], minibatches))
    if count == 1:
        return first

    def add(sums: PyTree, minibatch: Any) -> tuple[PyTree, None]:
        return jax.tree.map(jnp.add, sums, gradient(minibatch)), None

    sums, _ = jax.lax.scan(add, first, jax.tree.map(lambda x: x[1:], minibatches))
    return jax.tree.map(lambda x: x / count, sums)


def convert_params(state: State, convert: Callable[[PyTree], PyTree]) -> State:
    """The state with its params converted, and with them what is kept for each of them."""
    structure: Any = jax.tree.structure(state.params)

    def like_params(tree: PyTree) -> bool:
        return bool(structure == jax.tree.structure(tree))

    def converted(tree: PyTree) -> PyTree:
        return convert(tree) if like_params(tree) else tree

    result: State = jax.tree.map(converted, state, is_leaf=like_params)
    return result
