"""Environments that were used, in another process or as a copy: they play the same games."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from paths import FROG

import hackmatrix
from hackmatrix.environments.curriculum.env import with_curriculum
from hackmatrix.environments.curriculum.levels import Curriculum
from hackmatrix.environments.interface.environment import optional_members
from hackmatrix.environments.wrappers import FloatObservations, LogEpisodes, NoAutoReset

MAKERS: dict[str, Callable[[], Any]] = {
    "tactical": lambda: hackmatrix.make(layout="tactical", reward="progress"),
    "several tasks": lambda: hackmatrix.make("frog:Frog+HackMatrix-v1"),
    "curriculum": lambda: with_curriculum(hackmatrix.make(), Curriculum.of("programs")),
    "wrapped": lambda: LogEpisodes(FloatObservations(NoAutoReset(hackmatrix.make()))),
}


def played(env: Any) -> Any:
    key = jax.random.key(3)
    observation, state = jax.jit(env.reset)(key)
    if (imagination := optional_members(env).imagination) is not None:
        imagination().begin(1)
    return env.action_mask(state), env.features(observation), jax.jit(env.step)(key, state, 0)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "kind",
    [
        # It is the engine in JAX, which takes longest to compile.
        pytest.param(name, marks=pytest.mark.slow if name == "curriculum" else ())
        for name in MAKERS
    ],
)
def test_a_used_environment_is_pickled_and_copied(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(FROG.parent)
    env = MAKERS[kind]()
    results = played(env)
    for other in (pickle.loads(pickle.dumps(env)), copy.deepcopy(env)):
        jax.tree.map(np.testing.assert_array_equal, played(other), results)


def test_a_state_is_pickled() -> None:
    _, state = hackmatrix.make().reset(jax.random.key(3))
    same = pickle.loads(pickle.dumps(state))
    assert same.to_engine() == state.to_engine() == copy.deepcopy(state).to_engine()
