"""Permutation groups: every transition once an epoch, the same share of every group."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.learning.algorithms.config import PPOConfig
from hackmatrix.learning.trainer.batches import Shares, minibatch_indices, value_loss
from hackmatrix.learning.trainer.keys import UpdateKeys


def groups_of(num_envs: int, num_steps: int, num_minibatches: int) -> int:
    config = PPOConfig(num_envs=num_envs, num_steps=num_steps, num_minibatches=num_minibatches)
    return config.num_groups(recurrent=False)


@partial(jax.jit, static_argnums=3)
def indices_for(seed: int, update: int, epoch: int, shares: Shares, first_group: int) -> Any:
    keys = UpdateKeys(jnp.uint32(seed), jnp.int32(update))
    return minibatch_indices(keys, jnp.int32(epoch), shares, jnp.int32(first_group))


def indices_of(
    seed: int, update: int, epoch: int, num_envs: int, num_steps: int, num_minibatches: int
) -> Any:
    """Of all games on one device."""
    groups = groups_of(num_envs, num_steps, num_minibatches)
    shares = Shares(num_steps, num_envs, groups, num_minibatches)
    return np.asarray(indices_for(seed, update, epoch, shares, 0))


@pytest.mark.parametrize(
    ("num_envs", "num_steps", "num_minibatches", "groups"),
    [
        (256, 128, 4, 64),
        (2048, 128, 32, 64),
        (96, 10, 5, 48),
        (7, 4, 2, 7),
        (64, 1, 4, 16),  # a group of 4 games and 1 step gives each of 4 minibatches 1 transition
        (3, 5, 15, 1),
        (1, 8, 4, 1),
    ],
)
def test_groups_divide_the_games_and_share_every_minibatch(
    num_envs: int, num_steps: int, num_minibatches: int, groups: int
) -> None:
    assert groups_of(num_envs, num_steps, num_minibatches) == groups


@pytest.mark.parametrize(
    ("num_envs", "num_steps", "num_minibatches"),
    [(128, 8, 4), (3, 5, 15), (1, 5_000, 4)],  # the last: of many numbers
)
def test_an_epoch_uses_every_transition_once(
    num_envs: int, num_steps: int, num_minibatches: int
) -> None:
    indices = indices_of(1, 2, 3, num_envs, num_steps, num_minibatches)
    size = num_envs * num_steps
    assert indices.shape == (num_minibatches, size // num_minibatches)
    np.testing.assert_array_equal(np.sort(np.asarray(indices).ravel()), np.arange(size))
    groups = groups_of(num_envs, num_steps, num_minibatches)
    group = np.asarray(indices) % num_envs // (num_envs // groups)
    for minibatch in group:
        share = size // num_minibatches // groups
        np.testing.assert_array_equal(np.bincount(minibatch, minlength=groups), share)


def test_every_seed_update_epoch_and_group_has_its_own_permutation() -> None:
    def first_of_each_group(seed: int, update: int, epoch: int) -> list[bytes]:
        indices = indices_of(seed, update, epoch, 64, 32, 2)
        steps = np.asarray(indices).reshape(2, 64, -1)[0] // 64  # [group, share]
        return [row.tobytes() for row in steps]

    cases = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    permutations = [p for case in cases for p in first_of_each_group(*case)]
    assert len(set(permutations)) == len(permutations)
    assert first_of_each_group(0, 1, 2) == first_of_each_group(0, 1, 2)


def test_devices_that_share_the_groups_fill_the_same_minibatches() -> None:
    shares = 4
    num_envs, num_steps, num_minibatches = 32, 8, 4
    whole = np.asarray(indices_of(0, 1, 2, num_envs, num_steps, num_minibatches))
    games, groups = num_envs // shares, 32 // shares
    parts = []
    for share in range(shares):
        share_of = Shares(num_steps, games, groups, num_minibatches)
        indices = indices_for(0, 1, 2, share_of, share * groups)
        step, game = np.divmod(np.asarray(indices), games)
        parts.append(step * num_envs + share * games + game)
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)


@pytest.mark.thorough
@pytest.mark.parametrize("size", [50, 5_000])
def test_every_number_may_come_anywhere(size: int) -> None:
    firsts, places = [], []
    for update in range(200):
        indices = indices_of(0, update, 0, 1, size, 1)
        order = np.asarray(indices)[0]
        firsts.append(order[0])
        places.append(np.flatnonzero(order == 0)[0])
    for sample in firsts, places:  # uniform: mean 1/2 with deviation 0.29 / sqrt(200) = 0.02
        assert np.mean(sample) / size == pytest.approx(0.5, abs=0.09)
        assert np.std(sample) / size == pytest.approx(0.29, abs=0.06)
    assert abs(np.corrcoef(firsts, places)[0, 1]) < 0.3


def test_the_loss_of_values_is_half_the_mean_squared_error() -> None:
    assert value_loss(object(), jnp.array([1.0, 5.0]), jnp.array([1.0, 1.0])) == 4
