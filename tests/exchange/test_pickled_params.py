"""Pickles as data: the original's checkpoints are read, and nothing in a hostile file runs."""

import collections
import contextlib
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax.core import FrozenDict
from hypothesis import given
from hypothesis import strategies as st

from hackmatrix.errors import UserError
from hackmatrix.exchange.pickled import UnreadableError
from hackmatrix.exchange.pickled_params import params_in, read_pickled_params

RNG = np.random.default_rng(0)


def layers() -> dict[str, Any]:
    return {
        f"Dense_{i}": {
            "kernel": RNG.normal(size=(3, 4)).astype(np.float32),
            "bias": RNG.normal(size=4).astype(np.float32),
        }
        for i in range(3)
    }


def read(folder: Path, content: Any, protocol: int = 4) -> dict[str, Any]:
    path = folder / "checkpoint_40.pkl"
    path.write_bytes(pickle.dumps(content, protocol))
    return read_pickled_params(path)


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == {"params"}
    assert found["params"].keys() == expected.keys()
    for name, layer in expected.items():
        assert found["params"][name].keys() == layer.keys()
        for part, array in layer.items():
            got = found["params"][name][part]
            assert got.dtype == np.float32
            np.testing.assert_array_equal(got, np.asarray(array, np.float32))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol_is_read(protocol: int, tmp_path: Path) -> None:
    expected = layers()
    content = {"params": {"params": expected}, "metrics": [1.5, None, True], "last_logged_step": 40}
    assert_same(read(tmp_path, content, protocol), expected)


def test_arrays_of_all_kinds_are_read(tmp_path: Path) -> None:
    expected = layers()
    expected["Dense_0"]["kernel"] = np.asfortranarray(expected["Dense_0"]["kernel"])
    expected["Dense_1"]["kernel"] = expected["Dense_1"]["kernel"].astype(np.float64)
    expected["Dense_1"]["bias"] = expected["Dense_1"]["bias"].astype(">f4")
    expected["Dense_2"]["bias"] = np.float32(0.5)
    for protocol in (2, 4, 5):
        assert_same(read(tmp_path, {"params": expected}, protocol), expected)


def test_the_states_of_jax_flax_and_optax_are_containers(tmp_path: Path) -> None:
    expected = {
        name: {part: jnp.asarray(array) for part, array in layer.items()}
        for name, layer in layers().items()
    }
    params = {"params": expected}
    optimizer = optax.adam(1e-3).init(params)
    for content in (
        {"opt_state": optimizer, "params": FrozenDict(params)},  # moments of the same form, first
        (optimizer, collections.OrderedDict(step=1, params=params)),
        {"train_state": {"params": params, "opt_state": optimizer}},
    ):
        assert_same(read(tmp_path, content), expected)


class Hostile:
    """Unpickling it calls a function that leaves a file."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("function", [os.system, subprocess.check_call, eval, exec])
def test_nothing_of_a_hostile_file_runs(function: Any, protocol: int, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    argument: Any = {
        os.system: f"touch {canary}",
        subprocess.check_call: ["touch", str(canary)],
    }.get(function, f"__import__('pathlib').Path({str(canary)!r}).touch()")
    content = {"params": layers(), "hook": Hostile(function, argument)}
    data = pickle.dumps(content, protocol)
    pickle.loads(data)  # Python's own reader runs it
    assert canary.exists()
    canary.unlink()
    path = tmp_path / "hostile.pkl"
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"names .*, which is neither an array nor a container"):
        read_pickled_params(path)
    assert not canary.exists()


def test_classes_of_allowed_packages_are_named_but_neither_imported_nor_called(
    tmp_path: Path,
) -> None:
    canary = tmp_path / "canary"
    (tmp_path / "optax_trap.py").write_text(f"open({str(canary)!r}, 'w')")
    # c: the class, then a call of it with ('x',), then a state for it.
    call = b"coptax.trap\nrun\n(S'x'\ntR(dS'a'\nI1\nsb."
    path = tmp_path / "trap.pkl"
    path.write_bytes(call)
    modules = set(sys.modules)
    with pytest.raises(UserError, match="holds no params"):
        read_pickled_params(path)
    assert not {name for name in set(sys.modules) - modules if "trap" in name}
    assert not canary.exists()


def bomb() -> bytes:
    """Each dict holds the one below twice, 60 levels deep."""
    tree: Any = layers()["Dense_0"]
    for _ in range(60):
        tree = {"a": tree, "b": tree}
    return pickle.dumps({"Dense_0": tree})


def loop() -> bytes:
    tree: dict[str, Any] = {}
    tree["Dense_0"] = tree
    return pickle.dumps(tree)


def deep() -> bytes:
    return b"(l" * 50_000 + b"a" * 49_999 + b"."


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "damaged pickle"),
        (b"\x80\x04", "damaged pickle"),
        (b"]", "damaged pickle"),
        (b".", "damaged pickle"),
        (b"(.", "damaged pickle"),
        (b"N.", "holds no params"),
        (b"Pabc\n.", "opcode PERSID"),
        (b"\x82\x01.", "opcode EXT1"),
        (b"(i__main__\nrun\n.", "opcode INST"),
        (b"(c__main__\nrun\no.", "opcode OBJ"),
        (b"}(]I1\nu.", "keys that are neither texts nor numbers"),
        (b"Na.", "damaged pickle"),
        (b"I1\nI2\nb.", "state without its object"),
        (b"h\x05.", "damaged pickle"),
        (bomb(), "more than 20,000"),
        (loop(), "params"),
        (deep(), "holds no params"),
        (
            pickle.dumps({"Dense_0": {"kernel": np.array([object()])}}).replace(b"O8", b"O8"),
            "names",
        ),
        (pickle.dumps({"Dense_0": {"kernel": np.array(["text"])}}), "which are no numbers"),
    ],
)
def test_odd_files_are_refused_in_one_line(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.pkl"
    path.write_bytes(data)
    with pytest.raises(UserError, match=message) as raised:
        read_pickled_params(path)
    assert "\n" not in str(raised.value)


def test_an_array_that_is_longer_than_its_bytes_is_refused(tmp_path: Path) -> None:
    data = pickle.dumps({"Dense_0": {"kernel": np.zeros((3, 4), np.float32)}}, 2)
    assert b"K\x03K\x04" in data
    path = tmp_path / "odd.pkl"
    path.write_bytes(data.replace(b"K\x03K\x04", b"K\x7fK\x7f"))
    with pytest.raises(UserError, match="shape does not fit its bytes"):
        read_pickled_params(path)


VALID = pickle.dumps({"params": layers(), "opt_state": optax.adam(1e-3).init({"a": np.zeros(2)})})


@given(st.data())
def test_a_file_with_any_bytes_changed_is_read_or_refused(data: st.DataObject) -> None:
    changed = bytearray(VALID)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(VALID) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(UnreadableError):
        params_in(bytes(changed))
