"""Executables that are kept on disk: found by name, the same ones, and only where they fit."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import pytest
from jax import monitoring

from hackmatrix.core.compiled import kept_executables, kept_programs
from hackmatrix.core.compiled.kept_executables import KeptExecutables

_PROGRAM = """
import jax, jax.numpy as jnp
from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
from hackmatrix.core.compiled.kept_executables import KeptExecutables

@jax.jit
def roots_in_order(tree):
    return {"roots": jnp.sort(jnp.sqrt(tree["squares"]))}

enable_compilation_cache()
x = {"squares": jnp.array([9.0, 1.0, 4.0])}
kept = KeptExecutables("a program", ["roots"], jax.devices()[0])
print("kept" if kept.get("roots") else "compiled")
if not kept.get("roots"):
    kept.make("roots", roots_in_order.lower(x))
print(kept.get("roots")(x)["roots"].tolist())
"""

_TRAINING = """
import hashlib
import jax
from hackmatrix.environments.registry import make
from hackmatrix.learning.trainer.trainer import Trainer
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache

class Traced(Trainer):
    def _update(self, state, hyper):
        print("traced")
        return super()._update(state, hyper)

enable_compilation_cache()
for seed in 1, 2:
    sizes = dict(hidden_dim=8, num_envs=4, num_steps=4, num_minibatches=2)
    config = TrainConfig.of(env="CartPole-v1", seed=seed, lr=seed / 1000, **sizes)
    name = f"a run of {config.compiled_settings}"
    trainer = Traced(make("CartPole-v1"), config.learning, config.network, kept_as=name)
    state = trainer.run(trainer.run(trainer.start(seed), 0), 2)
    leaves = jax.tree.leaves(jax.device_get(state))
    print(hashlib.sha256(b"".join(leaf.tobytes() for leaf in leaves)).hexdigest())
"""


def said(code: str, folder: Path, *argv: str) -> list[str]:
    """Output of a process that keeps programs in a folder."""
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", code, *argv]
    return subprocess.run(
        command, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.splitlines()


def test_another_process_loads_what_was_compiled(tmp_path: Path) -> None:
    results = "[1.0, 2.0, 3.0]"
    assert said(_PROGRAM, tmp_path) == ["compiled", results]
    assert said(_PROGRAM, tmp_path) == ["kept", results]


_STATES = """
import sys
from dataclasses import dataclass
from typing import Any
import jax, jax.numpy as jnp
from hackmatrix.core.compiled import kept_programs
from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
from hackmatrix.core.compiled.kept_executables import KeptExecutables

kept_programs._LOADED = sys.argv[1]  # the source of the package
kept_programs._source = lambda: sys.argv[1]

@jax.tree_util.register_dataclass
@dataclass
class State:
    x: Any
    if sys.argv[1] == "2":
        memory: Any = None

enable_compilation_cache()
kept = KeptExecutables("a program", ["twice"], jax.devices()[0])
twice = jax.jit(lambda state: jax.tree.map(lambda x: 2 * x, state))
state = State(jnp.ones(2))
kept.make("twice", twice.lower(state))
print(kept.get("twice")(state))
"""


def test_a_field_without_arrays_makes_another_executable_though_the_program_is_the_same(
    tmp_path: Path,
) -> None:
    """The next version of the package has one more field in its state."""
    assert said(_STATES, tmp_path, "1") == ["State(x=Array([2., 2.], dtype=float32))"]
    assert said(_STATES, tmp_path, "2") == ["State(x=Array([2., 2.], dtype=float32), memory=None)"]


@pytest.mark.slow
def test_a_run_with_kept_executables_is_not_traced_and_ends_the_same(tmp_path: Path) -> None:
    traced, *first = said(_TRAINING, tmp_path)
    assert traced == "traced"
    assert len(set(first)) == 2
    assert said(_TRAINING, tmp_path) == first


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which executables are kept."""
    folder = tmp_path / "kept"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(kept_programs, "_folder", folder)
    return folder


def lowered(*, found_by_jax: bool, text: str = "a program") -> Any:
    def compile() -> str:
        if found_by_jax:
            monitoring.record_event("/jax/compilation_cache/cache_hits")
        return "an executable"

    return SimpleNamespace(as_text=lambda: text, compile=compile, in_tree="in", out_tree="out")


@pytest.mark.parametrize("found_by_jax", [False, True])
def test_what_jax_has_read_from_its_own_cache_is_not_written(
    found_by_jax: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_executables, "serialize", lambda executable: (executable, 0, 0))
    kept = KeptExecutables("a run", ["run"], jax.devices()[0])
    assert kept.get("run") is None
    kept.make("run", lowered(found_by_jax=found_by_jax))
    assert kept.get("run") == "an executable"
    assert len(list(folder.iterdir())) == (1 if found_by_jax else 2)


def test_what_would_call_lapack_without_having_looked_for_it_is_not_kept(folder: Path) -> None:
    text = jax.jit(jax.lax.linalg.cholesky).lower(jax.ShapeDtypeStruct((2, 2), "float32")).as_text()
    kept = KeptExecutables("a run", ["run"], jax.devices()[0])
    kept.make("run", lowered(found_by_jax=False, text=text))
    assert kept.get("run") == "an executable"
    assert not list(folder.iterdir())


def test_what_can_not_be_written_or_read_is_compiled(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise ValueError("Compilation does not support serialization")

    monkeypatch.setattr(kept_executables, "serialize", refused)
    kept = KeptExecutables("a run", ["run"], jax.devices()[0])
    kept.make("run", lowered(found_by_jax=False))
    assert kept.get("run") == "an executable"
    monkeypatch.setattr(kept_executables, "serialize", lambda _: ("damaged", 0, 0))
    KeptExecutables("a run", ["run"], jax.devices()[0]).make("run", lowered(found_by_jax=False))
    assert len(list(folder.iterdir())) == 2
    assert KeptExecutables("a run", ["run"], jax.devices()[0]).get("run") is None


def test_nothing_is_kept_where_the_processor_is_unknown(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_executables, "_CPU_INFO", tmp_path / "nothing")
    monkeypatch.setattr(kept_executables, "_processor", kept_executables._processor.__wrapped__)
    kept = KeptExecutables("a run", ["run"], jax.devices()[0])
    kept.make("run", lowered(found_by_jax=False))
    assert kept.get("run") == "an executable"
    assert not list(folder.iterdir())


@pytest.mark.usefixtures("folder")
def test_another_name_processor_flag_or_source_has_other_executables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = jax.devices()[0]
    of_name = [kept_executables._key_of_name("a run", device)]
    of_program = [kept_executables._key_of_program("a program", device)]
    of_name.append(kept_executables._key_of_name("another run", device))
    of_program.append(kept_executables._key_of_program("another program", device))
    with monkeypatch.context() as patch:
        patch.setattr(kept_executables, "_processor", lambda: ("flags: avx",))
        of_name.append(kept_executables._key_of_name("a run", device))
        of_program.append(kept_executables._key_of_program("a program", device))
    with monkeypatch.context() as patch:
        patch.setenv("XLA_FLAGS", "--xla_cpu_prefer_vector_width=512")
        of_name.append(kept_executables._key_of_name("a run", device))
        of_program.append(kept_executables._key_of_program("a program", device))
    monkeypatch.setattr(kept_programs, "_LOADED", "another source")
    monkeypatch.setattr(kept_programs, "_source", lambda: "another source")
    of_name.append(kept_executables._key_of_name("a run", device))
    assert None not in of_name
    assert len(set(of_name)) == 5
    assert len(set(of_program)) == 4
    assert kept_executables._key_of_program("a program", device) == of_program[0]
