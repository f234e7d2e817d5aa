"""Wrappers: what each changes, alone and nested, in a loop of single games and mapped in a scan."""

import copy
import pickle
import runpy
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import probe_environments as probes
import pytest
from paths import FROG

import hackmatrix
from hackmatrix.core.errors import UserError
from hackmatrix.environments.check import check_environment
from hackmatrix.environments.interface.environment import optional_members
from hackmatrix.environments.interface.spaces import Box, Discrete
from hackmatrix.environments.wrappers import (
    EnvParams,
    FloatObservations,
    GymnaxSignature,
    LogEpisodes,
    NoAutoReset,
    Wrapper,
)

Frog = runpy.run_path(str(FROG))["Frog"]
GAMES, STEPS = 8, 30
KEYS = jax.random.split(jax.random.key(0), GAMES)
# The frog's observation is a tree, and its games end by themselves; the grid's are cut off too.
environments = pytest.mark.parametrize(
    "make",
    [
        pytest.param(Frog, id="frog"),
        pytest.param(probes.Grid, id="grid", marks=pytest.mark.thorough),
    ],
)
WRAPPERS = [
    lambda env: GymnaxSignature(LogEpisodes(FloatObservations(env))),
    lambda env: LogEpisodes(NoAutoReset(env)),
]


def action_of(env: Any, state: Any, key: jax.Array) -> jax.Array:
    """Any valid action; where there is none, any."""
    mask = env.action_mask(state)
    return Discrete(env.num_actions).sample(key, mask | ~mask.any())


def play(env: Any, key: jax.Array, steps: int = STEPS) -> Any:
    """A random game: its steps' results, its first observation and the masks before them."""
    observation, state = env.reset(key)

    def step(state: Any, key: jax.Array) -> Any:
        stepped = env.step(key, state, action_of(env, state, key))
        return stepped[1], (env.action_mask(state), stepped)

    return observation, *jax.lax.scan(step, state, jax.random.split(key, steps))[1]


def played(env: Any) -> Any:
    """`play` of many games: every array has the leading axes [GAMES, STEPS]."""
    return jax.device_get(jax.jit(jax.vmap(lambda key: play(env, key)))(KEYS))


@cache
def bare_played(make: Any) -> Any:
    return played(make())


def at(tree: Any, index: Any) -> Any:
    return jax.tree.map(lambda x: x[index], tree)


def assert_equal(tree: Any, other: Any) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), tree, other)


@pytest.mark.thorough
@pytest.mark.parametrize("wrap", WRAPPERS)
def test_one_game_in_a_loop_is_a_mapped_one_in_a_scan(wrap: Any) -> None:
    env = wrap(Frog())
    first, masks, steps = played(env)
    step, choose = jax.jit(env.step), jax.jit(partial(action_of, env))
    observation, state = jax.jit(env.reset)(KEYS[3])
    assert_equal(observation, at(first, 3))
    for time, key in enumerate(jax.random.split(KEYS[3], STEPS)):
        assert env.action_mask(state).tolist() == masks[3, time].tolist()
        stepped = step(key, state, choose(state, key))
        assert_equal(stepped, at(steps, (3, time)))
        state = stepped[1]
    spec = env.spec
    assert jax.tree.structure(type(spec)(*stepped)) == jax.tree.structure(spec)
    for wanted, got in zip(jax.tree.leaves(spec), jax.tree.leaves(stepped), strict=True):
        assert (wanted.shape, wanted.dtype) == (got.shape, got.dtype)


@pytest.mark.thorough
@environments
def test_float_observations_are_the_features(make: Any) -> None:
    bare, env = make(), FloatObservations(make())
    features = jax.vmap(bare.features)
    first, _, (observation, _, reward, *ends, info) = bare_played(make)
    seen, _, (floats, _, same_reward, *same_ends, floats_info) = played(env)
    assert_equal(seen, features(first))
    assert_equal(floats, jax.vmap(features)(observation))
    assert_equal(floats_info["final_observation"], jax.vmap(features)(info["final_observation"]))
    assert_equal((same_reward, same_ends), (reward, ends))
    assert env.features(floats) is floats
    assert env.observation_space == Box(-np.inf, np.inf, (bare.feature_size,))


