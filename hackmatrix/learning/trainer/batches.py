"""The samples of an update, their advantages, and the minibatches that they are shuffled into.

Minibatches are drawn from fixed groups of games, each group shuffled separately: a device can
shuffle its own groups without knowing the others, and every minibatch holds the same transitions
however many devices share the groups.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.agents.networks.network import ChanceNetwork, Network, unroll
from hackmatrix.core.devices import mesh
from hackmatrix.environments.interface.environment import PyTree
from hackmatrix.learning.trainer.algorithm import Hyperparameters, Setup
from hackmatrix.learning.trainer.config import AlgorithmConfig
from hackmatrix.learning.trainer.keys import Purpose, UpdateKeys
from hackmatrix.learning.trainer.rollout import Rollout
from hackmatrix.learning.trainer.tasks import Spread

Array = jax.Array

_NUMBER_BITS = 12  # low bits of a sorted word that hold the number: the other 20 are random


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
    advantage_spread: Spread | None = None  # of a minibatch, over its shares on all devices


class Minibatches(NamedTuple):
    """The parts of a batch that are minibatches: M of them, or one without that axis."""

    indices: Array  # int32[M, B/M], of samples
    advantage_spread: Spread | None

    def of(self, batch: Batch) -> Batch:
        """The samples of one minibatch."""
        if batch.samples.starts is None:
            samples, carry = jax.tree.map(self._rows, batch.samples), batch.carry
        else:
            samples = jax.tree.map(partial(self._rows, axis=1), batch.samples)
            carry = jax.tree.map(self._rows, batch.carry)
        return Batch(samples, carry, self.advantage_spread)

    def _rows(self, array: Array, axis: int = 0) -> Array:
        """Its part of an array; indices that need no check are no kernel of their own."""
        return jnp.take(array, self.indices, axis, mode="clip")


def with_advantages(rollout: Rollout, hyper: Hyperparameters) -> Batch:
    """The rollout's samples with their generalized advantages.

    Transitions get one axis [T * N]; sequences stay [T, N].
    """
    steps = rollout.steps
    advantages = generalized_advantages(
        steps.reward,
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


class Shares(NamedTuple):
    """The division of the samples of this device's games into minibatches.

    A sample is one transition, with the index `step * num_envs + game`. For a recurrent network it
    is a whole sequence of a game, as if every game had one step.
    """

    num_steps: int
    num_envs: int  # games of this device
    num_groups: int  # of games of this device; see `AlgorithmConfig`
    num_minibatches: int

    @classmethod
    def of(cls, config: AlgorithmConfig, num_envs: int, *, recurrent: bool) -> "Shares":
        """The shares of a device that has `num_envs` of the games."""
        num_steps = 1 if recurrent else config.num_steps
        groups = config.num_groups(recurrent=recurrent)
        return cls(
            num_steps, num_envs, groups * num_envs // config.num_envs, config.num_minibatches
        )


def shuffle(
    setup: Setup, batch: Batch, keys: UpdateKeys, epoch: Array, *, measure_advantages: bool = False
) -> Minibatches:
    """The minibatches of an epoch; each sample of the batch is in one of them.

    They are indices, so that observations are gathered in compact form. With `measure_advantages`
    the mean and the deviation of each minibatch's advantages are measured here, once an epoch, so
    that devices need not wait for each other twice more in each gradient step.
    """
    num_envs = batch.samples.action.size // setup.config.num_steps
    shares = Shares.of(setup.config, num_envs, recurrent=setup.network.recurrent)
    indices = minibatch_indices(keys, epoch, shares, mesh.first_index(shares.num_groups))
    return Minibatches(indices, _spread(batch.samples, indices) if measure_advantages else None)


def minibatch_indices(keys: UpdateKeys, epoch: Array, shares: Shares, first_group: Array) -> Array:
    """Sample indices of each minibatch, int32[M, B/M]; each sample is used once an epoch.

    Every minibatch takes the same number of samples from every group.

    Args:
        keys: random keys of the update.
        epoch: int32[].
        shares: how this device's samples are divided.
        first_group: int32[], index of this device's first group among all groups.
    """
    num_steps, num_envs, groups, num_minibatches = shares
    width = num_envs // groups
    shuffle = keys.many(Purpose.SHUFFLE, epoch, indices=first_group + jnp.arange(groups))
    order = jax.vmap(_permutation, in_axes=(0, None))(shuffle, num_steps * width)
    game = jnp.arange(groups)[:, None] * width + order % width
    index = order // width * num_envs + game
    parts = index.reshape(groups, num_minibatches, -1)
    return parts.swapaxes(0, 1).reshape(num_minibatches, -1)


def _permutation(key: Array, size: int) -> Array:
    """The numbers below `size` in random order, int32[size], by one sort of random bits.

    On CPU, sorting single words takes a tenth of the time of `jax.random.permutation`, which sorts
    key-value pairs, and does so twice. So the number is packed into the low bits of the random word
    where it fits. Ties of the random bits, about eight pairs in 4,096, keep their two numbers in
    order.
    """
    random, number = jax.random.bits(key, (size,)), jnp.arange(size, dtype=jnp.uint32)
    if size > 2**_NUMBER_BITS:
        return jnp.argsort(random).astype(jnp.int32)
    packed = jnp.sort(random >> _NUMBER_BITS << _NUMBER_BITS | number)
    return (packed & (2**_NUMBER_BITS - 1)).astype(jnp.int32)


def apply_network(network: Network, params: PyTree, batch: Batch) -> tuple[Array, Array]:
    """The network's logits and values for the samples, with their leading axes."""
    samples = batch.samples
    if samples.starts is None:
        logits, value, _ = network(params, samples.obs)
        return logits, value
    return unroll(network, params, samples.obs, samples.starts, batch.carry)


