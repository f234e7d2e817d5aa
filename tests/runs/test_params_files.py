"""Params on disk: a round trip, and clear words on files that are none."""

import json
import pickle
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.mlp import ActorCritic
from hackmatrix.agents.networks.policy import load_policy
from hackmatrix.core.errors import UserError
from hackmatrix.runs.params import load_params, round_tables, save_params

FEATURES = 1545


def params_of(features: int, num_layers: int) -> dict[str, Any]:
    """Params as the network makes them, by names and shapes."""
    network = ActorCritic(28, hidden_dim=8, num_layers=num_layers)
    shapes = jax.eval_shape(network.init, jax.random.key(0), jnp.zeros((1, features)))
    rng = np.random.default_rng(0)
    made: dict[str, Any] = jax.tree.map(lambda x: rng.normal(size=x.shape).astype(x.dtype), shapes)
    return made


@pytest.fixture(scope="module")
def params() -> dict[str, Any]:
    return params_of(FEATURES, 3)


@pytest.fixture
def file(tmp_path: Path, params: dict[str, Any]) -> Path:
    path = tmp_path / "params_7.npz"
    save_params(path, params, {"update": 7})
    return path


def test_the_names_are_those_of_the_originals_files(file: Path) -> None:
    with np.load(file) as arrays:
        assert set(arrays.files) == {
            f"params.Dense_{i}.{kind}" for i in range(5) for kind in ("kernel", "bias")
        }
    facts = json.loads(file.with_suffix(".json").read_text())
    assert facts == {"format": 1, "update": 7}
    assert sorted(p.name for p in file.parent.iterdir()) == ["params_7.json", "params_7.npz"]


def test_a_policy_comes_back_with_its_architecture(file: Path, params: dict[str, Any]) -> None:
    for update in (7, None):
        policy = load_policy(file)
        assert policy.config == NetworkConfig("mlp", hidden_dim=8, num_layers=3)
        assert (policy.environment, policy.observation) == ("HackMatrix-v1", "classic")
        assert policy.about.get("update") == update
        jax.tree.map(np.testing.assert_array_equal, policy.params, params)
        file.with_suffix(".json").unlink(missing_ok=True)  # arrays alone are enough
    env, network = policy.make()
    assert (env.feature_size, network.num_actions) == (FEATURES, 28)


def test_settings_beside_the_params_are_believed(tmp_path: Path, params: dict[str, Any]) -> None:
    path = tmp_path / "params_7.npz"
    settings = {"hidden_dim": 8, "num_layers": 3, "activation": "tanh", "observation": "classic"}
    save_params(path, params, {"config": settings | {"lr": 0.1}})
    policy = load_policy(path)
    assert policy.config == NetworkConfig("mlp", 8, 3, "tanh")
    assert policy.make()[1].num_actions == 28
    save_params(path, params, {"config": settings | {"num_layers": 2}})
    wanted = r"params.Dense_2.bias is \[8\], the network mlp for HackMatrix-v1 wants \[28\]"
    with pytest.raises(UserError, match=wanted):
        load_policy(path).make()
    save_params(path, params, {"config": {"architecture": "transformer"}})
    with pytest.raises(UserError, match="is of the network 'transformer', which this version"):
        load_policy(path)


def test_in_a_folder_the_newest_file_is_taken(file: Path, params: dict[str, Any]) -> None:
    for name in ("params_10.npz", "params_9.npz"):
        save_params(file.with_name(name), params, {})
    assert load_policy(file.parent).path.name == "params_10.npz"
    save_params(file.with_name("final_params.npz"), params, {})
    assert load_policy(file.parent).path.name == "final_params.npz"


def test_an_observation_that_is_not_hackmatrixs_is_named(tmp_path: Path) -> None:
    save_params(tmp_path / "other.npz", params_of(5, 1), {})
    with pytest.raises(UserError, match=r"other.npz: reads 5 features; HackMatrix has 1545"):
        load_policy(tmp_path / "other.npz")


