"""The environment's face: what a step returns, how episodes end, and that every way of mapping it
is the same game."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hackmatrix
from hackmatrix.engine import Game
from hackmatrix.engine.observation import features
from hackmatrix.jaxgame import EnvState, HackMatrixEnv
from hackmatrix.jaxgame.conversion import state_to_engine
from hackmatrix.rules.observation import RECORD_SIZE

GAMES = 16
INVALID = 27  # HACK is never owned at the start


def start(env: HackMatrixEnv, games: int = GAMES) -> tuple[jax.Array, EnvState]:
    streams = jnp.arange(games, dtype=jnp.uint32)
    return jax.vmap(env.reset_game, in_axes=(0, None))(streams, jnp.uint32(0))


def stepper(env: HackMatrixEnv) -> Any:
    return jax.jit(lambda state, action: jax.vmap(env.step, (None, 0, 0))(None, state, action))


def first_valid(env: HackMatrixEnv, state: EnvState) -> jax.Array:
    return jnp.argmax(jax.vmap(env.action_mask)(state), axis=1)


def one(tree: Any, game: int) -> Any:
    return jax.tree.map(lambda x: x[game], tree)


@pytest.fixture(scope="module")
def env() -> HackMatrixEnv:
    return hackmatrix.make("HackMatrix-v1")


@pytest.fixture(scope="module")
def step(env: HackMatrixEnv) -> Any:
    return stepper(env)


@pytest.fixture(scope="module")
def started(env: HackMatrixEnv) -> tuple[jax.Array, EnvState]:
    return jax.jit(lambda: start(env))()


def test_shapes_and_dtypes(env: HackMatrixEnv, step: Any, started: Any) -> None:
    observation, state = started
    observation, state, reward, terminated, truncated, info = step(state, first_valid(env, state))
    assert (observation.shape, observation.dtype) == ((GAMES, RECORD_SIZE), jnp.uint8)
    assert RECORD_SIZE <= 300
    assert (reward.shape, reward.dtype) == ((GAMES,), jnp.float32)
    assert (terminated.dtype, truncated.dtype) == (jnp.bool, jnp.bool)
    assert info["reward_parts"].shape == (GAMES, 15)
    assert info["final_observation"].shape == observation.shape
    np.testing.assert_allclose(info["reward_parts"].sum(axis=1), reward, rtol=1e-6)


def test_owned_programs_are_counted(env: HackMatrixEnv, step: Any, started: Any) -> None:
    _, state = started
    owned = jnp.arange(GAMES, dtype=jnp.uint32)  # sets of programs
    state = dataclasses.replace(state, game=dataclasses.replace(state.game, owned=owned))
    *_, info = step(state, first_valid(env, state))
    assert info["programs_owned"].tolist() == [number.bit_count() for number in range(GAMES)]


def test_the_key_makes_a_stream_without_the_evaluation_bit(env: HackMatrixEnv) -> None:
    keys = jax.random.split(jax.random.key(3), 64)
    _, state = jax.jit(jax.vmap(env.reset))(keys)
    streams = np.asarray(state.game.dice.stream)
    assert (streams >> 31 == 0).all()
    assert len(set(streams.tolist())) == 64


def test_an_episode_that_ends_makes_way_for_the_next_of_its_stream(
    env: HackMatrixEnv, step: Any, started: Any
) -> None:
    before, state = started
    actions = first_valid(env, state).at[3].set(INVALID)
    observation, state, reward, terminated, truncated, info = step(state, actions)
    assert terminated.tolist() == [i == 3 for i in range(GAMES)]
    assert not truncated.any()
    assert reward[3] == 0
    assert info["episode_done"].tolist() == terminated.tolist()
    assert info["final_observation"][3].tolist() == before[3].tolist()
    assert observation[3].tobytes() == Game.new(3, 1).observation()
    assert info["final_observation"][4].tolist() == observation[4].tolist()
    assert state.game.dice.episode.tolist() == [i == 3 for i in range(GAMES)]
    assert (int(state.episode_length[3]), int(state.episode_return[3])) == (0, 0)
    assert (int(info["episode_length"][3]), int(state.episode_length[4])) == (1, 1)


def test_a_step_limit_truncates_and_termination_goes_before_it(started: Any) -> None:
    env = hackmatrix.make(max_episode_steps=2)
    step = stepper(env)
    _, state = started
    _, state, _, terminated, truncated, _ = step(state, first_valid(env, state))
    assert not (terminated | truncated).any()
    actions = first_valid(env, state).at[0].set(INVALID)
    observation, state, _, terminated, truncated, info = step(state, actions)
    assert terminated.tolist() == [i == 0 for i in range(GAMES)]
    assert truncated.tolist() == [i != 0 for i in range(GAMES)]
    assert info["episode_length"].tolist() == [2] * GAMES
    assert state.episode_length.tolist() == [0] * GAMES
    assert observation[5].tobytes() == Game.new(5, 1).observation()
    assert info["final_observation"][5].tolist() != observation[5].tolist()


def test_without_auto_reset_nothing_changes_after_the_end(started: Any) -> None:
    env = hackmatrix.make(auto_reset=False)
    step = stepper(env)
    _, state = started
    observation, ended, *_ = step(state, jnp.full(GAMES, INVALID, jnp.int32))
    again, after, reward, terminated, _, info = step(ended, jnp.zeros(GAMES, jnp.int32))
    assert terminated.all()
    assert not jax.vmap(env.action_mask)(after).any()
    assert (reward == 0).all()
    assert info["episode_length"].tolist() == [1] * GAMES
    assert again.tolist() == observation.tolist()
    assert state_to_engine(one(after.game, 2)) == state_to_engine(one(ended.game, 2))


@pytest.mark.parametrize("action", [-1, 28, 1000])
def test_an_action_out_of_range_is_an_invalid_one(step: Any, started: Any, action: int) -> None:
    _, _, reward, terminated, _, _ = step(started[1], jnp.full(GAMES, action, jnp.int32))
    assert terminated.all()
    assert (reward == 0).all()


@pytest.mark.slow  # compiles the game three times more
def test_jit_vmap_nested_vmap_and_scan_play_the_same_games(
    env: HackMatrixEnv, step: Any, started: Any
) -> None:
    state = started[1]
    actions = first_valid(env, state)
    expected = step(state, actions)

    alone = jax.jit(env.step)(None, one(state, 7), actions[7])
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b[7]), alone, expected)

    def split(tree: Any) -> Any:
        return jax.tree.map(lambda x: x.reshape(4, 4, *x.shape[1:]), tree)

    twice = jax.vmap(jax.vmap(env.step, (None, 0, 0)), (None, 0, 0))
    nested = jax.jit(lambda s, a: twice(None, s, a))(split(state), split(actions))
    jax.tree.map(np.testing.assert_array_equal, nested, split(expected))

    def body(state: EnvState, _: None) -> tuple[EnvState, jax.Array]:
        return jax.vmap(env.step, (None, 0, 0))(None, state, first_valid(env, state))[1::-1]

    scanned, observations = jax.jit(lambda s: jax.lax.scan(body, s, None, length=3))(state)
    for observation in observations:
        wanted, state, *_ = step(state, first_valid(env, state))
        np.testing.assert_array_equal(observation, wanted)
    jax.tree.map(np.testing.assert_array_equal, scanned, state)


def test_a_step_keeps_shapes_and_dtypes_so_that_it_is_compiled_once(
    env: HackMatrixEnv, started: Any
) -> None:
    step, state = stepper(env), started[1]
    shapes = jax.eval_shape(step, state, first_valid(env, state))[1]
    assert jax.tree.map(lambda x: (x.shape, x.dtype), shapes) == jax.tree.map(
        lambda x: (x.shape, x.dtype), state
    )


@pytest.mark.parametrize("layout", ["classic", "full"])
def test_features_agree_with_the_python_engine(step: Any, layout: str) -> None:
    env = hackmatrix.make(observation=layout)
    observation, state = start(env)
    for _ in range(4):
        floats = jax.jit(jax.vmap(env.features))(observation)
        assert (floats.shape, floats.dtype) == ((GAMES, env.feature_size), jnp.float32)
        expected = [features(record.tobytes(), layout) for record in np.asarray(observation)]
        np.testing.assert_allclose(floats, np.array(expected), atol=1e-6)
        observation, state, *_ = step(state, first_valid(env, state))


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ValueError, match="classic, full"):
        hackmatrix.make(observation="pixels")
    with pytest.raises(ValueError, match="at least 1"):
        hackmatrix.make(max_episode_steps=0)
    with pytest.raises(ValueError, match="HackMatrix-v1"):
        hackmatrix.make("HackMatrix-v0")
