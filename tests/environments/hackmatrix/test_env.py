"""The public environment: what a step returns, how episodes end, that every way of mapping it is
the same game, and how a person reads and writes its states."""

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hackmatrix
from hackmatrix.environments.hackmatrix import EnvState, HackMatrixEnv
from hackmatrix.environments.interface.spaces import Box, StepSpec
from hackmatrix.game import native
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.fields import IllegalStateError
from hackmatrix.game.rules.observation import RECORD_SIZE

GAMES = 16
LIMIT = 100  # steps of an episode, more than any test plays from its start
INVALID = 27  # HACK is never owned at the start


def start(env: HackMatrixEnv) -> tuple[jax.Array, EnvState]:
    streams = jnp.arange(GAMES, dtype=jnp.uint32)
    return jax.vmap(env.reset_game, in_axes=(0, None))(streams, jnp.uint32(0))


def stepper(env: HackMatrixEnv) -> Any:
    return jax.jit(lambda state, action: jax.vmap(env.step, (None, 0, 0))(None, state, action))


@partial(jax.jit, static_argnums=0)
def first_valid(env: HackMatrixEnv, state: EnvState) -> jax.Array:
    return jnp.argmax(jax.vmap(env.action_mask)(state), axis=1)


@partial(jax.jit, static_argnums=0)
def any_valid(env: HackMatrixEnv, state: EnvState, seed: jax.Array) -> jax.Array:
    keys = jax.random.split(jax.random.key(seed), GAMES)
    return jax.vmap(env.action_space.sample)(keys, jax.vmap(env.action_mask)(state))


def one(tree: Any, game: int) -> Any:
    return jax.tree.map(lambda x: x[game], tree)


def stacked(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *x: jnp.stack(x), *trees)


@pytest.fixture(
    scope="module",
    params=[
        # It takes a minute to compile; `test_engines.py` has comparisons with the native engine.
        pytest.param("jax", marks=pytest.mark.slow),
        pytest.param("native", marks=pytest.mark.skipif(not native.available, reason="left out")),
    ],
)
def env(request: Any) -> HackMatrixEnv:
    return hackmatrix.make("HackMatrix-v1", max_episode_steps=LIMIT, engine=request.param)


@pytest.fixture(scope="module")
def step(env: HackMatrixEnv) -> Any:
    return stepper(env)


@pytest.fixture(scope="module")
def started(env: HackMatrixEnv) -> tuple[jax.Array, EnvState]:
    return start(env)


@pytest.mark.thorough
def test_every_step_of_random_games_is_as_the_spec_says(
    env: HackMatrixEnv, step: Any, started: Any
) -> None:
    spec, (observation, state) = env.spec, started
    assert spec.observation == env.observation_space == Box(0, 255, (RECORD_SIZE,), np.uint8)
    assert (spec.reward.shape, spec.reward.dtype) == ((), jnp.float32)
    assert spec.info["reward_parts"].shape == (15,)
    assert jax.vmap(env.observation_space.contains)(observation).all()
    steps: list[StepSpec] = []
    for time in range(60):
        steps.append(StepSpec(*step(state, any_valid(env, state, time))))
        state = steps[-1].state
        assert steps[-1].info.keys() == spec.info.keys()
        assert jax.tree.structure(state) == jax.tree.structure(spec.state)
    taken = jax.tree.map(lambda *x: np.stack(x), *jax.device_get(steps))
    for wanted, got in zip(jax.tree.leaves(spec), jax.tree.leaves(taken), strict=True):
        assert ((60, GAMES, *wanted.shape), wanted.dtype) == (got.shape, got.dtype)
        if not isinstance(wanted, jax.ShapeDtypeStruct):
            assert jax.vmap(jax.vmap(wanted.contains))(got).all()
    parts = taken.info["reward_parts"].sum(axis=2)
    np.testing.assert_allclose(taken.reward, parts, rtol=1e-6, atol=1e-5)
    assert taken.terminated.sum() > GAMES