class Malicious:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path("pwned").touch, ())


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _one_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


def _rewrite(path: Path, **arrays: Any) -> None:
    with np.load(path) as old:
        kept = dict(old) | arrays
    np.savez(path, **{name: array for name, array in kept.items() if array is not None})


NAN = np.full((28,), np.nan, np.float32)
DAMAGE = {
    "missing": (lambda p: p.unlink(), "no such file"),
    "empty": (lambda p: p.write_bytes(b""), "is no .npz file of params"),
    "truncated": (lambda p: p.write_bytes(p.read_bytes()[:-500]), "is no .npz file of params"),
    "flipped": (_flip, "a damaged one"),
    "array": (_one_array, "is no .npz file of params"),
    "pickle": (lambda p: p.write_bytes(pickle.dumps(Malicious())), "is no .npz file of params"),
    "pickled array": (lambda p: _rewrite(p, x=np.array([Malicious()], object)), "a damaged one"),
    "foreign": (lambda p: np.savez(p, weights=np.zeros((3, 3))), "holds no params.Dense_0"),
    "integers": (
        lambda p: _rewrite(p, **{"params.Dense_0.bias": np.zeros(8, int)}),
        "params.Dense_0.bias holds int64, not floats",
    ),
    "nan": (lambda p: _rewrite(p, **{"params.Dense_3.bias": NAN}), "params.Dense_3.bias holds NaN"),
    "a layer less": (
        lambda p: _rewrite(p, **{"params.Dense_2.kernel": None, "params.Dense_2.bias": None}),
        "holds no params.Dense_0",
    ),
    "no bias": (
        lambda p: _rewrite(p, **{"params.Dense_2.bias": None}),
        "params.Dense_2 must be a kernel and a bias",
    ),
    "an array too deep": (
        lambda p: _rewrite(p, **{"params.Dense_2.bias.more": np.zeros(3)}),
        "params.Dense_2.bias.more lies inside another array",
    ),
    "a wrong bias": (
        lambda p: _rewrite(p, **{"params.Dense_2.bias": np.zeros(9)}),
        "params.Dense_2 has shapes",
    ),
    "a wrong width": (
        lambda p: _rewrite(
            p, **{"params.Dense_2.kernel": np.zeros((8, 9)), "params.Dense_2.bias": np.zeros(9)}
        ),
        "layers of 1545 x 8, 8 x 8, 8 x 9, 8 x 28, 8 x 1 do not make the network mlp",
    ),
    "facts": (lambda p: p.with_suffix(".json").write_text("{"), "is no JSON file"),
    "format": (
        lambda p: p.with_suffix(".json").write_text('{"format": 2}'),
        "is no description of params in format 1",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_or_foreign_file_is_named_in_one_line(
    damage: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    change, message = DAMAGE[damage]
    change(file)
    with pytest.raises(UserError) as raised:
        load_policy(file)
    text = str(raised.value)
    assert text.startswith((str(file), str(file.with_suffix(".json"))))
    assert message in text
    assert "\n" not in text
    assert not Path("pwned").exists()


def test_a_checkpoint_plays_with_the_params_of_its_update(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"final_params.npz: no such file"):
        load_policy(tmp_path)
    (tmp_path / "checkpoints" / "18").mkdir(parents=True)
    (tmp_path / "params_18.npz").touch()
    with pytest.raises(UserError, match=r"/params_18.npz: is no .npz file of params"):
        load_policy(tmp_path / "checkpoints" / "18")


def test_rounded_tables_are_a_fourth_as_large_and_nearly_the_same(tmp_path: Path) -> None:
    table = np.random.default_rng(0).normal(size=(1_000, 80)).astype(np.float32)
    table[3] = 0
    params = {"params": {"rows": table, "small": {"kernel": table[:10]}}}
    save_params(tmp_path / "whole.npz", params, {})
    save_params(tmp_path / "small.npz", round_tables(params), {})
    sizes = [(tmp_path / f"{name}.npz").stat().st_size for name in ("whole", "small")]
    assert sizes[1] < 0.28 * sizes[0]
    read = load_params(tmp_path / "small.npz").params["params"]
    half_a_step = np.abs(table).max(axis=1, keepdims=True) / 127 / 2
    assert read["rows"].dtype == np.float32
    assert (np.abs(read["rows"] - table) <= half_a_step * 1.0001).all()
    np.testing.assert_array_equal(read["small"]["kernel"], table[:10])


@pytest.mark.parametrize(
    "arrays",
    [
        {"a:scale": np.ones((2, 1), np.float32)},
        {"a": np.ones((2, 3), np.float32), "a:scale": np.ones((2, 1), np.float32)},
        {"a": np.ones((2, 3), np.int8), "a:scale": np.ones((3, 1), np.float32)},
        {"a": np.ones((2, 3), np.int8), "a:scale": np.ones(2, np.float32)},
    ],
)
def test_a_scale_without_a_table_is_refused(arrays: dict[str, np.ndarray], tmp_path: Path) -> None:
    np.savez(tmp_path / "odd.npz", **arrays)
    with pytest.raises(UserError, match="a:scale is not the scale of a table of int8"):
        load_params(tmp_path / "odd.npz")


def test_a_failed_write_changes_nothing(
    file: Path, params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = file.read_bytes()

    def fail(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        save_params(file, jax.tree.map(lambda p: p + 1, params), {})
    assert file.read_bytes() == before
    assert len(list(file.parent.iterdir())) == 2


@pytest.mark.thorough
def test_a_small_file_that_would_fill_memory_is_refused_before_it_does(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(5):
            with archive.open(f"params.Dense_{number}.kernel.npy", "w") as member:
                header = {"descr": "<f4", "fortran_order": False, "shape": (2**24,)}
                np.lib.format.write_array_header_1_0(member, header)
                for _ in range(16):
                    member.write(bytes(2**22))
    assert path.stat().st_size < 2**20
    tracemalloc.start()
    with pytest.raises(UserError, match=r"bomb.npz: holds more than 10,000 arrays or 268,435,456"):
        load_params(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2**22


@pytest.mark.parametrize("name", ["." * 1000, "x" * 1000, "a\x1b[31m", "params.a\nb"])
def test_a_name_that_no_network_has_is_refused(name: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "odd.npz", **{name: np.zeros(1)})
    with pytest.raises(UserError, match=r"odd.npz: no network has an array '") as raised:
        load_params(tmp_path / "odd.npz")
    assert str(raised.value).isprintable()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"hidden_dim": -1}, "hidden_dim must be at least 1 and at most 65536, got -1"),
        ({"hidden_dim": 2**40}, "hidden_dim must be .* at most 65536, got 1099511627776"),
        ({"num_layers": 10**9}, "num_layers must be at least 1 and at most 100, got 1000000000"),
        ({"num_layers": 2.0}, "num_layers must be int, got 2.0"),
        ({"activation": "gelu"}, "activation must be one of relu, tanh, got 'gelu'"),
        ({"dtype": "float8"}, "dtype must be one of float32, bfloat16, got 'float8'"),
        ({"layer_norm": 1}, "layer_norm must be bool, got 1"),
        ({"observation": "x\x1b"}, "observation"),
        ({"observation": [1]}, "observation"),
    ],
)
def test_settings_that_no_training_has_are_one_line(
    settings: dict[str, Any], reason: str, tmp_path: Path, params: dict[str, Any]
) -> None:
    path = tmp_path / "odd.npz"
    known = {"hidden_dim": 8, "num_layers": 3, "observation": "classic"}
    save_params(path, params, {"config": {**known, **settings}})
    with pytest.raises(UserError, match=reason) as raised:
        load_policy(path).make()
    assert str(raised.value).isprintable()
