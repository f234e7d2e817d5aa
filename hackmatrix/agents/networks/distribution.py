"""The distribution over valid actions: log-probabilities, entropy, sampling, and bit-packed masks.

Invalid actions get the logit -1e9: their probability is 0 exactly, and all gradients stay finite
(Huang and Ontanon 2020, https://arxiv.org/abs/2006.14171).
"""

from typing import Any

import jax
import jax.numpy as jnp

from hackmatrix.environments.interface.environment import MAX_ACTIONS

Array = jax.Array

INVALID_LOGIT = -1e9


def pack_mask(mask: Array) -> Array:
    """bool[..., A] -> uint32[...]: bit a is set where action a is valid."""
    num_actions = mask.shape[-1]
    if num_actions > MAX_ACTIONS:
        raise ValueError(f"a mask holds at most {MAX_ACTIONS} actions, got {num_actions}")
    bits = jnp.uint32(1) << jnp.arange(num_actions, dtype=jnp.uint32)
    return jnp.sum(jnp.where(mask, bits, 0), axis=-1, dtype=jnp.uint32)


def unpack_mask(packed: Array, num_actions: int) -> Array:
    """uint32[...] -> bool[..., num_actions], the inverse of `pack_mask`."""
    bits = jnp.arange(num_actions, dtype=jnp.uint32)
    return (packed[..., None] >> bits) & 1 != 0


def log_probabilities(logits: Array, mask: Array) -> Array:
    """Log-probabilities over the valid actions, float32[..., A]; about -1e9 where invalid."""
    return jax.nn.log_softmax(jnp.where(mask, logits.astype(jnp.float32), INVALID_LOGIT))


def log_probability(log_probs: Array, action: Array) -> Array:
    """float32[...] of integer actions [...]; a masked sum, whose gradient needs no scatter."""
    chosen = action[..., None] == jnp.arange(log_probs.shape[-1], dtype=action.dtype)
    return jnp.sum(jnp.where(chosen, log_probs, 0.0), axis=-1)


def entropy(log_probs: Array) -> Array:
    """Entropy in nats over the valid actions, float32[...]; invalid actions add exactly 0."""
    return -jnp.sum(jnp.exp(log_probs) * log_probs, axis=-1)


@jax.custom_vjp
def evaluate_actions(logits: Array, mask: Array, action: Array) -> tuple[Array, Array]:
    """Log-probabilities of valid actions [...], and entropies, of logits float32[..., A].

    The same numbers as of the functions above, with a gradient that is written out. It reads the
    log-probabilities alone, so that a GPU finds it in one pass over them.
    """
    log_probs = log_probabilities(logits, mask)
    return log_probability(log_probs, action), entropy(log_probs)


def _evaluate_actions(logits: Array, mask: Array, action: Array) -> tuple[tuple[Array, Array], Any]:
    log_probs = log_probabilities(logits, mask)
    of_policy = entropy(log_probs)
    return (log_probability(log_probs, action), of_policy), (log_probs, of_policy, action)


def _gradient(kept: Any, changes: tuple[Array, Array]) -> tuple[Array, None, None]:
    log_probs, of_policy, action = kept
    of_chosen, of_entropy = (change[..., None] for change in changes)
    chosen = action[..., None] == jnp.arange(log_probs.shape[-1], dtype=action.dtype)
    probs = jnp.exp(log_probs)
    gradient = of_chosen * (chosen - probs)
    return gradient - of_entropy * probs * (log_probs + of_policy[..., None]), None, None


evaluate_actions.defvjp(_evaluate_actions, _gradient)


def divergence(policy: Array, log_probs: Array, mask: Array) -> Array:
    """KL divergence in nats of a policy from probabilities `policy`, float32[...] of [..., A]."""
    known = jnp.log(jnp.where(policy > 0, policy, 1))
    return jnp.sum(jnp.where(mask, policy * (known - log_probs), 0), axis=-1)


def sample(log_probs: Array, mask: Array, uniform: Array) -> Array:
    """Samples valid actions, int32[...], by inverse CDF from one uniform number in [0, 1) each.

    It needs one random number a game, where Gumbel-max needs one for each action, and never returns
    an invalid action, however the sums round. The answer is the first *valid* action whose
    cumulative weight is above `uniform * top`, `top` being the largest cumulative weight of a valid
    action. As `uniform` is at most 1 - 2**-23, the product stays below `top` in float32 too, so
    there is one. (Without the mask a parallel prefix sum, which may round each entry differently,
    could let an action of weight 0 rise above its predecessor.) Where no action is valid the answer
    is 0.
    """
    cumulative = jnp.where(mask, jnp.cumsum(jnp.exp(log_probs), axis=-1), 0.0)
    top = jnp.max(cumulative, axis=-1, keepdims=True)
    above = cumulative > uniform[..., None] * top
    return jnp.argmax(above, axis=-1).astype(jnp.int32)


def epsilon_greedy(logits: Array, mask: Array, epsilon: Array, uniform: Array) -> Array:
    """The most probable valid actions, int32[...], or with chance epsilon any valid one.

    Args:
        logits: float32[..., A].
        mask: bool[..., A], the valid actions.
        epsilon: float32[].
        uniform: float32[...], random, from 0 to 1.
    """
    alike = log_probabilities(jnp.zeros_like(logits), mask)
    # Where the number is below epsilon, it is uniform from 0 to epsilon; the limit is that of the
    # numbers that `sample` takes.
    rescaled = jnp.minimum(uniform / jnp.maximum(epsilon, 1e-9), 1 - 2**-23)
    any_valid = sample(alike, mask, rescaled)
    return jnp.where(uniform < epsilon, any_valid, most_probable(logits, mask))


def most_probable(log_probs: Array, mask: Array) -> Array:
    """int32[...], the valid action of highest probability (the first among equals)."""
    return jnp.argmax(jnp.where(mask, log_probs, -jnp.inf), axis=-1).astype(jnp.int32)
