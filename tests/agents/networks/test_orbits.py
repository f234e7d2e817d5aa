"""Sums over mirrored games: their number, their signs, and products taken with them."""

import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.agents.networks.symmetry import Orbits, signed_sum

# Places 0 to 3 are swapped by both reflections, 4 and 5 by the first, 6 and 7 by the second, 8 by
# none, 9 and 10 by each alone, so that both together leave them as they are.
WAYS = np.array([[1, 0, 3, 2, 5, 4, 6, 7, 8, 10, 9], [2, 3, 0, 1, 4, 5, 7, 6, 8, 10, 9]])


def test_orbits_of_two_reflections() -> None:
    orbits = Orbits(WAYS)
    sizes = dict(zip(orbits.order.tolist(), orbits.sizes.tolist(), strict=True))
    assert sizes == {0: 4, 1: 4, 2: 4, 3: 4, 4: 2, 5: 2, 6: 2, 7: 2, 8: 1, 9: 2, 10: 2}


def test_sums_have_the_signs_of_their_characters() -> None:
    orbits = Orbits(WAYS)
    values = 2 ** jnp.arange(11)
    even, first, second, both = (
        sorted(np.abs(part).tolist()) for part in orbits.components(orbits.reorder(values))
    )
    assert even == sorted([1 + 2 + 4 + 8, 16 + 32, 64 + 128, 256, 512 + 1024])
    assert first == sorted([abs(1 - 2 + 4 - 8), 32 - 16])
    assert second == sorted([abs(1 + 2 - 4 - 8), 128 - 64])
    assert both == [abs(1 - 2 - 4 + 8), 1024 - 512]


@pytest.mark.thorough
@pytest.mark.parametrize("ways", [WAYS, WAYS[:1], np.arange(4)[None]], ids=["two", "one", "none"])
def test_products_with_sums_are_those_with_mirrored_weights(ways: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    orbits = Orbits(ways)
    inputs, weights = (
        rng.normal(size=shape).astype(np.float32)
        for shape in ((3, ways.shape[1]), (ways.shape[1], 2))
    )
    moved = np.arange(ways.shape[1])[None]
    for way in ways:
        moved = np.concatenate([moved, moved[:, way]])
    expected = [inputs @ weights[element] for element in moved]
    sums = orbits.components(orbits.reorder(jnp.array(inputs)))
    rows = orbits.reorder(jnp.array(weights), axis=0) / orbits.sizes[:, None]
    products = [a @ b for a, b in zip(sums, orbits.components(rows, axis=0), strict=True)]
    elements = range(len(moved))
    got = [signed_sum(products, elements, element) for element in elements]
    np.testing.assert_allclose(got, expected, atol=1e-5)
    assert sum(part.shape[-1] for part in sums) == ways.shape[1]
