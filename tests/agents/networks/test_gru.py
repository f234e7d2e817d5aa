"""The recurrent network: what its unit computes, that it remembers, and that it can start anew."""

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import probe_environments as probes
import pytest

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.gru import GruNetwork
from hackmatrix.agents.networks.network import unroll

pytestmark = pytest.mark.thorough

STEPS, GAMES, SIZE = 6, 3, 8


def network_of(**settings: Any) -> GruNetwork:
    return GruNetwork(probes.Grid(), NetworkConfig("gru", SIZE, **{"num_layers": 1} | settings))


@cache
def plain() -> tuple[GruNetwork, Any, Any]:
    """A network, its first params, and its forward pass, compiled once."""
    network = network_of()
    return network, jax.jit(network.init)(jax.random.key(0)), jax.jit(network.__call__)


def cells(*shape: int) -> jax.Array:
    return jax.random.randint(jax.random.key(3), (*shape, 1), 0, 25).astype(jnp.uint8)


def stepwise(network: GruNetwork, *args: Any) -> Any:
    """`unroll` of a network that has none of its own: one step after another."""

    class OneByOne:
        recurrent = True
        initial_carry = network.initial_carry
        __call__ = staticmethod(network.__call__)

    return unroll(OneByOne(), *args)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"num_layers": 2, "layer_norm": True}])
def test_all_steps_at_once_are_the_steps_one_by_one(settings: dict[str, Any]) -> None:
    network = network_of(**settings)
    params = jax.jit(network.init)(jax.random.key(0))
    starts = jax.random.bernoulli(jax.random.key(1), 0.4, (STEPS, GAMES))
    assert not starts[0].all()
    carry = jax.random.normal(jax.random.key(2), (GAMES, SIZE))
    args = params, cells(STEPS, GAMES), starts, carry

    def loss(how: Any, params: Any) -> jax.Array:
        logits, values = how(network, params, *args[1:])
        return jnp.sum(logits**2) + jnp.sum(values**3)

    answers = [jax.jit(partial(how, network))(*args) for how in (unroll, stepwise)]
    for found, expected in zip(*answers, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    grads = [jax.jit(jax.grad(partial(loss, how)))(params) for how in (unroll, stepwise)]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4), *grads)


def test_a_start_forgets_and_nothing_else_does() -> None:
    network, params, _ = plain()
    observations = cells(STEPS, GAMES)
    unrolled = jax.jit(partial(unroll, network))
    starts = jnp.zeros((STEPS, GAMES), bool).at[2].set(True)
    known, other = jax.random.normal(jax.random.key(2), (2, GAMES, SIZE))
    found = unrolled(params, observations, starts, known)[0]
    changed = unrolled(params, observations, starts, other)[0]
    later = (jnp.roll(each, -2, axis=0) for each in (observations, starts))
    fresh = unrolled(params, *later, network.initial_carry(GAMES))[0]
    assert (np.abs(found[:2] - changed[:2]).max(axis=(1, 2)) > 1e-6).all()
    np.testing.assert_array_equal(found[2:], changed[2:])
    np.testing.assert_allclose(found[2:], fresh[:-2], rtol=1e-6)


def params_with(gates: list[float]) -> Any:
    """Params whose layer to the gates r, z and n is these biases alone."""
    params: Any = jax.tree.map(np.zeros_like, jax.device_get(plain()[1]))
    params["params"]["Dense_1"]["bias"] = np.repeat(np.array(gates, np.float32), SIZE)
    return params


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        ([0.0, 0.0, 0.0], 0.5 * 0.8),  # half of the old, half of tanh(0)
        ([0.0, 50.0, 3.0], 0.8),  # keeps all
        ([0.0, -50.0, 3.0], np.tanh(3.0)),  # keeps nothing
        ([0.0, np.log(3), 3.0], 0.75 * 0.8 + 0.25 * np.tanh(3.0)),
    ],
)
def test_the_update_gate_mixes_old_and_new(gates: list[float], expected: float) -> None:
    _, _, forward = plain()
    carry = jnp.full((GAMES, SIZE), 0.8)
    _, _, after = forward(params_with(gates), cells(GAMES), carry)
    np.testing.assert_allclose(after, np.full((GAMES, SIZE), expected), rtol=1e-6)


@pytest.mark.parametrize(("reset", "expected"), [(0.0, np.tanh(0.4)), (50.0, np.tanh(0.8))])
def test_the_reset_gate_weighs_what_the_memory_adds(reset: float, expected: float) -> None:
    _, _, forward = plain()
    params = params_with([reset, -50.0, 0.0])
    params["params"]["memory"][:, 2 * SIZE :] = np.eye(SIZE)
    _, _, after = forward(params, cells(GAMES), jnp.full((GAMES, SIZE), 0.8))
    np.testing.assert_allclose(after, np.full((GAMES, SIZE), expected), rtol=1e-6)


def test_the_matrix_of_each_gate_is_orthogonal() -> None:
    kernel = plain()[1]["params"]["memory"]
    for gate in np.split(np.asarray(kernel), 3, axis=1):
        np.testing.assert_allclose(gate.T @ gate, np.eye(SIZE), atol=1e-5)
