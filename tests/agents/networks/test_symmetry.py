"""Symmetric networks: mirrored games get mirrored answers, before and after learning."""

from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import probe_environments as probes
import pytest
from small_runs import config_in, run_of

import hackmatrix
from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.network import encode_observations, make_network, sharing_of
from hackmatrix.agents.networks.policy import load_policy
from hackmatrix.core.errors import UserError
from hackmatrix.environments.interface.environment import Reflections
from hackmatrix.learning.algorithms.config import PPOConfig
from hackmatrix.learning.settings.config import TrainConfig, TrainOptions
from hackmatrix.learning.trainer.algorithm import Setup
from hackmatrix.learning.trainer.gradients import norm_with_copies
from hackmatrix.runs.params import save_params

SHAPES: list[dict[str, Any]] = [
    {},
    {"layer_norm": True, "num_layers": 3, "activation": "tanh"},
    {"value": "chance", "num_layers": 1},
]


class Turned(probes.Grid):
    """A grid that says it can be turned around in one way."""

    reflections = Reflections(
        np.arange(probes.Grid.feature_size)[None, ::-1],
        np.arange(probes.Grid.num_actions)[None, ::-1],
    )


def mirrored_answer(env: Any, network: Any, params: Any, features: jax.Array, axis: int) -> Any:
    """The answer to mirrored features, mirrored back."""
    logits, values = answer(network, params, features[:, env.reflections.features[axis]])
    return logits[:, env.reflections.actions[axis]], values


def answer(network: Any, params: Any, features: jax.Array) -> Any:
    inner = getattr(network, "_network", network)  # of the one whose value is a chance
    read = features if inner.symmetry is None else inner.symmetry.features(features)
    return inner.module.apply(params, read)


def randomised(network: Any, params: Any) -> Any:
    """Other params of the same network, none of them 0."""
    leaves, structure = jax.tree.flatten(params)
    keys = jax.random.split(jax.random.key(9), len(leaves))
    noise = [jax.random.normal(key, x.shape) for key, x in zip(keys, leaves, strict=True)]
    return sharing_of(network).share(jax.tree.unflatten(structure, noise))


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_mirrored_game_gets_the_mirrored_answer(shape: dict[str, Any]) -> None:
    env = hackmatrix.make(layout="tactical")
    network = make_network(env, NetworkConfig(symmetric=True, hidden_dim=16, **shape))
    features = jax.random.normal(jax.random.key(1), (5, env.feature_size))
    first = network.init(jax.random.key(0))
    for params in (first, randomised(network, first)):
        expected = answer(network, params, features)
        for axis in range(2):
            got = mirrored_answer(env, network, params, features, axis)
            jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=2e-4), got, expected)
    other = make_network(env, NetworkConfig(hidden_dim=16, **shape))
    unshared = other.init(jax.random.key(0))
    logits, _ = mirrored_answer(env, other, unshared, features, 0)
    assert np.abs(logits - answer(other, unshared, features)[0]).max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_answers_and_shared_gradients_are_those_of_any_mlp(shape: dict[str, Any]) -> None:
    env = hackmatrix.make(layout="tactical")
    ours, other = (
        make_network(env, NetworkConfig(symmetric=symmetric, hidden_dim=16, **shape))
        for symmetric in (True, False)
    )
    params = randomised(ours, ours.init(jax.random.key(0)))
    observations, _ = jax.vmap(env.reset)(jax.random.split(jax.random.key(2), 6))

    def loss(network: Any, params: Any) -> Any:
        logits, values, _ = network(params, encode_observations(network, observations))
        return (logits[:, 3] + values).sum() / 100, (logits, values)

    sharing = sharing_of(ours)

    def of(network: Any) -> Any:
        def objective(weights: Any) -> Any:
            return loss(network, sharing.whole(weights))

        return jax.grad(objective, has_aux=True)(sharing.independent(params))

    (got_gradient, got), (gradient, expected) = map(of, (ours, other))
    close = partial(np.testing.assert_allclose, rtol=2e-3, atol=2e-3)
    jax.tree.map(close, (got, got_gradient), (expected, gradient))


