"""The public environment: what a step returns, how episodes end, that every way of mapping it is
the same game, and how a person reads and writes its states."""

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jax_games
import numpy as np
import pytest

import hackmatrix
from hackmatrix.environments.hackmatrix import EnvState, HackMatrixEnv
from hackmatrix.environments.interface.spaces import StepSpec
from hackmatrix.game import native
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.fields import IllegalStateError
from hackmatrix.game.foresight.features import features
from hackmatrix.game.jaxgame.conversion import state_to_engine
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
        pytest.param("jax", marks=pytest.mark.thorough),
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


def test_every_step_of_random_games_is_as_the_spec_says(
    env: HackMatrixEnv, step: Any, started: Any
) -> None:
    spec, (observation, state) = env.spec, started
    assert spec.observation == env.observation_space
    assert jax.vmap(env.observation_space.contains)(observation).all()
    ended = 0
    for time in range(60):
        stepped = StepSpec(*step(state, any_valid(env, state, time)))
        state = stepped.state
        assert stepped.info.keys() == spec.info.keys()
        assert jax.tree.structure(stepped.state) == jax.tree.structure(spec.state)
        for wanted, got in zip(jax.tree.leaves(spec), jax.tree.leaves(stepped), strict=True):
            assert ((GAMES, *wanted.shape), wanted.dtype) == (got.shape, got.dtype)
            if not isinstance(wanted, jax.ShapeDtypeStruct):
                assert jax.vmap(wanted.contains)(got).all()
        parts = stepped.info["reward_parts"].sum(axis=1)
        np.testing.assert_allclose(stepped.reward, parts, rtol=1e-6, atol=1e-5)
        ended += int(stepped.terminated.sum())
    assert ended > GAMES


def test_owned_programs_are_counted(env: HackMatrixEnv, step: Any) -> None:
    states = [Game.new(stream).state for stream in range(GAMES)]
    for number, state in enumerate(states):
        state.owned = list(range(number))
    games = stacked([env.from_engine(state) for state in states])
    *_, info = step(games, first_valid(env, games))
    assert info["programs_owned"].tolist() == list(range(GAMES))


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


@pytest.mark.thorough
def test_without_auto_reset_nothing_changes_after_the_end() -> None:
    env, games = jax_games.ENV, jax_games.GAMES
    assert not env.auto_reset
    state = jax_games.begin([Game.new(stream).state for stream in range(games)])
    observation, ended, *_ = jax_games.step(state, np.full(games, INVALID))
    again, after, reward, terminated, _, info = jax_games.step(ended, np.zeros(games))
    assert terminated.all()
    assert not jax_games.masks(after).any()
    assert (reward == 0).all()
    assert info["episode_length"].tolist() == [1] * games
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

    single = env.reset_game(7, 0)  # plain integers name a game too
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b[7]), single, started)


@pytest.mark.parametrize("kind", [int, np.int8, np.uint32, np.int64, np.array, jnp.int32])
def test_every_integer_type_names_the_same_game(env: HackMatrixEnv, kind: Any) -> None:
    game = Game.new(7, 5).to_text()
    assert env.to_text(env.reset_game(kind(7), kind(5))[1]) == game


@pytest.mark.parametrize("word", [5.7, np.float32(5), jnp.float32(5), np.array([5]), jnp.arange(2)])
def test_what_is_no_integer_names_no_game(env: HackMatrixEnv, word: Any) -> None:
    for argument, game in (("stream", (word, 0)), ("episode", (7, word))):
        with pytest.raises(TypeError, match=rf"^{argument} must be an integer, got .*$"):
            env.reset_game(*game)


@pytest.mark.parametrize("word", [-1, np.int32(-1), 2**32, np.int64(2**32 + 5)])
def test_a_number_beyond_a_word_names_no_game(env: HackMatrixEnv, word: Any) -> None:
    with pytest.raises(ValueError, match=rf"^episode must be 0\.\.4294967295, got {word}$"):
        env.reset_game(7, word)


def test_a_step_keeps_shapes_and_dtypes_so_that_it_is_compiled_once(
    env: HackMatrixEnv, started: Any
) -> None:
    step, state = stepper(env), started[1]
    shapes = jax.eval_shape(step, state, first_valid(env, state))[1]
    assert jax.tree.map(lambda x: (x.shape, x.dtype), shapes) == jax.tree.map(
        lambda x: (x.shape, x.dtype), state
    )


