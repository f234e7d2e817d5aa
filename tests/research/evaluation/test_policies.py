"""Functions as agents: in NumPy without JAX, in JAX, and the same games as the agents by name."""

import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hackmatrix
from hackmatrix.agents.roster.built_in import exit_action
from hackmatrix.core.errors import UserError
from hackmatrix.environments.hackmatrix.observations import OBSERVATIONS, SHAPES
from hackmatrix.game import native

engines = pytest.mark.parametrize(
    "is_native",
    [
        False,
        pytest.param(True, marks=pytest.mark.skipif(not native.available, reason="left out")),
    ],
)
INVALID = 27  # HACK is never owned at the start


def walk(records: Any, masks: Any) -> list[int]:
    """The built-in player `exit`, of arrays."""
    each = zip(records, masks.tolist(), strict=True)
    return [exit_action(record.tobytes(), mask) for record, mask in each]


@engines
def test_a_function_in_numpy_plays_the_games_of_the_agents_by_name(
    is_native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = hackmatrix.evaluate("exit", episodes=20, seed=3, max_steps=40)
    monkeypatch.setattr(native, "available", is_native)
    found = hackmatrix.evaluate(walk, episodes=20, seed=3, max_steps=40)
    assert found.games == expected.games
    assert found.as_dict() == expected.as_dict()


@pytest.mark.parametrize("episodes", [1, 2, 5])
def test_one_may_return_its_state_too_as_predict_of_stable_baselines3(episodes: int) -> None:
    how: dict[str, Any] = {"episodes": episodes, "max_steps": 12}
    report = hackmatrix.evaluate(lambda *seen: (np.array(walk(*seen)), None), **how)
    assert report.games == hackmatrix.evaluate(walk, **how).games
    assert hackmatrix.evaluate(lambda *seen: tuple(walk(*seen)), **how).games == report.games


@engines
@pytest.mark.parametrize("observation", OBSERVATIONS)
def test_it_sees_the_games_under_way(
    observation: str, is_native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "available", is_native)
    shapes = set()

    def first(seen: Any, masks: Any) -> Any:
        assert (masks.shape, masks.dtype) == ((len(seen), 28), bool)
        assert masks.any(axis=1).all()
        shapes.add((seen.shape[1:], seen.dtype.name))
        return masks.argmax(axis=1)

    report = hackmatrix.evaluate(first, observation=observation, episodes=5, max_steps=12)
    assert report.episodes == 5
    assert shapes == {(SHAPES[observation], "uint8" if observation == "compact" else "float32")}


@pytest.mark.skipif(not native.available, reason="left out")
def test_games_that_ended_are_not_shown_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hackmatrix.research.evaluation.lockstep_games._AT_ONCE", 8)
    games = []

    def count(seen: Any, masks: Any) -> Any:
        games.append(len(seen))
        return masks.argmax(axis=1)

    report = hackmatrix.evaluate(count, episodes=11, max_steps=30)
    assert games[0] == 8
    assert max(games) == 8
    assert sum(games) == sum(row["steps"] for row in report.games)
    assert [row["game"] for row in report.games] == list(range(11))


@engines
def test_an_invalid_action_ends_a_game(is_native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "available", is_native)
    report = hackmatrix.evaluate(lambda _, masks: [INVALID] * len(masks), episodes=3)
    assert [row["ending"] for row in report.games] == ["invalid_action"] * 3
    assert (report.wins.mean, report.stages.mean) == (0, 0)
    assert report.invalid_actions == 3
    lines = [line.split() for line in report.table().splitlines()]
    assert ["invalid", "action", "3"] in lines
    assert ["points", "a", "win", "-"] in lines  # there is no win
    assert "invalid" not in hackmatrix.evaluate(walk, episodes=3).table()


def test_it_needs_no_jax() -> None:
    code = (
        "import sys, hackmatrix\n"
        "sys.modules.update(dict.fromkeys(('jax', 'flax', 'scipy')))\n"
        "report = hackmatrix.evaluate(lambda seen, mask: mask.argmax(1), episodes=3)\n"
        "print(report.table())\n"
        "assert len(report.games) == hackmatrix.evaluate('scripted', episodes=3).episodes\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("games ")


def first_valid(params: Any, seen: Any, mask: Any, key: Any) -> Any:
    del seen, key
    return jnp.argmax(mask + params)


def test_a_function_in_jax_plays_the_same_games() -> None:
    ours = hackmatrix.evaluate(
        first_valid, params=jnp.zeros(28), observation="tactical", episodes=6, max_steps=20
    )
    theirs = hackmatrix.evaluate(lambda _, masks: masks.argmax(1), episodes=6, max_steps=20)
    assert ours.games == theirs.games


def test_keys_differ_by_game_and_step() -> None:
    def any_valid(params: Any, seen: Any, mask: Any, key: Any) -> Any:
        del params, seen
        return jax.random.categorical(key, jnp.where(mask, 0.0, -jnp.inf))

    found = [hackmatrix.evaluate(any_valid, episodes=8, max_steps=20) for _ in range(2)]
    assert found[0].games == found[1].games
    assert len({str(list(row.values())[2:]) for row in found[0].games}) > 6


def test_it_plays_other_environments_too() -> None:
    def lean(params: Any, seen: Any, mask: Any, key: Any) -> Any:
        del params, mask, key
        return (seen[2] > 0).astype(int)

    report = hackmatrix.evaluate(lean, env="CartPole-v1", episodes=3, max_steps=50)
    assert report.means()["mean_return"] > 20
    assert list(report.games[0]) == ["game", "seed", "return", "length", "cut_off"]
    with pytest.raises(UserError, match="no win_rate is reported of this environment"):
        report.wins  # noqa: B018


@pytest.mark.thorough
def test_a_loaded_agent_is_such_a_function() -> None:
    agent = hackmatrix.load_agent()
    env = hackmatrix.make(observation=agent.observation)
    seen, state = jax.vmap(env.reset)(jax.random.split(jax.random.key(0), 6))
    masks, keys = jax.vmap(env.action_mask)(state), jax.random.split(jax.random.key(1), 6)
    actions = jax.jit(jax.vmap(agent, (None, 0, 0, 0)))(agent.params, seen, masks, keys)
    first = jax.jit(agent)(agent.params, seen[0], masks[0], keys[0])
    assert first == actions[0]
    assert (actions.shape, actions.dtype) == ((6,), jnp.int32)
    assert masks[jnp.arange(6), actions].all()

    how: dict[str, Any] = {"episodes": 8, "max_steps": 30, "seed": 4}
    by_name = hackmatrix.evaluate("shipped", **how)
    assert hackmatrix.evaluate(agent, **how).games == by_name.games

    def function(params: Any, seen: Any, mask: Any, key: Any) -> Any:
        return agent(params, seen, mask, key)

    shown = {"params": agent.params, "observation": agent.observation}
    assert hackmatrix.evaluate(function, **shown, **how).games == by_name.games


def test_wrong_ones_are_told() -> None:
    with pytest.raises(UserError, match=r"int\[5\], got int64\[5, 2\]"):
        hackmatrix.evaluate(lambda *_: np.zeros((5, 2), int), episodes=5)
    with pytest.raises(UserError, match=r"int\[5\], got float64\[5\]"):
        hackmatrix.evaluate(lambda *_: np.zeros(5), episodes=5)
    with pytest.raises(UserError, match=r"actions must be 0..27, the policy returned 28..28"):
        hackmatrix.evaluate(lambda *_: np.full(5, 28), episodes=5)
    with pytest.raises(UserError, match=r"of one game, int\[\], got float32\[28\]"):
        hackmatrix.evaluate(lambda _0, _1, mask, _2: mask * 1.0, episodes=2, max_steps=2)
    with pytest.raises(UserError, match=r"actions must be 0..27, the policy took others"):
        hackmatrix.evaluate(lambda _0, _1, mask, _2: 28 + mask[0], episodes=2, max_steps=2)
    with pytest.raises(UserError, match=r"one action a game, int\[5\], got \(3, array\(\[0"):
        hackmatrix.evaluate(lambda *_: (3, np.zeros(5, int)), episodes=5)
    with pytest.raises(UserError, match=r"the action of one game, int\[\], got a tuple"):
        hackmatrix.evaluate(lambda _0, _1, mask, _2: (mask.argmax(), mask), episodes=2, max_steps=2)
    for agent in (len, 7, None):
        with pytest.raises(UserError, match="an agent is a name, or a function of"):
            hackmatrix.evaluate(agent)
    with pytest.raises(UserError, match=r"observation must be one of compact, .*got 'rgb'"):
        hackmatrix.evaluate(walk, observation="rgb")
    with pytest.raises(UserError, match=r"final_params.npz reads tactical"):
        hackmatrix.evaluate(hackmatrix.load_agent(), observation="full")
    with pytest.raises(UserError, match="greedy and search go with networks"):
        hackmatrix.evaluate(walk, greedy=True)
    for agent in ("random", walk):
        with pytest.raises(UserError, match="params go with a function of"):
            hackmatrix.evaluate(agent, params={})
    with pytest.raises(UserError, match="plays HackMatrix-v1, not CartPole-v1"):
        hackmatrix.evaluate(walk, env="CartPole-v1")
    with pytest.raises(UserError, match="episodes and max_steps must be at least 1"):
        hackmatrix.evaluate(walk, episodes=0)
