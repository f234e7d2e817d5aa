"""TPUs play the games by a kernel, if they have a compiler that takes it."""

import warnings

import jax
import pytest

from hackmatrix.environments.hackmatrix import engines, pallas_games
from hackmatrix.learning.settings.config import TrainConfig

engine_of = engines.engine_of.__wrapped__


@pytest.fixture(autouse=True)
def on_a_tpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")


def test_a_tpu_plays_by_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pallas_games, "why_not", lambda: None)
    with warnings.catch_warnings(action="error"):
        assert engine_of("auto").NAME == "pallas"


def test_a_kernel_that_does_not_compile_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pallas_games, "why_not", lambda: "unsupported operation")
    line = r"no kernel for this TPU \(unsupported operation\); XLA compiles the games"
    with pytest.warns(UserWarning, match=line):
        assert engine_of("auto").NAME == "jax"


def test_a_run_can_leave_the_kernel_out() -> None:
    assert TrainConfig().run.engine == "auto"
    assert TrainConfig.of(kernels="xla").run.engine == "jax"


@pytest.mark.slow
def test_a_reason_is_the_compilers_first_line() -> None:
    assert pallas_games.why_not() == "Only interpret mode is supported on CPU backend."