@environments
def test_the_log_is_of_the_last_episode_that_has_ended(make: Any) -> None:
    env = LogEpisodes(make())
    _, _, (_, state, reward, terminated, truncated, info) = played(env)
    ended = 0
    for game in range(GAMES):
        rewards: list[float] = []
        last = (0.0, 0)
        for time in range(STEPS):
            rewards.append(reward[game, time])
            ends = terminated[game, time] or truncated[game, time]
            if ends:
                last = (sum(rewards), len(rewards))
                rewards, ended = [], ended + 1
            assert info["returned_episode"][game, time] == ends
            told = [info[f"returned_episode_{name}"][game, time] for name in ("returns", "lengths")]
            assert told == pytest.approx(last)
            assert state.returned_episode_returns[game, time] == told[0]
            assert state.returned_episode_lengths[game, time] == told[1]
            assert state.episode_return[game, time] == pytest.approx(sum(rewards))
            assert state.episode_length[game, time] == len(rewards)
    assert ended > GAMES


@pytest.mark.thorough
@environments
def test_without_auto_reset_a_game_stays_at_its_end(make: Any) -> None:
    _, masks, (observation, _, reward, *ends, info) = played(NoAutoReset(make()))
    _, bare_masks, (_, _, bare_reward, *bare_ends, bare_info) = bare_played(make)
    for game in range(GAMES):
        end = int(np.argmax(bare_ends[0][game] | bare_ends[1][game]))
        assert end < STEPS - 1
        so_far = slice(0, end + 1)
        assert masks[game, so_far].tolist() == bare_masks[game, so_far].tolist()
        assert not masks[game, end + 1 :].any()
        np.testing.assert_array_equal(reward[game, so_far], bare_reward[game, so_far])
        assert not reward[game, end + 1 :].any()
        for time in range(STEPS):
            expected = at((bare_ends, bare_info), (game, min(time, end)))
            assert_equal(at((ends, info), (game, time)), expected)
        assert_equal(at(observation, game), at(info["final_observation"], game))


def test_the_signature_of_gymnax() -> None:
    bare = hackmatrix.make("CartPole-v1", max_episode_steps=12)
    env = GymnaxSignature(bare)
    params = env.default_params
    assert (params, env.name) == (EnvParams(max_steps_in_episode=12), "CartPole-v1")
    assert env.observation_space(params) == bare.observation_space
    assert env.action_space(params) == env.action_space() == Discrete(2)
    key, action = KEYS[0], jnp.int32(1)
    _, state = jax.jit(env.reset)(key, params)
    assert_equal(jax.jit(env.step)(key, state, action, params), bare.step(key, state, action))
    with pytest.raises(UserError, match=r"params must be default_params, .*=12.*, got .*=99"):
        env.reset(key, EnvParams(max_steps_in_episode=99))
    with pytest.raises(UserError, match="params must be default_params"):
        env.step(key, state, action, EnvParams(max_steps_in_episode=99))


@pytest.mark.thorough
def test_gymnax_own_wrapper_logs_by_the_same_names() -> None:
    from gymnax.wrappers import LogWrapper  # takes a second, in every worker

    env = GymnaxSignature(FloatObservations(Frog()))
    infos = []
    for wrapped in (LogEpisodes(env), LogWrapper(env)):
        _, state = jax.eval_shape(wrapped.reset, KEYS[0])
        infos.append(jax.eval_shape(wrapped.step, KEYS[0], state, jnp.int32(0))[-1])
    ours, theirs = infos
    shared = {name: (theirs[name].shape, theirs[name].dtype) for name in ours}
    assert {name: (each.shape, each.dtype) for name, each in ours.items()} == shared


# --- around HackMatrix ---------------------------------------------------------------------------


