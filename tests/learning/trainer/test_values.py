"""Advantages against a plain loop; what each end of an episode does to them."""

import jax.numpy as jnp
import numpy as np

from hackmatrix.learning.trainer.batches import generalized_advantages

GAMMA, LAMBDA = 0.97, 0.9
STEPS, GAMES = 40, 30


def plain_loop(
    rewards: np.ndarray,
    values: np.ndarray,
    last_value: np.ndarray,
    final_values: np.ndarray,
    terminated: np.ndarray,
    truncated: np.ndarray,
) -> np.ndarray:
    """The definition: the sum of (gamma lambda)^k delta_k up to the episode's end, in float64."""
    steps, games = rewards.shape
    result = np.zeros((steps, games))
    for game in range(games):
        for t in range(steps):
            weight = 1.0
            for k in range(t, steps):
                if terminated[k, game]:
                    following = 0.0
                elif truncated[k, game]:
                    following = final_values[k, game]
                elif k + 1 < steps:
                    following = values[k + 1, game]
                else:
                    following = last_value[game]
                delta = rewards[k, game] + GAMMA * following - values[k, game]
                result[t, game] += weight * delta
                weight *= GAMMA * LAMBDA
                if terminated[k, game] or truncated[k, game]:
                    break
    return result


def advantages(*arrays: np.ndarray) -> np.ndarray:
    converted = [jnp.asarray(a, bool if a.dtype == bool else jnp.float32) for a in arrays]
    return np.asarray(generalized_advantages(*converted, gamma=GAMMA, gae_lambda=LAMBDA))


def test_advantages_are_those_of_a_plain_loop() -> None:
    random = np.random.default_rng(5)
    terminated, truncated = random.random((2, STEPS, GAMES)) < 0.15
    ends = set(zip(terminated.ravel().tolist(), truncated.ravel().tolist(), strict=True))
    assert len(ends) == 4  # none, each, and both
    rewards, values, final_values = random.normal(size=(3, STEPS, GAMES))
    arrays = (rewards, values, random.normal(size=GAMES), final_values, terminated, truncated)
    np.testing.assert_allclose(advantages(*arrays), plain_loop(*arrays), atol=1e-5)