def explained_variance(samples: Samples) -> Array:
    """1 - Var(returns - values) / Var(returns); 0 where the returns do not vary."""
    variance = _variance(samples.advantage + samples.value)
    return jnp.where(variance > 0, 1 - _variance(samples.advantage) / variance, 0.0)


def _spread(samples: Samples, indices: Array) -> Spread:
    """That of the advantages of each minibatch, [M], from indices int32[M, B/M]."""

    def of_minibatches(array: Array) -> Array:
        if samples.starts is None:
            return array[indices]
        sequences = jnp.moveaxis(array[:, indices], 0, 1)  # [M, T, B/M, ...]
        return jax.lax.collapse(sequences, 1, 3)

    tasks = None if samples.tasks is None else of_minibatches(samples.tasks)
    return Spread.of(of_minibatches(samples.advantage), tasks)


def _variance(values: Array) -> Array:
    """Variance over the values of all devices."""
    centred = values - mesh.pmean(jnp.mean(values))
    return mesh.pmean(jnp.mean(centred**2))


# --- Advantages by GAE, and the losses of a network's values --------------------------------------


_SURE = 1e-6  # chances nearer to 0 or 1 are not told apart: their logarithms are not exact


def generalized_advantages(
    rewards: Array,
    values: Array,
    last_value: Array,
    final_values: Array,
    terminated: Array,
    truncated: Array,
    *,
    gamma: float | Array,
    gae_lambda: float | Array,
) -> Array:
    """Generalized advantages, float32[T, N]; see `Environment` for the end of an episode.

    Schulman et al. 2016, https://arxiv.org/abs/1506.02438.

    Args:
        rewards: float32[T, N].
        values: float32[T, N], of the observations before the steps.
        last_value: float32[N], of the observation after the last step.
        final_values: float32[T, N], of the final observation; used only where truncated.
        terminated: bool[T, N], whether the episode ended as part of the game: no value follows.
        truncated: bool[T, N], whether the episode was cut off: the final value is bootstrapped.
        gamma: discount of one step.
        gae_lambda: 0 looks one step ahead, 1 to the end of the episode.
    """
    following = jnp.concatenate([values[1:], last_value[None]])
    following = jnp.where(truncated, final_values, following)
    following = jnp.where(terminated, 0.0, following)
    deltas = rewards + gamma * following - values
    decay = jnp.where(terminated | truncated, 0.0, gamma * gae_lambda)

    def backwards(advantage: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        delta, factor = step
        advantage = delta + factor * advantage
        return advantage, advantage

    _, advantages = jax.lax.scan(
        backwards, jnp.zeros_like(last_value), (deltas, decay), reverse=True
    )
    return advantages


class Terms(NamedTuple):
    """A loss: a factor times the mean of the terms of all samples."""

    factor: float
    per_sample: Array


def value_loss(network: Network, values: Array, returns: Array) -> Array:
    """The loss of a network's values, float32[]."""
    terms = value_terms(network, values, returns)
    return terms.factor * jnp.mean(terms.per_sample)


def value_terms(network: Network, values: Array, returns: Array) -> Terms:
    """The loss of a network's values: half the mean squared error.

    Of chances it is the cross-entropy with returns of 0..1, outcomes or expected ones: its minimum
    is calibrated, and its gradient does not vanish where a chance near 1 is wrong.
    """
    if not isinstance(network, ChanceNetwork):
        return Terms(0.5, (values - returns) ** 2)
    chances = jnp.clip(values, _SURE, 1 - _SURE)
    return Terms(-1.0, returns * jnp.log(chances) + (1 - returns) * jnp.log1p(-chances))


def clipped_value_terms(value: Array, near: Array, returns: Array) -> Terms:
    """Half the mean of the larger squared error, of the values or of those kept `near` the old."""
    return Terms(0.5, jnp.maximum((value - returns) ** 2, (near - returns) ** 2))
