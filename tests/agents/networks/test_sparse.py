"""Products of sparse features: the same numbers and derivatives as of the vectors written out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from suites import first_quickly

import hackmatrix
from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.feature_network import FeatureNetwork
from hackmatrix.agents.networks.mlp import ActorCritic
from hackmatrix.agents.networks.sparse import SparseFeatures
from hackmatrix.game.rules.observation import RECORD_SIZE
from hackmatrix.learning.algorithms.config import PPOConfig
from hackmatrix.learning.trainer.trainer import Trainer


class Table:
    """A `FeatureRows` whose observations are already dense parts and rows."""

    def __init__(self, columns: np.ndarray, weights: np.ndarray, dense_columns: np.ndarray) -> None:
        self.size = 30
        self.columns, self.weights, self.dense_columns = columns, weights, dense_columns

    def __call__(self, observation: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return observation


def random_case(vectors: int, places: int, occupied: float) -> tuple[Table, np.ndarray, np.ndarray]:
    """A table of 50 rows, dense parts and rows of some vectors."""
    random = np.random.default_rng(places)
    columns = random.integers(2, 30, (50, 3)).astype(np.int32)
    weights = random.normal(size=(50, 3)).astype(np.float32)
    weights[0] = 0
    table = Table(columns, weights, np.array([1, 0], np.int32))
    rows = random.integers(1, 50, (vectors, places)) * (random.random((vectors, places)) < occupied)
    return table, random.normal(size=(vectors, 2)).astype(np.float32), rows.astype(np.int32)


def written_out(table: Table, dense: np.ndarray, rows: np.ndarray) -> np.ndarray:
    vectors = np.zeros((len(dense), table.size))
    vectors[:, table.dense_columns] = dense
    for vector, numbers in zip(vectors, rows, strict=True):
        for number in numbers:
            np.add.at(vector, table.columns[number], table.weights[number])
    return vectors


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("places", "occupied"), [(1, (0.5,)), (32, (0.3,)), (33, (1.0,)), (100, (0.1, 0.97, 0.0))]
)
def test_products_and_their_derivatives_are_those_of_the_vectors(
    places: int, occupied: tuple[float, ...]
) -> None:
    random = np.random.default_rng(0)
    kernel, wanted = random.normal(size=(30, 8)), random.normal(size=(40, 8))
    kernel = kernel.astype(np.float32)
    table = random_case(40, places, 0)[0]

    @jax.jit
    @jax.value_and_grad
    def loss(kernel: jax.Array, dense: jax.Array, rows: jax.Array) -> jax.Array:
        features = SparseFeatures.create(dense, rows, table)
        assert features.shape == (40, 30)
        return jnp.sum(features.times(kernel, jnp.float32) * wanted)

    for share in occupied:
        same, dense, rows = random_case(40, places, share)
        np.testing.assert_array_equal(same.columns, table.columns)
        vectors = written_out(table, dense, rows)
        found, gradient = loss(kernel, dense, rows)
        expected = float((vectors @ kernel * wanted).sum())
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-3)
        np.testing.assert_allclose(gradient, vectors.T @ wanted, rtol=1e-4, atol=1e-4)


def test_rows_are_moved_to_the_front_and_counted() -> None:
    table, dense, rows = random_case(200, 100, 0.2)
    features = jax.jit(lambda d, r: SparseFeatures.create(d, r, table))(dense, rows)
    assert features.count == (rows > 0).sum(axis=1).max()
    for before, after in zip(rows, np.asarray(features.rows).T, strict=True):
        occupied = before[before > 0]
        np.testing.assert_array_equal(after[: len(occupied)], occupied)
        assert (after[len(occupied) :] == 0).all()


class Letters:
    """An environment's features alone: two dense numbers and a bag of rows."""

    num_actions = 4
    feature_size = 30

    def __init__(self, table: Table) -> None:
        self.table = table

    def features(self, observation: tuple[jax.Array, jax.Array]) -> jax.Array:
        dense, rows = observation
        vector = jnp.zeros(30).at[self.table.dense_columns].set(dense)
        columns, weights = jnp.asarray(self.table.columns), jnp.asarray(self.table.weights)
        return vector.at[columns[rows]].add(weights[rows])


class LettersInRows(Letters):
    @property
    def feature_rows(self) -> Table:
        return self.table


@pytest.mark.parametrize("device", ["tpu", "gpu"])
def test_an_agent_reads_vectors_on_other_devices(device: str) -> None:
    table, dense, rows = random_case(40, 20, 0.3)
    module = ActorCritic(4, 16, 2)
    with jax.default_device(device):
        network = FeatureNetwork(LettersInRows(table), module, reads_features=True)
    features = jax.eval_shape(network.features, (dense, rows))
    assert features == jax.ShapeDtypeStruct((40, 30), jnp.float32)


def test_the_devices_of_the_trainer_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """The devices that JAX finds are replaced, as there need be no accelerator where tests run."""
    monkeypatch.setattr("jax.default_backend", lambda: "gpu")
    trainer = Trainer(
        hackmatrix.make(engine="jax"),
        PPOConfig(num_envs=4),
        NetworkConfig(),
        jax.devices("cpu")[:1],
    )
    records = jax.ShapeDtypeStruct((2, RECORD_SIZE), jnp.uint8)
    assert isinstance(jax.eval_shape(trainer.network.features, records), SparseFeatures)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="agents read rows on CPU only")
@pytest.mark.parametrize("dtype", first_quickly(["float32", "bfloat16"]))
def test_an_agent_reads_rows_where_they_are_offered_with_the_same_answers(dtype: str) -> None:
    table, dense, rows = random_case(40, 20, 0.3)
    observations = jnp.asarray(dense), jnp.asarray(rows)
    module = ActorCritic(4, 16, 2, jnp.dtype(dtype))
    plain, in_rows = (
        FeatureNetwork(env, module, reads_features=True)
        for env in (Letters(table), LettersInRows(table))
    )
    shapes, other = (jax.eval_shape(each.init, jax.random.key(0)) for each in (plain, in_rows))
    assert shapes == other
    random = np.random.default_rng(0)
    params = jax.tree.map(lambda x: np.float32(0.3 * random.normal(size=x.shape)), shapes)
    tolerance = 1e-5 if dtype == "float32" else 0.05
    answers = (jax.jit(network.__call__)(params, observations)[:2] for network in (plain, in_rows))
    for one, other in zip(*answers, strict=True):
        np.testing.assert_allclose(one, other, atol=tolerance)
        assert one.dtype == other.dtype == jnp.float32
    reads = str(jax.make_jaxpr(in_rows)(params, observations))
    assert f"{len(dense)},30]" not in reads  # the vectors are never written out