def equations(jaxpr: Any) -> list[Any]:
    """All equations of a jaxpr, those of inner ones too."""
    found = []
    for equation in jaxpr.eqns:
        found.append(equation)
        for inner in jax.tree.leaves(list(equation.params.values())):
            if isinstance(inner, jax.extend.core.ClosedJaxpr | jax.extend.core.Jaxpr):
                found += equations(getattr(inner, "jaxpr", inner))
    return found


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_a_mapped_step_is_one_step_of_the_batch(wrap: Any) -> None:
    env = wrap(hackmatrix.make())
    _, state = jax.eval_shape(jax.vmap(env.reset), KEYS)
    actions = jnp.zeros(GAMES, jnp.int32)
    jaxpr = jax.make_jaxpr(jax.vmap(env.step))(KEYS, state, actions)
    steps = [each for each in equations(jaxpr.jaxpr) if each.primitive.name == "over_games"]
    assert len(steps) == 1
    assert {x.aval.shape[0] for x in steps[0].invars} == {GAMES}


def test_what_a_wrapper_does_not_change_is_that_of_the_environment_within() -> None:
    bare = hackmatrix.make(max_episode_steps=7)
    env: Any = LogEpisodes(FloatObservations(bare))
    assert (env.id, env.layout, env.max_episode_steps) == ("HackMatrix-v1", "full", 7)
    assert env.env.env is bare
    assert repr(env) == f"LogEpisodes(FloatObservations({bare!r}))"
    assert isinstance(copy.copy(env).env, FloatObservations)
    assert pickle.loads(pickle.dumps(Wrapper(probes.Grid()))).size == 5
    with pytest.raises(AttributeError, match="'HackMatrixEnv' object has no attribute 'colour'"):
        _ = env.colour


def test_members_that_are_no_longer_right_are_hidden() -> None:
    bare: Any = hackmatrix.make()
    assert FloatObservations(bare).to_text == bare.to_text
    for name in ("feature_rows", "observe"):
        assert not hasattr(FloatObservations(bare), name)
    assert not hasattr(FloatObservations(Frog()), "report")
    assert LogEpisodes(Frog()).report.__func__ is Frog.report
    for name in ("to_text", "from_text", "observe", "action_bits"):
        assert not hasattr(LogEpisodes(bare), name)
        assert not hasattr(NoAutoReset(bare), name)
    assert hasattr(LogEpisodes(bare), "feature_rows")


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_a_game_is_started_by_its_name_where_it_has_one(wrap: Any) -> None:
    assert not hasattr(wrap(probes.Grid()), "reset_game")
    env = wrap(hackmatrix.make())
    word = jax.ShapeDtypeStruct((), jnp.uint32)
    by_key, by_name = jax.eval_shape(env.reset, KEYS[0]), jax.eval_shape(env.reset_game, word, word)
    assert by_key == by_name


class TimeLimit(Wrapper):
    """HackMatrix cut off after three actions, as a user writes it."""

    def step(self, key: Any, state: Any, action: Any) -> Any:
        observation, state, reward, terminated, _, info = self.env.step(key, state, action)
        truncated = info["episode_length"] >= 3
        state = jax.tree.map(
            partial(jnp.where, truncated), self.env.reset(jax.random.key(1))[1], state
        )
        return observation, state, reward, terminated, truncated, info


def test_a_wrapper_may_truncate() -> None:
    """So that values of final observations are computed (`learning/trainer/test_trainer.py`)."""
    env = TimeLimit(hackmatrix.make(layout="tactical"))
    check_environment(env)
    assert not optional_members(env).never_truncates


def test_a_wrapper_that_passes_truncation_on_keeps_the_limit() -> None:
    class Renamed(Wrapper):
        id = "Renamed-v0"

    class Doubled(Wrapper):
        def step(self, key: Any, state: Any, action: Any) -> Any:
            observation, state, reward, *others = self.env.step(key, state, action)
            return observation, state, 2 * reward, *others

    class NeverCut(Doubled):
        never_truncates = True

    bare, limited = hackmatrix.make(), hackmatrix.make(max_episode_steps=7)
    for wrap in (Renamed, FloatObservations, LogEpisodes, GymnaxSignature, NeverCut):
        assert optional_members(wrap(bare)).never_truncates
    assert not optional_members(Doubled(bare)).never_truncates  # unknown: it might
    assert not optional_members(limited).never_truncates
    assert optional_members(Doubled(limited)).max_episode_steps == 7