@pytest.mark.thorough
def test_a_gradient_of_independent_weights_has_the_norm_of_all() -> None:
    env = Turned()
    network = make_network(env, NetworkConfig(symmetric=True, hidden_dim=8))
    sharing = sharing_of(network)
    setups = [Setup(env, network, PPOConfig(), few_kernels=few) for few in (False, True)]

    @jax.jit
    def norms(key: jax.Array) -> Any:
        params = randomised(network, network.init(key))
        of_all = optax.tree.norm(params)
        return of_all, [norm_with_copies(setup)(sharing.independent(params)) for setup in setups]

    of_all, found = norms(jax.random.key(0))
    np.testing.assert_allclose(found, [of_all, of_all], rtol=1e-6)


def test_sums_that_do_not_fit_into_a_byte_are_kept_in_two() -> None:
    class Integers:
        scales = np.ones(Turned.feature_size, np.float32)
        largest = np.full(Turned.feature_size, 100)

        def __call__(self, observation: Any) -> jax.Array:
            return jnp.full(Turned.feature_size, 100, jnp.int8)

    env = Turned()
    env.feature_integers = Integers()  # type: ignore[attr-defined]
    network = make_network(env, NetworkConfig(symmetric=True, hidden_dim=8))
    sums, differences = encode_observations(network, jnp.zeros((1, 2), jnp.int32))
    assert sums.dtype == jnp.int16
    assert sums.max() == 200
    assert not differences.any()


@pytest.mark.thorough
def test_first_weights_vary_as_much_as_those_of_any_mlp() -> None:
    ours, others = (
        make_network(Turned(), NetworkConfig(symmetric=symmetric, hidden_dim=128))
        for symmetric in (True, False)
    )
    key = jax.random.key(0)
    both = jax.jit(lambda: [network.init(key)["params"] for network in (ours, others)])()
    for layer in ("Dense_0", "Dense_1", "Dense_2"):
        our, other = (np.std(np.array(params[layer]["kernel"])) for params in both)
        assert 0.95 < our / other < 1.05


@pytest.mark.slow
@pytest.mark.usefixtures("shared_programs")
def test_weights_stay_equal_while_a_network_learns(tmp_path: Path) -> None:
    """And whoever plays the params needs to know of no mirror."""
    run_of(tmp_path, env=Turned(), symmetric=True, params_average=0.5)
    policy = load_policy(tmp_path / "mine" / "final_params.npz")
    network = make_network(Turned(), NetworkConfig(symmetric=True, hidden_dim=8, num_layers=1))
    jax.tree.map(
        np.testing.assert_array_equal, policy.params, sharing_of(network).share(policy.params)
    )
    assert np.any(policy.params["params"]["Dense_0"]["bias"])  # 0 at first
    assert policy.about["config"]["symmetric"]
    assert not policy.config.symmetric


def test_params_of_another_network_do_not_start_one(tmp_path: Path) -> None:
    network = make_network(Turned(), NetworkConfig(hidden_dim=8, num_layers=1))
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    rng = np.random.default_rng(0)
    params = jax.tree.map(lambda x: np.float32(rng.normal(size=x.shape)), shapes)
    config = config_in(tmp_path).as_dict()
    file = tmp_path / "plain.npz"
    save_params(file, params, {"environment": "HackMatrix-v1", "config": config})
    options = TrainOptions(resume=str(file), run_name="ours")
    with pytest.raises(UserError, match="was trained without --symmetric"):
        run_of(tmp_path, options, env=Turned(), symmetric=True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden_dim": 10}, "--hidden-dim must be a multiple of 4, got 10"),
        ({"observation": "full"}, "does not say how it is mirrored"),
        ({"architecture": "gru"}, "--symmetric goes with --architecture mlp"),
        ({"normalize_observations": True}, "--normalize-observations tells mirrored games apart"),
    ],
)
def test_what_does_not_go_together_is_told(settings: dict[str, Any], message: str) -> None:
    def make() -> None:
        config = TrainConfig.of(**{"symmetric": True, "observation": "tactical"} | settings)
        make_network(config.environment.make(), config.network)

    with pytest.raises(UserError, match=message):
        make()


def test_reflections_that_are_none_are_refused() -> None:
    env = Turned()
    turning = np.roll(np.arange(env.feature_size), 1)[None]  # needs as many turns as features
    env.reflections = Turned.reflections._replace(features=turning)  # type: ignore[misc]
    with pytest.raises(UserError, match="must each be its own inverse"):
        make_network(env, NetworkConfig(symmetric=True, hidden_dim=8))
