"""Pickles as data: the original's checkpoints are read, and nothing in a hostile file runs."""

import collections
import contextlib
import itertools
import os
import pickle
import pickletools
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
from made_places import params_of_the_original

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.policy import load_policy
from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.position_policies import load
from hackmatrix.cli.watch import check_network
from hackmatrix.core.errors import UserError
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.observation import observe
from hackmatrix.research.exchange.formats import read_params
from hackmatrix.runs.pickled import UnreadableError, params_in, read_pickled_params

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


def test_files_of_the_original_are_agents_whose_networks_are_in_their_arrays(
    tmp_path: Path,
) -> None:
    layers = params_of_the_original()
    state = {"params": {"params": layers}, "opt_state": [], "metrics": {}, "last_logged_step": 40}
    pickled, exported = tmp_path / "checkpoint_40.pkl", tmp_path / "params_40.npz"
    pickled.write_bytes(pickle.dumps(state))
    np.savez(
        exported, **{f"params.{n}.{p}": a for n, of_n in layers.items() for p, a in of_n.items()}
    )
    for file in (pickled, exported):
        policy = load_policy(file)
        assert policy.observation == "classic"
        assert policy.config == NetworkConfig("mlp", hidden_dim=8, num_layers=2)
    record = observe(Game.new(7).state)
    first, second = (load(file)(record, [True] * 28) for file in (pickled, exported))
    assert first == second
    # Their width and depth may be named as they are.
    agent = resolve(str(pickled))
    check_network(agent, 8, 2)
    check_network(resolve("scripted"), None, None)
    for named, width, depth, error in (
        (agent, 16, None, "by its arrays, --hidden-dim is 8: leave it out"),
        (agent, None, 3, "by its arrays, --num-layers is 2: leave it out"),
        (resolve("scripted"), 16, 2, "--hidden-dim: scripted has no network"),
    ):
        with pytest.raises(UserError, match=error):
            check_network(named, width, depth)