@pytest.mark.parametrize("layout", ["classic", "full"])
def test_features_agree_with_the_python_engine(env: HackMatrixEnv, step: Any, layout: str) -> None:
    env = hackmatrix.make(layout=layout, engine=env.engine)
    observation, state = start(env)
    features_of = jax.jit(jax.vmap(env.features))
    for _ in range(4):
        floats = features_of(observation)
        assert (floats.shape, floats.dtype) == ((GAMES, env.feature_size), jnp.float32)
        expected = [features(record.tobytes(), layout) for record in np.asarray(observation)]
        np.testing.assert_allclose(floats, np.array(expected), atol=1e-6)
        observation, state, *_ = step(state, first_valid(env, state))


# --- states as people read and write them --------------------------------------------------------


@pytest.fixture(scope="module")
def played(env: HackMatrixEnv, step: Any, started: Any) -> EnvState:
    """Games after some turns, with enemies on the board and UNDO states saved."""
    state = started[1]
    for _ in range(12):
        state = step(state, first_valid(env, state))[1]
    return state


def test_the_text_of_a_state_is_that_of_the_python_engine(
    env: HackMatrixEnv, step: Any, started: Any
) -> None:
    state, games = started[1], [Game.new(stream) for stream in range(GAMES)]
    for _ in range(12):
        actions = first_valid(env, state)
        state = step(state, actions)[1]
        for i, game in enumerate(games):
            if game.step(int(actions[i])).done:
                games[i] = Game.new(i, game.state.dice.episode + 1)
    texts = [env.to_text(one(state, i)) for i in range(GAMES)]
    assert texts == [game.to_text() for game in games]
    assert any("saved" in text for text in texts)


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


@pytest.mark.slow
def test_a_state_without_its_observation_is_observed(
    env: HackMatrixEnv, step: Any, played: EnvState
) -> None:
    observations, after, *_ = step(played, first_valid(env, played))
    np.testing.assert_array_equal(jax.jit(jax.vmap(env.observe))(after), observations)
    np.testing.assert_array_equal(env.observe(one(after, 3)), observations[3])


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


def test_a_state_without_values_is_shown_as_shapes(played: EnvState) -> None:
    arrays = len(jax.tree.leaves(played.game))
    shown: list[str] = []
    jax.jit(lambda state: shown.append(repr(state)))(played)
    jax.jit(jax.vmap(lambda state: shown.append(repr(state))))(played)
    shown.append(repr(jax.eval_shape(lambda: played)))
    assert shown == [
        f"EnvState(game=<{arrays} arrays>, episode_return={kind}, episode_length={kind})"
        for kind in ("int32[16]", "int32[]", "int32[16]")
    ]
    gone = jax.tree.map(jnp.copy, played)
    jax.tree.map(lambda x: x.delete(), gone)
    assert "int32[16]" in repr(gone)


@pytest.mark.parametrize(
    ("change", "sums"),
    [
        (lambda _: 0, "0"),  # as in in_axes
        (lambda _: None, "None"),
        (lambda x: x[:0], "int32[0]"),
        (lambda x: x[0] + np.array(99, x.dtype), "int32[]"),
    ],
    ids=["axes", "nothing", "no games", "no game"],
)
def test_what_is_no_state_of_a_game_can_be_shown_too(
    played: EnvState, change: Any, sums: str
) -> None:
    state = jax.tree.map(change, played)
    assert repr(state).endswith(f"episode_return={sums}, episode_length={sums})")


def test_notebooks_show_the_picture_of_one_game(played: EnvState) -> None:
    picture = hackmatrix.draw(one(played, 2))
    assert picture == hackmatrix.draw(one(played, 2).to_engine())
    assert one(played, 2)._repr_html_() == picture
    assert played._repr_html_() is None
    assert jax.eval_shape(lambda: one(played, 2))._repr_html_() is None


def test_the_environment_is_shown_as_it_is_made() -> None:
    env = hackmatrix.make(observation="classic", max_episode_steps=7)
    assert repr(env) == (
        "hackmatrix.make('HackMatrix-v1', observation='classic', max_episode_steps=7, "
        "auto_reset=True, reward='game', engine='auto')"
    )


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
