"""The kernels for NVIDIA's GPUs play right, and NVRTC takes them.

They run on a CPU, as C++ (`helpers/cuda_on_cpu.py`); what NVRTC and ptxas make of them for a
device, only a device can tell: `scripts/bench_gpu.sh`.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import cuda_on_cpu
import jax
import pytest
from paths import ROOT

from hackmatrix.game.native import _native, cuda, cuda_check

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(sys.platform != "linux", reason="NVRTC is for Linux and Windows"),
]
HELPERS = ROOT / "tests/helpers"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("cuda")
    cuda_on_cpu.build(made)
    return made


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    """Runs Python where the driver is the one of the folder."""
    paths = {"LD_LIBRARY_PATH": str(folder), "PYTHONPATH": f"{ROOT}:{HELPERS}"}
    environment = {**os.environ, **paths, "JAX_PLATFORMS": "cpu"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True
        )

    return run


def test_kernels_play_right(run: Run) -> None:
    checked = run("-m", cuda_check.__name__, os.devnull)
    assert (checked.returncode, checked.stdout) == (0, "\n"), checked.stderr


def test_a_wrong_kernel_is_found(run: Run) -> None:
    """The engine on the CPU gives another reward for each stage: the kernels are wrong then."""
    found = run(
        "-c",
        """
from hackmatrix.game.native import batch, cuda_check
right = batch.step
def other(*arguments, **settings):
    made = right(*arguments, **settings)
    made.reward[made.stage > 1] += 1
    return made
batch.step = other
print(cuda_check.first_difference(b""))
""",
    )
    assert found.stdout.startswith("reward after "), found.stderr


@pytest.mark.slow
def test_lockstep_with_the_native_engine(run: Run, folder: Path) -> None:
    """Each result of a step, whole states, the layout `tactical` and imagined games.

    The scripted player comes further than random play.
    """
    size = ("--games", "128", "--steps", "50", "--on-cpu", str(folder))
    played = run(str(HELPERS / "cuda_lockstep.py"), *size, "--scripted")
    assert played.returncode == 0, played.stdout + played.stderr


TRAINING = """
import sys
from pathlib import Path
if len(sys.argv) > 2:
    from cuda_on_cpu import install
    install(Path(sys.argv[2]))
import hackmatrix
hackmatrix.train(
    total_timesteps=3 * 64 * 16, num_envs=64, num_steps=16, observation="tactical",
    checkpoint_dir=sys.argv[1], run_name="run", wandb=False,
)
"""


@pytest.mark.slow
def test_a_training_through_the_handlers_is_equal_to_the_last_bit(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    from hackmatrix.agents.networks.policy import load_policy

    params = []
    for name, of_kernels in (("cpu", ()), ("gpu", (str(folder),))):
        trained = run("-c", TRAINING, str(tmp_path / name), *of_kernels)
        assert trained.returncode == 0, trained.stderr
        params.append(load_policy(tmp_path / name / "run").params)
    import numpy as np

    for one, other in zip(*map(jax.tree.leaves, params), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_kept_file_that_the_driver_does_not_take_is_compiled_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu, answers, asked = SimpleNamespace(compute_capability="9.0"), ["damaged", ""], []

    def cubin(capability: str, *, anew: bool = False) -> bytes:
        asked.append((capability, anew))
        return b""

    monkeypatch.setattr(jax, "devices", lambda _: [gpu])
    monkeypatch.setattr(cuda._native, "load_kernels", lambda _: answers.pop(0))
    monkeypatch.setattr(cuda, "cubin", cubin)
    monkeypatch.setattr(cuda, "register_handlers", lambda: None)
    cuda.register.__wrapped__()
    assert asked == [("90", False), ("90", True)]


def test_nvrtc_compiles_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "OPTIONS", (*cuda.OPTIONS, "--Ofast-compile=max"))
    image = cuda.find_nvrtc().compile("compute_80").decode()
    assert all(f".entry {name}(" in image for name in _native.CUDA_HANDLERS)


def test_an_error_of_nvrtc_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {**cuda.sources(), "kernels.cu": '#include "calls.hpp"\nint wrong = nothing;\n'}
    monkeypatch.setattr(cuda, "sources", lambda: dict(texts))
    with pytest.raises(cuda.CudaError, match=r'kernels.cu\(2\): error: .*"nothing" is undefined'):
        cuda.find_nvrtc().compile("compute_80")


def test_without_nvrtc_a_line_says_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(cuda, "_LIBRARIES", ("libnothing.so.1",))
    with pytest.raises(cuda.CudaError, match=r"jax\[cuda12\] and jax\[cuda13\] bring it"):
        cuda.find_nvrtc()
