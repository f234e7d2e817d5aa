"""Gradient steps on the minibatches of a rollout, for as many epochs as the settings say."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import struct
from jax.flatten_util import ravel_pytree

from hackmatrix.agents.networks.network import Network, sharing_of, unroll
from hackmatrix.core.devices import mesh
from hackmatrix.environments.interface.environment import PyTree
from hackmatrix.learning.ppo import anomalies
from hackmatrix.learning.ppo.advantages import generalized_advantages
from hackmatrix.learning.ppo.algorithm import Learned, Scalars, Weights
from hackmatrix.learning.ppo.hyperparameters import Hyperparameters
from hackmatrix.learning.ppo.keys import UpdateKeys
from hackmatrix.learning.ppo.minibatches import Shares, minibatch_indices
from hackmatrix.learning.ppo.rollout import Rollout
from hackmatrix.learning.ppo.setup import Task
from hackmatrix.learning.ppo.tasks import Spread, of_games

Array = jax.Array


class Samples(NamedTuple):
    """The inputs of a loss: transitions with the leading axis B, or sequences, [T, B]."""

    obs: PyTree
    mask: Array  # uint32
    action: Array  # uint8
    stored: dict[str, Array]  # what the algorithm's `choose` stored
    value: Array  # float32, of the network that acted, in scaled units
    advantage: Array  # float32, in scaled units
    starts: Array | None  # bool, whether the step begins an episode; for recurrent networks
    tasks: Array | None = None  # float32, see `tasks.py`, with an axis K at the end

    @property
    def returns(self) -> Array:
        """Lambda-returns in scaled units, float32."""
        return self.advantage + self.value


class Batch(NamedTuple):
    """The samples of one update.

    For a recurrent network they are sequences of T steps, and `carry` is the network's carry before
    the first step, with the leading axis B. Otherwise they are transitions, and `carry` is the
    empty tree.
    """

    samples: Samples
    carry: PyTree
    advantages: Spread | None = None  # of a minibatch, over its shares on all devices


# From the network's params and a minibatch to the loss, and its parts by name.
Loss = Callable[[PyTree, Batch], tuple[Array, Scalars]]


class EarlyStop(NamedTuple):
    """Ends the epochs of an update after one in which a part of the loss was above a limit."""

    part: str
    above: Any  # float32[]


class _Stacked(struct.PyTreeNode):
    """Scalars as one array, float32[..., K]: each array that a loop fills is a kernel."""

    numbers: Array
    names: tuple[str, ...] = struct.field(pytree_node=False)

    @classmethod
    def of(cls, scalars: Scalars) -> "_Stacked":
        """Those of a gradient step."""
        return cls(jnp.stack([*scalars.values()]), tuple(scalars))

    def means(self) -> Scalars:
        """The mean over the gradient steps, [M, K], of each."""
        return dict(zip(self.names, jnp.mean(self.numbers, axis=0), strict=True))


Norm = Callable[[PyTree], Array]  # of gradients, float32[]


def clip_by_global_norm(
    max_norm: Any, norm_of: Norm = optax.tree.norm
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


def answers(network: Network, params: PyTree, batch: Batch) -> tuple[Array, Array]:
    """The network's logits and values for the samples, with their leading axes."""
    samples = batch.samples
    if samples.starts is None:
        logits, value, _ = network(params, samples.obs)
        return logits, value
    return unroll(network, params, samples.obs, samples.starts, batch.carry)