def test_the_key_makes_a_stream_without_the_evaluation_bit(env: HackMatrixEnv) -> None:
    keys = jax.random.split(jax.random.key(3), GAMES)
    _, state = jax.vmap(env.reset)(keys)
    streams = [one(state, i).to_engine().dice.stream for i in range(GAMES)]
    assert max(streams) < 2**31
    assert len(set(streams)) == GAMES


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
    episodes = [one(state, i).to_engine().dice.episode for i in range(GAMES)]
    assert episodes == [i == 3 for i in range(GAMES)]
    assert (int(state.episode_length[3]), int(state.episode_return[3])) == (0, 0)
    assert (int(info["episode_length"][3]), int(state.episode_length[4])) == (1, 1)


def test_a_step_limit_truncates_and_termination_goes_before_it(
    env: HackMatrixEnv, step: Any, started: Any
) -> None:
    _, state = started
    state = dataclasses.replace(state, episode_length=jnp.full(GAMES, LIMIT - 2, jnp.int32))
    _, state, _, terminated, truncated, _ = step(state, first_valid(env, state))
    assert not (terminated | truncated).any()
    actions = first_valid(env, state).at[0].set(INVALID)
    observation, state, _, terminated, truncated, info = step(state, actions)
    assert terminated.tolist() == [i == 0 for i in range(GAMES)]
    assert truncated.tolist() == [i != 0 for i in range(GAMES)]
    assert info["episode_length"].tolist() == [LIMIT] * GAMES
    assert state.episode_length.tolist() == [0] * GAMES
    assert observation[5].tobytes() == Game.new(5, 1).observation()
    assert info["final_observation"][5].tolist() != observation[5].tolist()


def test_without_auto_reset_nothing_changes_after_the_end(env: HackMatrixEnv) -> None:
    env = hackmatrix.make(auto_reset=False, reward="progress", engine=env.engine)
    step, (_, state) = stepper(env), start(env)
    observation, ended, *_ = step(state, jnp.full(GAMES, INVALID))
    again, after, reward, terminated, _, info = step(ended, jnp.zeros(GAMES, jnp.int32))
    assert terminated.all()
    assert not jax.vmap(env.action_mask)(after).any()
    assert (reward == 0).all()
    assert info["episode_length"].tolist() == [1] * GAMES
    assert again.tolist() == observation.tolist()
    assert one(after, 2).to_engine() == one(ended, 2).to_engine()


def test_an_action_out_of_range_is_an_invalid_one(step: Any, started: Any) -> None:
    actions = jnp.resize(jnp.array([-1, 28, 1000, 2**31 - 1], jnp.int32), GAMES)
    _, _, reward, terminated, _, _ = step(started[1], actions)
    assert terminated.all()
    assert (reward == 0).all()


def test_every_integer_type_names_the_same_game(env: HackMatrixEnv) -> None:
    for kind in (int, np.int8, np.uint32, np.int64, np.array, jnp.int32):
        _, state = env.reset_game(kind(7), kind(5))
        assert env.to_text(state) == Game.new(7, 5).to_text()


@pytest.mark.parametrize("word", [5.7, np.float32(5), jnp.float32(5), np.array([5]), jnp.arange(2)])
def test_what_is_no_integer_names_no_game(env: HackMatrixEnv, word: Any) -> None:
    for argument, game in (("stream", (word, 0)), ("episode", (7, word))):
        with pytest.raises(TypeError, match=rf"^{argument} must be an integer, got .*$"):
            env.reset_game(*game)


@pytest.mark.parametrize("word", [np.int32(-1), 2**32])
def test_a_number_beyond_a_word_names_no_game(env: HackMatrixEnv, word: Any) -> None:
    with pytest.raises(ValueError, match=rf"^episode must be 0\.\.4294967295, got {word}$"):
        env.reset_game(7, word)


# --- states as people read and write them --------------------------------------------------------


@pytest.fixture(scope="module")
def played(env: HackMatrixEnv, step: Any, started: Any) -> EnvState:
    """Games after some turns, with enemies on the board and UNDO states saved."""
    state = started[1]
    for _ in range(12):
        state = step(state, first_valid(env, state))[1]
    return state


