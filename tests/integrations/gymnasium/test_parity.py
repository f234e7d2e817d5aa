"""The three backends play the same games from the same seeds and actions."""

from collections import Counter
from typing import Any

import gymnasium
import numpy as np
import pytest

import hackmatrix
from hackmatrix.game.engine.game import GameOverError

pytestmark = pytest.mark.thorough

ID = hackmatrix.ENVIRONMENT_ID


def make(backend: str) -> Any:
    return gymnasium.make(ID, backend=backend).unwrapped


def played(env: Any, seed: int, actions: list[int], rng: np.random.Generator) -> list[Any]:
    """The game of a seed with these actions, or with random ones, which are then added to them."""
    observation, info = env.reset(seed=seed)
    told: list[Any] = [(observation, info)]
    given, done = list(actions), False
    while not done and len(told) < 150:
        chosen = len(told) - 1
        if not given:
            actions.append(int(rng.choice(np.flatnonzero(info["action_mask"]))))
        observation, reward, done, truncated, info = env.step(actions[chosen])
        told.append((observation, reward, done, truncated, info))
        if given and len(told) > len(given):
            break
    return told


def same(one: Any, other: Any) -> bool:
    """Whether two nested values are equal, numbers but for rounding."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(np.allclose(one, other, rtol=1e-5, atol=1e-5))


def compare(backend: str, seeds: range) -> Counter[str]:
    ours, theirs, rng = make("python"), make(backend), np.random.default_rng(seeds.start)
    seen = Counter[str]()
    for seed in seeds:
        actions: list[int] = []
        expected = played(ours, seed, actions, rng)
        got = played(theirs, seed, actions, rng)
        for step, (one, other) in enumerate(zip(expected, got, strict=True)):
            assert same(one, other), (seed, step)
        seen.update(flag for *_, info in expected for flag in info)
        seen["steps"] += len(actions)
    theirs.close()
    return seen


@pytest.mark.parametrize(
    "backend",
    [
        "process",
        pytest.param("jax", marks=[pytest.mark.slow, pytest.mark.timeout(1200)]),
    ],
)
def test_another_backend_plays_the_games_of_the_engine(backend: str) -> None:
    seen = compare(backend, range(6))
    assert seen["steps"] > 150
    assert seen["death"] > 2
    assert seen["stage_complete"] > 0


@pytest.mark.parametrize(
    "backend", ["python", "process", pytest.param("jax", marks=pytest.mark.slow)]
)
def test_an_invalid_action_is_told_alike(backend: str) -> None:
    env = make(backend)
    _, info = env.reset(seed=2)
    action = int(np.flatnonzero(~info["action_mask"])[0])
    _, reward, done, truncated, info = env.step(action)
    assert (reward, done, truncated, info["invalid_action"]) == (0.0, True, False, True)
    assert not any(info["reward_breakdown"].values())
    assert info["episode_stats"]["steps"] == 1
    with pytest.raises(GameOverError, match="call reset first"):
        env.step(0)
    env.close()