def gradient_steps(
    task: Task,
    weights: Weights,
    batch: Batch,
    keys: UpdateKeys,
    hyper: Hyperparameters,
    network_params: Callable[[PyTree], PyTree],
    *,
    loss: Loss,
    losses: tuple[str, ...],
    optimizer: optax.GradientTransformation,
    measures_advantages: bool = False,
    scalars_of: Callable[[Scalars], Scalars] = lambda parts: parts,
    stop: EarlyStop | None = None,
) -> Learned:
    """Runs the epochs of minibatch gradient steps on this device's share of a batch.

    Minibatches are gathered by index from the rollout, with observations in compact form.

    Args:
        task: the network and the settings; `num_envs` counts the games of all devices.
        weights: params and optimizer state before the update.
        batch: samples of this device's games.
        keys: random keys of the update.
        hyper: settings that are inputs of the update.
        network_params: maps the learned params to those that the network is applied with.
        loss: of this device's share of a minibatch.
        losses: parts of the loss that are searched for NaN and infinity.
        optimizer: makes gradients of the independent weights into directions.
        measures_advantages: whether the loss reads `Batch.advantages`. They are measured once an
            epoch, so that devices need not wait for each other twice more in each gradient step.
        scalars_of: makes what is measured of the parts of the loss, means over all devices.
        stop: when to leave out the epochs that are left.
    """
    config, network = task.config, task.network
    rate = hyper.learning_rate(keys.update)
    num_envs = batch.samples.action.size // config.num_steps
    shares = Shares.of(config, num_envs, recurrent=network.recurrent)
    first_group = mesh.first_index(shares.num_groups)
    sharing, norm = sharing_of(network), norm_with_copies(task)

    def objective(params: PyTree, minibatch: _Minibatch) -> tuple[Array, Scalars]:
        return loss(network_params(sharing.whole(params)), minibatch.of(batch))

    def gradient(params: PyTree, minibatch: _Minibatch) -> tuple[PyTree, Scalars]:
        (_, scalars), grads = jax.value_and_grad(objective, has_aux=True)(params, minibatch)
        return grads, scalars

    def step(weights: Weights, minibatches: _Minibatch) -> tuple[Weights, tuple[_Stacked, Any]]:
        grads, parts = mesh.pmean(_mean_over_minibatches(gradient, weights.params, minibatches))
        grads = jax.tree.map(lambda grad, n: grad / n, grads, sharing.copies(grads))
        scalars = scalars_of(parts) | {"grad_norm": norm(grads)}
        directions, opt_state = optimizer.update(grads, weights.opt_state, weights.params)
        params = jax.tree.map(
            lambda p, d: (p - rate * d).astype(p.dtype), weights.params, directions
        )
        found = None
        if task.detect_anomaly:
            tensors = anomalies.tensors_of_step(scalars, grads, params, losses)
            found = anomalies.first_of(tensors)
        return Weights(params, opt_state), (_Stacked.of(scalars), found)

    def epoch(weights: Weights, number: Array) -> tuple[Weights, tuple[Scalars, Any]]:
        indices = minibatch_indices(keys, number, shares, first_group)
        spread = _spread(batch.samples, indices) if measures_advantages else None
        together = config.gradient_accumulation_steps
        minibatches = jax.tree.map(
            lambda x: x.reshape(-1, together, *x.shape[1:]), _Minibatch(indices, spread)
        )
        weights, (scalars, found) = jax.lax.scan(step, weights, minibatches)
        return weights, (scalars.means(), found)

    weights = _converted(weights, sharing.independent)
    numbers = jnp.arange(config.update_epochs)
    if stop is None:
        weights, (scalars, found) = jax.lax.scan(epoch, weights, numbers)
        scalars = jax.tree.map(lambda epochs: epochs[-1], scalars)
    else:
        weights, scalars, found = _until(stop, epoch, weights, numbers)
    scalars |= {"explained_variance": _explained_variance(batch.samples)}
    found = None if found is None else found.reshape(-1)
    return Learned(_converted(weights, sharing.whole), scalars, found)


def _converted(weights: Weights, convert: Callable[[PyTree], PyTree]) -> Weights:
    """Params converted, and with them what the optimizer keeps for each of them."""
    structure: Any = jax.tree.structure(weights.params)

    def like_params(tree: PyTree) -> bool:
        return bool(structure == jax.tree.structure(tree))

    def converted(tree: PyTree) -> PyTree:
        return convert(tree) if like_params(tree) else tree

    opt_state = jax.tree.map(converted, weights.opt_state, is_leaf=like_params)
    return Weights(convert(weights.params), opt_state)


def norm_with_copies(task: Task) -> Norm:
    """The norm of the gradients of all weights, from those of the independent ones."""
    copies = sharing_of(task.network).copies

    def norm(grads: PyTree) -> Array:
        if task.few_kernels:
            scaled = jax.tree.map(lambda g, n: n**0.5 * g, grads, copies(grads))
            return jnp.sqrt(jnp.sum(ravel_pytree(scaled)[0] ** 2))
        squares = jax.tree.map(lambda g, n: n * jnp.sum(g**2), grads, copies(grads))
        return jnp.sqrt(optax.tree.sum(squares))

    return norm