def test_a_game_goes_on_from_its_text(env: HackMatrixEnv, step: Any, played: EnvState) -> None:
    texts = [env.to_text(one(played, i)) for i in range(GAMES)]
    state = stacked([env.from_text(text) for text in texts])
    for wanted, got in zip(jax.tree.leaves(played), jax.tree.leaves(state), strict=True):
        assert (wanted.shape, wanted.dtype, wanted.weak_type) == (got.shape, got.dtype, False)
    actions = first_valid(env, played)
    observations, after, rewards, *_ = step(played, actions)
    seen, state, *others, info = step(state, actions)
    np.testing.assert_array_equal(seen, observations)
    np.testing.assert_array_equal(others[0], rewards)
    assert info["episode_length"].tolist() == [1] * GAMES
    for i in range(GAMES):
        assert env.to_text(one(state, i)) == env.to_text(one(after, i))


def test_text_that_is_no_position_is_refused(env: HackMatrixEnv, played: EnvState) -> None:
    text = env.to_text(one(played, 0))
    with pytest.raises(IllegalStateError, match=r"^player\.hp: expected 1\.\.3, got 4$"):
        env.from_text(text.replace("player hp 3", "player hp 4"))
    with pytest.raises(ValueError, match=r"^the state holds 16 games; take one of them, such as "):
        env.to_text(played)


def test_a_state_is_shown_as_its_board(env: HackMatrixEnv, played: EnvState) -> None:
    text = env.to_text(one(played, 0))
    shown = repr(one(played, 0)).splitlines()
    total = float(played.episode_return[0]) * 0.005
    assert shown[0] == f"EnvState: return {total:g} after {played.episode_length[0]} actions"
    assert shown[1:] == text.splitlines()[: len(shown) - 1]
    assert shown[-1].startswith("owned")
    assert repr(played).splitlines()[0].startswith("EnvState of 16 games, the first: return ")
    assert repr(played).splitlines()[1:] == shown[1:]
    grid = jax.tree.map(lambda x: x.reshape(4, 4, *x.shape[1:]), played)
    assert repr(grid).startswith("EnvState of 4 x 4 games, the first: ")
    assert repr(jax.device_get(one(played, 0))) == repr(one(played, 0))


def test_what_holds_no_game_is_shown_as_shapes(played: EnvState) -> None:
    shown: list[str] = []
    jax.jit(jax.vmap(lambda state: shown.append(repr(state))))(played)
    gone = jax.tree.map(jnp.copy, played)
    jax.tree.map(lambda x: x.delete(), gone)
    none = jax.tree.map(lambda x: x[:0], played)
    no_game = jax.tree.map(lambda x: x[0] + np.array(99, x.dtype), played)
    axes = jax.tree.map(lambda _: 0, played)  # as in in_axes
    shown += map(repr, (jax.eval_shape(lambda: played), gone, none, no_game, axes))
    assert shown[0].startswith(f"EnvState(game=<{len(jax.tree.leaves(played.game))} arrays>, ")
    kinds = ("int32[]", "int32[16]", "int32[16]", "int32[0]", "int32[]", "0")
    for text, kind in zip(shown, kinds, strict=True):
        assert text.endswith(f", episode_return={kind}, episode_length={kind})")


def test_notebooks_show_the_picture_of_one_game(played: EnvState) -> None:
    picture = hackmatrix.draw(one(played, 2))
    assert picture == hackmatrix.draw(one(played, 2).to_engine())
    assert one(played, 2)._repr_html_() == picture
    assert played._repr_html_() is None
    assert jax.eval_shape(lambda: one(played, 2))._repr_html_() is None


def test_what_needs_a_vmap_says_so(env: HackMatrixEnv, started: Any) -> None:
    many = jax.tree.map(lambda x: x[:3], started[1])
    for call in (lambda: env.step(None, many, jnp.zeros(3, int)), lambda: env.action_mask(many)):
        with pytest.raises(ValueError, match=r"takes one game, got 3: jax.vmap\(env\."):
            call()
    single = one(started[1], 5)
    with pytest.raises(ValueError, match="one integer as action, got float32"):
        env.step(None, single, jnp.float32(1))
    with pytest.raises(ValueError, match="step takes an EnvState, got ndarray"):
        env.step(None, np.zeros(3), 1)
