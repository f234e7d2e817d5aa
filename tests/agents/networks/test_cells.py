"""The network that reads cells: where it looks, what each action's logit depends on."""

import functools
import random
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import probe_environments as probes
import pytest
from lockstep_starts import rich

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.cells_forward import (
    NOWHERE,
    NUMPY,
    around,
    cells_of,
    depthwise_convolution,
    forward,
    player_cell,
    reading_of,
)
from hackmatrix.agents.networks.network import Network, encode_observations, make_network
from hackmatrix.core.errors import UserError
from hackmatrix.environments.registry import make_environment
from hackmatrix.game.engine.observation import (
    cell_features,
    extra_cell_features,
    extra_features,
    observe,
)
from hackmatrix.game.foresight.features import features
from hackmatrix.game.rules.actions import FIRST_PROGRAM, NUM_ACTIONS, SIPHON
from hackmatrix.game.rules.board import CELLS, NEIGHBOUR, SIZE
from hackmatrix.game.rules.observation import FEATURE_SIZE, CellBytes, number_of
from hackmatrix.game.rules.programs import PROGRAMS, ProgramId
from hackmatrix.game.rules.tactical import STRIKES

pytestmark = pytest.mark.thorough

CONFIG = NetworkConfig("cells", hidden_dim=64, num_layers=1, activation="tanh")
LAYOUTS = ("classic", "full", "tactical")
SLOWLY = ["tactical", *(pytest.param(x, marks=pytest.mark.slow) for x in ("classic", "full"))]


@functools.cache
def network_for(layout: str) -> Network:
    return make_network(make_environment("HackMatrix-v1", layout), CONFIG)


@functools.cache
def params_of(layout: str) -> Any:
    """Random params: what `init` returns takes seconds to compile."""
    rng = np.random.default_rng(1)
    shapes = jax.eval_shape(network_for(layout).init, jax.random.key(1))
    return jax.tree.map(lambda x: np.float32(0.1 * rng.normal(size=x.shape)), shapes)


@functools.cache
def records(count: int) -> list[bytes]:
    rng = random.Random(5)
    return [observe(rich(rng)) for _ in range(count)]


@functools.cache
def read_by(layout: str) -> Any:
    """The records of 8 games as the network reads them; compiled once, for it takes seconds."""
    observations = jnp.array([list(record) for record in records(8)], jnp.uint8)
    return jax.jit(partial(encode_observations, network_for(layout)))(observations)


def answers(params: Any, layout: str, rows: list[list[float]]) -> tuple[np.ndarray, np.ndarray]:
    """Logits and values of feature vectors, with NumPy."""
    numbers = np.array(rows, np.float32)
    return forward(params, numbers, reading_of(layout), CONFIG.activation, NUMPY)


# --- what it reads -------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["classic", "full"])
def test_every_cell_is_read_where_the_layout_has_it(layout: str) -> None:
    reading = reading_of(layout)
    for record in records(3):
        columns = np.array(features(record, layout))[:, None]
        for cell, got in enumerate(cells_of(columns, reading, np)[..., 0].T):
            shown = CellBytes(*record[cell : 6 * CELLS : CELLS])
            extra = extra_cell_features(shown) if layout == "full" else ()
            assert tuple(got) == cell_features(shown) + extra
    every = [*reading.game, *cells_of(np.arange(reading.size)[:, None], reading, np).ravel()]
    assert sorted(every) == list(range(FEATURE_SIZE[layout]))


def test_a_program_is_read_with_its_own_numbers() -> None:
    reading = reading_of("full")
    for record in records(20):
        numbers = np.array(features(record, "full"))
        owned, ready = numbers[reading.programs]
        assert list(owned) == [number_of(record, "owned") >> p & 1 for p in range(len(PROGRAMS))]
        assert list(ready) == extra_features(record)[-len(PROGRAMS) :]


def test_tactical_numbers_go_to_the_actions_that_they_are_about() -> None:
    reading = reading_of("tactical")
    # As docs/environment.md has them: go_valid and go_to_best, cell_blocked of both cells.
    assert list(reading.directions[0]) == [0, 1, 2, 3]
    assert list(reading.directions[22]) == [88, 89, 90, 91]
    assert list(reading.directions[23]) == [222, 223, 224, 225]
    assert list(reading.directions[33]) == [226, 227, 228, 229]
    assert [342] in reading.siphon
    assert [350] in reading.siphon
    assert list(reading.programs[0]) == list(range(94, 117))  # owned
    struck = reading.programs[-4]
    assert [struck[p] for p in STRIKES] == list(range(163, 172))
    assert {struck[p] for p in range(len(PROGRAMS)) if p not in STRIKES} == {NOWHERE}


def test_the_player_is_found() -> None:
    layout, found = "classic", records(20)
    columns = np.array([features(record, layout) for record in found], np.float32).T
    here = player_cell(columns, np)
    assert list(here.argmax(axis=0)) == [number_of(record, "cell") for record in found]
    np.testing.assert_array_equal(here.sum(axis=0), 1)


