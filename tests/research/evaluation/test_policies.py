"""Functions as agents: in NumPy without JAX, in JAX, and the same games as the agents by name."""

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

pytestmark = pytest.mark.thorough

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
def test_a_function_plays_the_games_of_a_name(
    is_native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = hackmatrix.evaluate("exit", episodes=20, seed=3, max_steps=40)
    monkeypatch.setattr(native, "available", is_native)
    found = hackmatrix.evaluate(walk, episodes=20, seed=3, max_steps=40)
    assert found.games == expected.games
    assert found.as_dict() == expected.as_dict()


def test_one_may_return_its_state_too_as_predict_of_stable_baselines3() -> None:
    how: dict[str, Any] = {"episodes": 2, "max_steps": 12}  # as many as there are results
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

    found = hackmatrix.evaluate(any_valid, episodes=8, max_steps=20)
    assert len({str(list(row.values())[2:]) for row in found.games}) > 6


def test_it_plays_other_environments_too() -> None:
    def lean(params: Any, seen: Any, mask: Any, key: Any) -> Any:
        del params, mask, key
        return (seen[2] > 0).astype(int)

    report = hackmatrix.evaluate(lean, env="CartPole-v1", episodes=3, max_steps=50)
    assert report.means()["mean_return"] > 20
    assert list(report.games[0]) == ["game", "seed", "return", "length", "cut_off"]
    with pytest.raises(UserError, match="no win_rate is reported of this environment"):
        report.wins  # noqa: B018


def test_a_loaded_agent_is_such_a_function() -> None:
    agent = hackmatrix.load_agent()
    with pytest.raises(UserError, match=r"final_params.npz reads tactical"):
        hackmatrix.evaluate(agent, observation="full")
    env = hackmatrix.make(observation=agent.observation)
    seen, state = jax.vmap(env.reset)(jax.random.split(jax.random.key(0), 6))
    masks, keys = jax.vmap(env.action_mask)(state), jax.random.split(jax.random.key(1), 6)
    actions = jax.jit(jax.vmap(agent, (None, 0, 0, 0)))(agent.params, seen, masks, keys)
    assert (actions.shape, actions.dtype) == ((6,), jnp.int32)
    assert masks[jnp.arange(6), actions].all()

    how: dict[str, Any] = {"episodes": 4, "max_steps": 12, "seed": 4}
    by_name = hackmatrix.evaluate("shipped", **how)
    assert hackmatrix.evaluate(agent, **how).games == by_name.games


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (np.zeros((5, 2), int), r"int\[5\], got int64\[5, 2\]"),
        (np.zeros(5), r"int\[5\], got float64\[5\]"),
        (np.full(5, 28), r"actions must be 0\.\.27, the policy returned 28\.\.28"),
        ((3, np.zeros(5, int)), r"one action a game, int\[5\], got \(3, array\(\[0"),
    ],
)
def test_what_is_no_action_is_told(returned: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        hackmatrix.evaluate(lambda *_: returned, episodes=5)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (lambda mask: mask * 1.0, r"of one game, int\[\], got float32\[28\]"),
        (lambda mask: (mask.argmax(), mask), r"the action of one game, int\[\], got a tuple"),
        pytest.param(
            lambda mask: 28 + mask[0],
            r"actions must be 0\.\.27, the policy took others",
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_what_is_no_action_in_jax_is_told(policy: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        hackmatrix.evaluate(lambda _0, _1, mask, _2: policy(mask), episodes=2, max_steps=2)


@pytest.mark.parametrize(
    ("agent", "options", "message"),
    [
        *((agent, {}, "an agent is a name, or a function of") for agent in (len, 7, None)),
        (walk, {"observation": "rgb"}, "observation must be one of compact, .*got 'rgb'"),
        (walk, {"greedy": True}, "greedy and search go with networks"),
        *((agent, {"params": {}}, "params go with a function of") for agent in ("random", walk)),
        (walk, {"env": "CartPole-v1"}, "plays HackMatrix-v1, not CartPole-v1"),
        (walk, {"episodes": 0}, "episodes and max_steps must be at least 1"),
    ],
)
def test_what_can_not_play_is_told(agent: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        hackmatrix.evaluate(agent, **options)