def _until(
    stop: EarlyStop, epoch: Callable[..., Any], weights: Weights, numbers: Array
) -> tuple[Weights, Scalars, Any]:
    """The epochs until `stop`: the weights, the scalars of the last of them, the anomalies."""
    weights, (scalars, first) = epoch(weights, numbers[0])

    def go_on(last: tuple[Weights, Scalars], number: Array) -> tuple[tuple[Weights, Scalars], Any]:
        def one_more() -> tuple[tuple[Weights, Scalars], Any]:
            weights, (scalars, found) = epoch(last[0], number)
            return (weights, scalars), found

        over = last[1][stop.part] > stop.above  # on all devices alike, as the parts are means
        nothing = jax.tree.map(lambda x: jnp.full_like(x, anomalies.NONE), first)
        return jax.lax.cond(over, lambda: (last, nothing), one_more)

    (weights, scalars), found = jax.lax.scan(go_on, (weights, scalars), numbers[1:])
    found = jax.tree.map(lambda one, more: jnp.concatenate([one[None], more]), first, found)
    return weights, scalars, found


def _mean_over_minibatches(
    gradient: Callable[[PyTree, "_Minibatch"], PyTree], params: PyTree, minibatches: "_Minibatch"
) -> PyTree:
    """Mean of `gradient` over K minibatches, with K as the first axis, one after another."""
    number = len(minibatches.indices)
    first = gradient(params, jax.tree.map(lambda x: x[0], minibatches))
    if number == 1:
        return first

    def add(sums: PyTree, minibatch: _Minibatch) -> tuple[PyTree, None]:
        return jax.tree.map(jnp.add, sums, gradient(params, minibatch)), None

    sums, _ = jax.lax.scan(add, first, jax.tree.map(lambda x: x[1:], minibatches))
    return jax.tree.map(lambda x: x / number, sums)


def batch_of(rollout: Rollout, reward_deviation: Array, hyper: Hyperparameters) -> Batch:
    """The rollout's samples with their advantages, computed from the scaled rewards.

    Transitions get one axis [T * N]; sequences stay [T, N].
    """
    steps = rollout.steps
    advantages = generalized_advantages(
        steps.reward / of_games(reward_deviation, rollout.tasks),
        steps.value,
        rollout.last_value,
        steps.final_value,
        steps.terminated,
        steps.truncated,
        gamma=hyper.gamma,
        gae_lambda=hyper.gae_lambda,
    )
    tasks = rollout.tasks
    samples = Samples(
        steps.obs,
        steps.mask,
        steps.action,
        steps.stored,
        steps.value,
        advantages,
        steps.starts,
        None if tasks is None else jnp.broadcast_to(tasks, (len(advantages), *tasks.shape)),
    )
    if steps.starts is None:
        samples = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), samples)
    return Batch(samples, rollout.first_carry)


class _Minibatch(NamedTuple):
    """The part of a batch that is a minibatch."""

    indices: Array  # int32[B/M], of samples
    advantages: Spread | None

    def of(self, batch: Batch) -> Batch:
        """Its samples."""
        if batch.samples.starts is None:
            samples, carry = jax.tree.map(self._rows, batch.samples), batch.carry
        else:
            samples = jax.tree.map(partial(self._rows, axis=1), batch.samples)
            carry = jax.tree.map(self._rows, batch.carry)
        return Batch(samples, carry, self.advantages)

    def _rows(self, array: Array, axis: int = 0) -> Array:
        """Its part of an array; indices that need no check are no kernel of their own."""
        return jnp.take(array, self.indices, axis, mode="clip")


def _spread(samples: Samples, indices: Array) -> Spread:
    """That of the advantages of each minibatch, [M], from indices int32[M, B/M]."""

    def of_minibatches(array: Array) -> Array:
        if samples.starts is None:
            return array[indices]
        sequences = jnp.moveaxis(array[:, indices], 0, 1)  # [M, T, B/M, ...]
        return jax.lax.collapse(sequences, 1, 3)

    tasks = None if samples.tasks is None else of_minibatches(samples.tasks)
    return Spread.of(of_minibatches(samples.advantage), tasks)


def _explained_variance(samples: Samples) -> Array:
    """1 - Var(returns - values) / Var(returns); 0 where the returns do not vary."""
    variance = _variance(samples.advantage + samples.value)
    return jnp.where(variance > 0, 1 - _variance(samples.advantage) / variance, 0.0)


def _variance(values: Array) -> Array:
    """Variance over the values of all devices."""
    centred = values - mesh.pmean(jnp.mean(values))
    return mesh.pmean(jnp.mean(centred**2))
