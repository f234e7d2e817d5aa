"""Advantages against a plain loop; what each end of an episode does to them."""

import jax.numpy as jnp
import numpy as np
import pytest

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


@pytest.mark.parametrize("ends", ["none", "terminated", "truncated", "both", "mixed"])
def test_advantages_are_those_of_a_plain_loop(ends: str) -> None:
    random = np.random.default_rng(5)
    flags = {
        "none": (0.0, 0.0),
        "terminated": (0.1, 0.0),
        "truncated": (0.0, 0.1),
        "mixed": (0.1, 0.1),
    }
    chances = flags.get(ends, (0.1, 0.0))
    terminated, truncated = (random.random((STEPS, GAMES)) < chance for chance in chances)
    if ends == "both":
        truncated = terminated
    rewards, values, final_values = random.normal(size=(3, STEPS, GAMES))
    arrays = (rewards, values, random.normal(size=GAMES), final_values, terminated, truncated)
    np.testing.assert_allclose(advantages(*arrays), plain_loop(*arrays), atol=1e-5)


@pytest.mark.parametrize(
    ("terminated", "truncated", "following"),
    [(False, False, 20.0), (False, True, 300.0), (True, False, 0.0), (True, True, 0.0)],
)
def test_each_end_of_an_episode_has_its_value(
    terminated: bool, truncated: bool, following: float
) -> None:
    result = advantages(
        np.array([[1.0], [0.0]]),
        np.array([[5.0], [20.0]]),
        np.array([20.0 / GAMMA]),  # so that the second step's advantage is 0
        np.array([[300.0], [0.0]]),
        np.array([[terminated], [False]]),
        np.array([[truncated], [False]]),
    )
    assert result[0, 0] == pytest.approx(1.0 + GAMMA * following - 5.0, rel=1e-6)
