"""The masked distribution against float64 by hand, and no invalid action ever."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.agents.networks import distribution

ACTIONS = 28


def random_case(seed: int, size: int, scale: float = 3.0) -> tuple[np.ndarray, np.ndarray]:
    """Logits float32[size, 28] and masks with at least one valid action each."""
    random = np.random.default_rng(seed)
    logits = random.normal(scale=scale, size=(size, ACTIONS)).astype(np.float32)
    mask = random.random((size, ACTIONS)) < random.random((size, 1))
    mask[np.arange(size), random.integers(ACTIONS, size=size)] = True
    return logits, mask


def by_hand(logits: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, float]:
    """Log-probabilities of the valid actions and the entropy of one game, in float64."""
    valid = logits[mask].astype(np.float64)
    log_probs = valid - valid.max() - np.log(np.exp(valid - valid.max()).sum())
    return log_probs, -float((np.exp(log_probs) * log_probs).sum())


@pytest.mark.parametrize("scale", [0.01, 3.0, 40.0])
def test_log_probabilities_and_entropy_are_those_computed_by_hand(scale: float) -> None:
    logits, mask = random_case(0, 500, scale)
    log_probs = np.asarray(distribution.log_probabilities(jnp.asarray(logits), jnp.asarray(mask)))
    entropy = np.asarray(distribution.entropy(jnp.asarray(log_probs)))
    for i in range(len(logits)):
        expected, expected_entropy = by_hand(logits[i], mask[i])
        np.testing.assert_allclose(log_probs[i][mask[i]], expected, rtol=2e-6, atol=2e-6)
        assert (np.exp(log_probs[i][~mask[i]]) == 0).all()
        assert entropy[i] == pytest.approx(expected_entropy, abs=3e-6)


def test_one_valid_action_is_certain() -> None:
    mask = jnp.arange(ACTIONS) == 7
    log_probs = distribution.log_probabilities(jnp.linspace(-50.0, 50.0, ACTIONS), mask)
    assert log_probs[7] == 0
    assert distribution.entropy(log_probs) == 0
    for uniform in (0.0, 0.5, 1 - 2**-23):
        assert distribution.sample(log_probs, mask, jnp.float32(uniform)) == 7


def test_the_log_probability_of_an_action_is_read_at_its_place() -> None:
    log_probs = jnp.asarray(np.random.default_rng(1).normal(size=(ACTIONS, ACTIONS)))
    actions = jnp.arange(ACTIONS, dtype=jnp.uint8)
    chosen = distribution.log_probability(log_probs, actions)
    np.testing.assert_array_equal(chosen, jnp.diagonal(log_probs))


def test_gradients_are_finite_and_none_reaches_invalid_actions() -> None:
    logits, mask = random_case(2, 50)

    def objective(logits: jax.Array) -> jax.Array:
        log_probs = distribution.log_probabilities(logits, jnp.asarray(mask))
        action = jnp.argmax(jnp.asarray(mask), axis=-1)
        chosen = distribution.log_probability(log_probs, action)
        return jnp.sum(chosen + distribution.entropy(log_probs))

    gradient = np.asarray(jax.jit(jax.grad(objective))(jnp.asarray(logits)))
    assert np.isfinite(gradient).all()
    assert (gradient[~mask] == 0).all()
    assert np.abs(gradient[mask]).max() > 0


def test_the_gradient_that_is_written_out_is_the_derived_one() -> None:
    logits = 3 * jax.random.normal(jax.random.key(0), (5, 7))
    mask = jax.random.bernoulli(jax.random.key(1), 0.5, (5, 7)).at[:, 2].set(True)
    mask = mask.at[4].set(jnp.arange(7) == 2)  # no choice
    action = jnp.full(5, 2, jnp.uint8)

    def derived(logits: jax.Array) -> tuple[jax.Array, jax.Array]:
        log_probs = distribution.log_probabilities(logits, mask)
        return distribution.log_probability(log_probs, action), distribution.entropy(log_probs)

    def written_out(logits: jax.Array) -> tuple[jax.Array, jax.Array]:
        return distribution.evaluate_actions(logits, mask, action)

    def with_gradient(function: Any) -> Any:
        values, pull = jax.vjp(function, logits)
        return values, pull((jnp.arange(5.0), jnp.arange(5.0) - 3))

    found, expected = jax.jit(lambda: [with_gradient(each) for each in (written_out, derived)])()
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-5, atol=1e-6)


def test_masks_survive_packing() -> None:
    bits = np.random.default_rng(0).integers(2**ACTIONS, size=500)
    bits[:2] = 0, 2**ACTIONS - 1
    mask = bits[:, None] >> np.arange(ACTIONS) & 1 == 1
    packed = distribution.pack_mask(jnp.asarray(mask))
    assert packed.dtype == jnp.uint32
    np.testing.assert_array_equal(packed, bits)
    np.testing.assert_array_equal(distribution.unpack_mask(packed, ACTIONS), mask)


def test_32_actions_fit_a_mask_and_33_do_not() -> None:
    assert int(distribution.pack_mask(jnp.ones(32, bool))) == 2**32 - 1
    with pytest.raises(ValueError, match="at most 32 actions, got 33"):
        distribution.pack_mask(jnp.ones(33, bool))


@pytest.mark.parametrize(
    "calls", [pytest.param(1, marks=pytest.mark.thorough), pytest.param(20, marks=pytest.mark.slow)]
)
def test_of_half_a_million_samples_a_call_none_is_an_invalid_action(calls: int) -> None:
    games, draws = 50_000, 10

    @jax.jit
    def invalid(key: jax.Array) -> jax.Array:
        logits_key, mask_key, share_key, uniform_key = jax.random.split(key, 4)
        share = jax.random.uniform(share_key, (games, 1))
        mask = jax.random.uniform(mask_key, (games, ACTIONS)) < share
        mask |= jnp.arange(ACTIONS) == (jnp.arange(games) % ACTIONS)[:, None]
        logits = 16 * jax.random.normal(logits_key, (games, ACTIONS))
        log_probs = distribution.log_probabilities(logits, mask)
        # Two of ten draws are the extreme ones, where rounding would show.
        uniform = jax.random.uniform(uniform_key, (draws, games))
        uniform = uniform.at[0].set(1 - 2**-23).at[1].set(0.0)
        action = jax.vmap(distribution.sample, in_axes=(None, None, 0))(log_probs, mask, uniform)
        chosen = action[..., None] == jnp.arange(ACTIONS)
        return jnp.sum(~jnp.any(chosen & mask, axis=-1))

    assert sum(int(invalid(jax.random.key(i))) for i in range(calls)) == 0


@pytest.mark.parametrize("seed", range(4))
def test_however_the_sums_round_the_action_is_valid(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A parallel prefix sum rounds each entry in its own way; here, by up to 1e-3.
    noise = 1 + 1e-3 * jax.random.uniform(jax.random.key(seed), (1_000, ACTIONS), minval=-1)
    cumsum = jnp.cumsum
    monkeypatch.setattr(jnp, "cumsum", lambda x, axis: cumsum(x, axis=axis) * noise)
    logits, mask = random_case(seed, 1_000)
    log_probs = distribution.log_probabilities(jnp.asarray(logits), jnp.asarray(mask))
    for uniform in (0.0, 0.3, 0.7, 1 - 2**-23):
        uniforms = jnp.full(1_000, uniform, jnp.float32)
        action = np.asarray(distribution.sample(log_probs, jnp.asarray(mask), uniforms))
        assert mask[np.arange(1_000), action].all()


def test_a_valid_action_of_probability_zero_is_not_taken() -> None:
    mask = jnp.ones(3, bool)
    log_probs = distribution.log_probabilities(jnp.array([-500.0, 0.0, -500.0]), mask)
    for uniform in (0.0, 1 - 2**-23):
        assert distribution.sample(log_probs, mask, jnp.float32(uniform)) == 1


@pytest.mark.thorough
def test_samples_are_as_frequent_as_they_are_probable() -> None:
    logits, mask = random_case(3, 1, scale=1.0)
    log_probs = distribution.log_probabilities(jnp.asarray(logits[0]), jnp.asarray(mask[0]))
    draws = 200_000
    uniform = jax.random.uniform(jax.random.key(0), (draws,))
    shape = (draws, ACTIONS)
    actions = jax.jit(distribution.sample)(
        jnp.broadcast_to(log_probs, shape), jnp.broadcast_to(jnp.asarray(mask[0]), shape), uniform
    )
    counts = np.bincount(np.asarray(actions), minlength=ACTIONS)[mask[0]]
    expected = draws * np.exp(by_hand(logits[0], mask[0])[0])
    degrees = mask[0].sum() - 1
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert chi_square < degrees + 5 * np.sqrt(2 * degrees)


def test_the_most_probable_action_is_a_valid_one() -> None:
    logits, mask = random_case(4, 200)
    log_probs = distribution.log_probabilities(jnp.asarray(logits), jnp.asarray(mask))
    greedy = np.asarray(distribution.most_probable(log_probs, jnp.asarray(mask)))
    np.testing.assert_array_equal(greedy, np.where(mask, logits, -np.inf).argmax(axis=1))
