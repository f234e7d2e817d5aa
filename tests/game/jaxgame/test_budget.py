"""The size of the environment's programs, of which the time to the first result is made.

The figures are of JAX 0.10. A change that moves one by more than a tenth writes down the new one
here, and its reason in the message of the commit.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax_games import ENV, GAMES, _step

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.game.jaxgame import batch
from hackmatrix.learning.algorithms.config import PPOConfig
from hackmatrix.learning.trainer.trainer import Trainer

LINES = {  # of StableHLO
    "reset": 9_931,
    "step": 33_782,
    "mask": 701,
    "features": 639,
    "update": 40_478,
}
BYTES = 2_843

STREAM = jax.ShapeDtypeStruct((GAMES,), jnp.uint32)
RESET = jax.jit(jax.vmap(ENV.reset_game))


def a_tenth_of(figure: int) -> Any:
    return pytest.approx(figure, rel=0.1)


@pytest.fixture(scope="module")
def started() -> Any:
    return jax.eval_shape(RESET, STREAM, STREAM)


def lines(lowered: Any) -> int:
    return len(lowered.as_text().splitlines())


@pytest.mark.thorough
def test_lines_of_the_environment(started: Any) -> None:
    observation, state = started
    actions = jax.ShapeDtypeStruct((GAMES,), jnp.int32)
    programs = {
        "reset": RESET.lower(STREAM, STREAM),
        "step": _step.lower(None, state, actions),
        "mask": jax.jit(jax.vmap(ENV.action_mask)).lower(state),
        "features": jax.jit(jax.vmap(ENV.features)).lower(observation),
    }
    sizes = {name: lines(program) for name, program in programs.items()}
    assert sizes == {name: a_tenth_of(LINES[name]) for name in programs}


def test_bytes_of_a_game(started: Any) -> None:
    _, state = started
    sizes = (np.prod(leaf.shape[1:]) * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    assert sum(sizes) == a_tenth_of(BYTES)


@pytest.mark.thorough
def test_a_training_update_is_traced_once_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    traced = []
    step = batch.step

    def counting(*args: Any) -> Any:
        traced.append(args)
        return step(*args)

    monkeypatch.setattr(batch, "step", counting)
    trainer = Trainer(ENV, PPOConfig(num_envs=GAMES, num_steps=8), NetworkConfig())
    program = trainer.traced().lower()
    assert len(traced) == 1
    assert lines(program) == a_tenth_of(LINES["update"])
