"""Losses of a network's values."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.agents.networks.network import ChanceNetwork, Network

Array = jax.Array

_SURE = 1e-6  # chances nearer to 0 or 1 are not told apart: their logarithms are not exact


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