def test_around_the_player_are_its_cell_and_its_neighbours() -> None:
    rng = np.random.default_rng(0)
    board = rng.normal(size=(3, CELLS, CELLS)).astype(np.float32)  # game i: the player on cell i
    near = around(board, np.eye(CELLS, dtype=np.float32), np)
    for cell in range(CELLS):
        np.testing.assert_array_equal(near[:, 0, cell], board[:, cell, cell])
        for direction, other in enumerate(NEIGHBOUR[cell]):
            expected = np.zeros(3) if other is None else board[:, other, cell]
            np.testing.assert_array_equal(near[:, 1 + direction, cell], expected)


def test_spreading_is_a_depthwise_convolution() -> None:
    rng = np.random.default_rng(0)
    board = rng.normal(size=(4, SIZE, SIZE, 5)).astype(np.float32)
    kernel = rng.normal(size=(4, 11, 11)).astype(np.float32)
    expected = jax.lax.conv_general_dilated(
        board.transpose(3, 0, 1, 2),
        kernel[:, None, ::-1, ::-1],
        (1, 1),
        [(5, 5), (5, 5)],
        feature_group_count=4,
    )
    found = depthwise_convolution(board.reshape(4, CELLS, 5), kernel, np).reshape(4, SIZE, SIZE, 5)
    np.testing.assert_allclose(found, expected.transpose(1, 2, 3, 0), rtol=1e-4, atol=1e-5)


# --- what depends on what ------------------------------------------------------------------------


@functools.cache
def local(layout: str) -> Any:
    """Params with which an action's logit depends on nothing but what the action itself reads."""
    params = jax.tree.map(np.copy, params_of(layout))
    layers = params["params"]
    for name in layers:
        if name.startswith("block"):
            layers[name]["second"]["kernel"][:] = 0
        if name.startswith("trunk"):
            layers[name]["kernel"][:] = 0
    return params


def changed_logits(layout: str, before: list[float], after: list[float]) -> set[int]:
    logits, _ = answers(local(layout), layout, [before, after])
    return set(np.flatnonzero(np.abs(logits[0] - logits[1]) > 1e-7))


@pytest.mark.slow
def test_a_changed_cell_changes_the_action_that_leads_to_it() -> None:
    for record in records(20):
        here = number_of(record, "cell")
        before = features(record, "full")
        acts = {other: action for action, other in enumerate(NEIGHBOUR[here]) if other is not None}
        acts[here] = SIPHON
        for cell in range(CELLS):
            after = list(before)
            after[33 + 42 * cell] += 1  # its first feature
            expected = {acts[cell]} if cell in acts else set()
            assert changed_logits("full", before, after) == expected


@pytest.mark.parametrize("layout", ["full", "tactical"])
def test_a_changed_program_changes_its_own_action(layout: str) -> None:
    reading = reading_of(layout)
    before = features(records(1)[0], layout)
    for program in range(len(PROGRAMS)):
        after = list(before)
        after[reading.programs[0, program]] += 1
        assert changed_logits(layout, before, after) == {FIRST_PROGRAM + program}
    assert reading_of("tactical").programs[-1, ProgramId.WAIT] == NOWHERE


def test_what_is_said_of_a_direction_changes_its_own_action() -> None:
    reading = reading_of("tactical")
    before = features(records(1)[0], "tactical")
    for direction in range(4):
        after = list(before)
        after[reading.directions[12, direction]] += 1
        assert changed_logits("tactical", before, after) == {direction}


# --- on JAX --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_jax_and_numpy_agree(layout: str, activation: str) -> None:
    env = make_environment("HackMatrix-v1", layout)
    config = NetworkConfig("cells", 24, 2, activation)
    network = make_network(env, config)
    params = jax.jit(network.init)(jax.random.key(0))
    logits, values, _ = jax.jit(network.__call__)(params, read_by(layout))
    rows = np.array([features(record, layout) for record in records(8)], np.float32)
    plain = forward(jax.tree.map(np.array, params), rows, reading_of(layout), activation, NUMPY)
    np.testing.assert_allclose(logits, plain[0], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(values, plain[1], rtol=1e-3, atol=1e-4)
    assert np.abs(plain[0]).max() > 1e-3
    assert logits.shape == (8, NUM_ACTIONS)


@pytest.mark.parametrize("layout", SLOWLY)
def test_every_param_is_learned(layout: str) -> None:
    network, params, read = network_for(layout), params_of(layout), read_by(layout)

    def loss(params: Any) -> jax.Array:
        logits, values, _ = network(params, read)
        return jnp.sum(logits**2 * jnp.arange(NUM_ACTIONS)) + jnp.sum((values - 1) ** 2)

    grads = jax.jit(jax.grad(loss))(params)
    for path, grad in jax.tree_util.tree_leaves_with_path(grads):
        assert np.isfinite(grad).all(), path
        assert np.abs(grad).max() > 0, path


@pytest.mark.parametrize("layout", SLOWLY)
def test_the_first_policy_is_nearly_uniform(layout: str) -> None:
    params = jax.tree.map(np.array, jax.jit(network_for(layout).init)(jax.random.key(1)))
    rows = [features(record, layout) for record in records(20)]
    assert np.abs(answers(params, layout, rows)[0]).max() < 0.5


def test_other_environments_and_too_small_networks_are_refused() -> None:
    with pytest.raises(UserError, match="cells reads the board of HackMatrix; for other env"):
        make_network(probes.Grid(), CONFIG)
    with pytest.raises(UserError, match="cells needs --hidden-dim of at least 8"):
        make_network(make_environment("HackMatrix-v1", "full"), NetworkConfig("cells", 7))
