"""Steps as the environment takes them: results, restarts and limits."""

import subprocess
import sys

import numpy as np
import pytest

from hackmatrix.game.native import batch

GAMES = 100


def test_a_game_that_ends_is_followed_by_the_next_of_its_stream() -> None:
    streams = np.arange(GAMES, dtype=np.uint32) * 7
    games = batch.reset(streams, np.full(GAMES, 5))
    next_games = batch.reset(streams, np.full(GAMES, 6))
    last, _ = batch.observe(games)
    first, first_mask = batch.observe(next_games)
    stepped = batch.step(games, np.full(GAMES, 27, np.int32))  # HACK, which nobody owns
    assert stepped.terminated.all()
    assert not stepped.truncated.any()
    np.testing.assert_array_equal(stepped.final_observation, last)
    np.testing.assert_array_equal(stepped.observation, first)
    np.testing.assert_array_equal(stepped.mask, first_mask)
    np.testing.assert_array_equal(games.states, next_games.states)
    assert stepped.episode_length.tolist() == [1] * GAMES
    assert not stepped.reward.any()


@pytest.mark.parametrize("auto_reset", [True, False])
def test_a_limit_truncates(auto_reset: bool) -> None:
    games = batch.reset(np.arange(GAMES), np.zeros(GAMES))
    for number in (1, 2, 3):
        _, mask = batch.observe(games)
        valid = np.array([int(bits & -bits).bit_length() - 1 for bits in mask.tolist()], np.int32)
        stepped = batch.step(games, valid, max_episode_steps=3, auto_reset=auto_reset)
        assert (stepped.truncated == (number == 3)).all()
        assert (stepped.episode_done == stepped.truncated).all()
        assert (stepped.episode_length == number).all()
    episodes = games.states["dice"]["episode"]
    assert (episodes == int(auto_reset)).all()


def test_an_ended_game_stays_as_it_is() -> None:
    games = batch.reset(np.arange(GAMES), np.zeros(GAMES))
    batch.step(games, np.full(GAMES, 27, np.int32), auto_reset=False)
    before = games.states.copy()
    stepped = batch.step(games, np.zeros(GAMES, np.int32), auto_reset=False)
    np.testing.assert_array_equal(games.states, before)
    assert stepped.terminated.all()
    assert not stepped.mask.any()
    assert not stepped.reward_parts.any()


@pytest.mark.parametrize("action", [-1, 28, 2**31 - 1, -(2**31)])
def test_an_action_that_does_not_exist_is_invalid(action: int) -> None:
    games = batch.reset(np.arange(GAMES), np.zeros(GAMES))
    stepped = batch.step(games, np.full(GAMES, action, np.int32), auto_reset=False)
    assert stepped.terminated.all()


def test_threads_change_nothing() -> None:
    results = []
    for number in (1, 5):
        games = batch.reset(np.arange(1000), np.zeros(1000), threads=number)
        _, mask = batch.observe(games, threads=number)
        for step in range(20):
            actions = (mask.argsort() + step).astype(np.int32) % 5
            stepped = batch.step(games, actions, threads=number)
            mask = stepped.mask
        results.append((games.states.tobytes(), *(x.tobytes() for x in stepped)))
    assert results[0] == results[1]


def test_arrays_of_another_number_of_games_are_refused() -> None:
    games = batch.reset(np.arange(4), np.zeros(4))
    with pytest.raises(ValueError, match="as many rows"):
        batch.step(games, np.zeros(3, np.int32))
    with pytest.raises(ValueError, match="as many rows"):
        batch.step(games, np.zeros(4, np.int32), out=batch.empty_step(5))
    with pytest.raises(TypeError):
        batch.step(games, np.zeros(4, np.float32))


def test_jax_is_not_needed() -> None:
    code = (
        "import sys\n"
        "sys.modules['jax'] = None\n"
        "import numpy as np\n"
        "from hackmatrix.game.native import batch, conversion\n"
        "games = batch.reset(np.arange(4), np.zeros(4))\n"
        "batch.step(games, np.zeros(4, np.int32))\n"
        "conversion.state_to_engine(games, 0)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