class Hostile:
    """Unpickling it calls a function that leaves a file."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("function", [os.system, subprocess.check_call, eval])
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


def test_classes_of_allowed_packages_are_neither_imported_nor_called(tmp_path: Path) -> None:
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


def bomb(levels: int) -> bytes:
    """Each dict holds the one below twice."""
    tree: Any = {}
    for _ in range(levels):
        tree = {"a": tree, "b": tree}
    return pickle.dumps({"Dense_0": tree})


def loop() -> bytes:
    tree: dict[str, Any] = {}
    tree["Dense_0"] = tree
    return pickle.dumps(tree)


def deep() -> bytes:
    return b"(l" * 50_000 + b"a" * 49_999 + b"."


def dense(kernel: bytes) -> bytes:
    """The pickle of {"Dense_0": {"kernel": ...}} around the pickle of an array."""
    return b"}X\x07\0\0\0Dense_0}X\x06\0\0\0kernel" + kernel + b"ss."


def array_of(content: bytes, dtype: bytes = b"X\x02\0\0\0f4", shape: bytes = b"(K\x0ct") -> bytes:
    """The pickle of an array without its end, from the pickles of its parts."""
    kind = b"cnumpy\ndtype\n(" + dtype + b"tR"
    return b"cnumpy.core.numeric\n_frombuffer\n(" + content + kind + shape + b"X\x01\0\0\0CtR"


ENCODED = [  # bytes as old protocols write them, but with odd arguments
    array_of(b"c_codecs\nencode\n(" + arguments + b"tR")
    for arguments in (b"", b"X\x01\0\0\0a", b"X\x02\0\0\0\xd0\xb4X\x06\0\0\0latin1", b"NNN")
]


OF_3_BY_4 = pickle.dumps({"Dense_0": {"kernel": np.zeros((3, 4), np.float32)}}, 2)
TOO_SHORT = OF_3_BY_4.replace(b"K\x03K\x04", b"K\x7fK\x7f")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "damaged pickle"),
        (b".", "damaged pickle"),
        (b"(.", "damaged pickle"),
        (b"Pabc\n.", "opcode PERSID"),
        (b"\x82\x01.", "opcode EXT1"),
        (b"(i__main__\nrun\n.", "opcode INST"),
        (b"(c__main__\nrun\no.", "opcode OBJ"),
        (b"Na.", "damaged pickle"),
        (b"I1\nI2\nb.", "state without its object"),
        (b"h\x05.", "damaged pickle"),
        (bomb(20), "more than 20,000"),
        (bomb(60), "more than 32 levels deep"),
        (loop(), "params"),
        (deep(), "holds no params"),
        (pickle.dumps({"Dense_0": {"kernel": np.array([object()])}}), "names"),
        (pickle.dumps({"Dense_0": {"kernel": np.array(["text"])}}), "which are no numbers"),
        (pickle.dumps({"Dense_0": {"kernel": None}}), "kernel, which is no array"),
        (pickle.dumps({"Dense_0": {"a\x1b[31m\n": np.zeros(2)}}), "a name that is no word"),
        (pickle.dumps({"Dense_0": {"a": np.full(2, 1e300)}}), "NaN or infinite"),
        (b"cos\x1b[31m\nsystem\n.", r"names os\\x1b\[31m\."),
        *((dense(array), "damaged pickle") for array in ENCODED),
        (TOO_SHORT, "shape does not fit its bytes"),
    ],
)
def test_odd_files_are_refused_in_one_line(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.pkl"
    path.write_bytes(data)
    with pytest.raises(UserError, match=message) as raised:
        read_params(path)
    assert str(raised.value).isprintable()


def nested(levels: int) -> bytes:
    """A list that holds a list twice, which holds another one twice."""
    return b"]\x94" + b"".join(b"](h%ch%ce\x94" % (i, i) for i in range(levels))


def number(n: int) -> bytes:
    size = n.bit_length() // 8 + 1
    return b"\x8b" + size.to_bytes(4, "little") + n.to_bytes(size, "little")


def bombs() -> dict[str, bytes]:
    """Small files that a careless reader spends hours or gigabytes on, by what they hold."""
    return {
        "a name of lists without end": dense(array_of(b"C\0", dtype=nested(100))),
        "a key of tuples without end": b"}" + b")" + b"2\x86" * 60 + b"Ns.",
        "a set of tuples without end": b"\x8f(" + b")" + b"2\x86" * 60 + b"\x90.",
        "the last place of a memo": b"Nr\xff\xff\xff\x7f.",
        "places that collide": b"N"
        + b"".join(b"p%d\n" % (i * (2**61 - 1)) for i in range(99_999))
        + b".",
        "keys that collide": b"}("
        + b"".join(number(i * (2**61 - 1)) + b"N" for i in range(1, 200_000))
        + b"u.",
        "many steps": b"N0" * 30_000_000 + b"N.",
        "many names": b"X\0\0\0\x01" + b"a" * 2**24 + b"\x94" + b"h\0h\0\x930" * 100_000 + b"N.",
        "deep calls": b"cjax\nf\n" * 300_000 + b"N" + b"\x85R" * 300_000 + b".",
        "a text of exabytes": b"\x8d" + (2**62).to_bytes(8, "little") + b"a.",
        "bytes of exabytes": b"\x96" + (2**62).to_bytes(8, "little") + b"a.",
        "a shape of long numbers": dense(
            array_of(b"C\0", shape=b"(" + number(2**80_000_000) * 2 + b"t")
        ),
        "many arrays of the same bytes": b"B\0\0\x10\0"
        + bytes(2**20)
        + b"\x94}X\x07\0\0\0Dense_0}("
        + b"".join(
            b"X\x04\0\0\0%04x" % i + array_of(b"h\0", shape=b"(J\0\0\4\0t") for i in range(9_999)
        )
        + b"us.",
    }


@pytest.mark.slow
def test_no_file_takes_much_time_or_memory(tmp_path: Path) -> None:
    files = bombs()
    for name, data in files.items():
        (tmp_path / f"{name}.pkl").write_bytes(data)
    code = """
import resource, sys, time
from hackmatrix.cli.main import main
resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
for path in sys.argv[1:]:
    start = time.monotonic()
    assert main(["checkpoint", "convert", path, path + ".npz"]) == 2
    assert time.monotonic() - start < 20, path
"""
    command = [sys.executable, "-c", code, *map(str, tmp_path.glob("*.pkl"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") == len(files)
    assert "MemoryError" not in done.stderr


VALID = pickle.dumps({"params": layers(), "opt_state": optax.adam(1e-3).init({"a": np.zeros(2)})})


@given(st.data())
def test_a_file_with_any_bytes_changed_is_read_or_refused(data: st.DataObject) -> None:
    changed = bytearray(VALID)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(VALID) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(UnreadableError):
        params_in(bytes(changed))


def pieces() -> list[bytes]:
    """The steps of a whole file in each protocol, and every opcode with an argument of zeros."""
    found = [opcode.code.encode("latin1") + bytes(8) + b"0\n" for opcode in pickletools.opcodes]
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        data = pickle.dumps({"params": layers()}, protocol)
        places = [place for _, _, place in pickletools.genops(data) if place is not None]
        found += [data[a:b] for a, b in itertools.pairwise([*places, len(data)])]
    return found


@given(st.lists(st.sampled_from(pieces()), max_size=40))
def test_any_steps_are_read_or_refused(steps: list[bytes]) -> None:
    with contextlib.suppress(UnreadableError):
        params_in(b"".join(steps) + b".")
