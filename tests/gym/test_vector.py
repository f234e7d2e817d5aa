"""Many games in Gymnasium: the games of single environments, in each mode of autoreset."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import hackmatrix.gym
from hackmatrix.errors import UserError

ID = hackmatrix.ENVIRONMENT_ID
GAMES = 4


def make(**options: Any) -> Any:
    return gymnasium.make_vec(ID, num_envs=GAMES, **options)


def single(**options: Any) -> Any:
    return gymnasium.make(ID, **options).unwrapped


def choose(rng: np.random.Generator, masks: Any) -> Any:
    """Random valid actions, now and then an invalid one, so that games end soon."""
    wanted = np.where(rng.random((len(masks), 1)) < 0.05, ~masks, masks)
    return (wanted * rng.random(masks.shape)).argmax(1)


def close(one: Any, other: Any) -> bool:
    """Whether features are equal but for rounding: XLA multiplies by reciprocals."""
    return np.allclose(one, other, rtol=1e-6, atol=1e-6)


def test_the_same_games_as_single_ones() -> None:
    """SAME_STEP: until a game ends, all that a single environment tells; then the next begins."""
    env, rng = make(), np.random.default_rng(1)
    assert env.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    games = [single() for _ in range(GAMES)]
    seen, infos = env.reset(seed=70)
    assert env.observation_space.contains(seen)
    first = [game.reset(seed=70 + i)[0] for i, game in enumerate(games)]
    for name, values in seen.items():
        assert close(values, np.stack([each[name] for each in first]))
    running, ended = set(range(GAMES)), 0
    for _ in range(60):
        actions = choose(rng, infos["action_mask"])
        seen, rewards, terminated, truncated, infos = env.step(actions)
        assert not truncated.any()
        assert infos["action_mask"].any(1).all()
        assert ("final_obs" in infos) == bool(terminated.any())
        for i in sorted(running):
            alone, reward, done, _, info = games[i].step(actions[i])
            assert (done, reward) == (terminated[i], pytest.approx(rewards[i], abs=1e-4))
            shown = infos["final_obs"] if done else seen
            for name, values in alone.items():
                assert close(values, shown[name][i])
            if done:
                assert infos["_final_obs"][i]
                assert infos["episode_length"][i] == info["episode_stats"]["steps"]
                assert infos["stage"][i] == info["episode_stats"]["highest_stage"]
                running.remove(i)
                ended += 1
            else:
                assert np.array_equal(info["action_mask"], infos["action_mask"][i])
    assert ended >= 2


@pytest.mark.slow
def test_tactical_games_that_pay_for_progress() -> None:
    """What single environments tell and pay; the game's own return is in the infos."""
    env = make(observation="tactical", reward="progress", max_episode_steps=30)
    games = [single(observation="tactical", reward="progress") for _ in range(GAMES)]
    seen, infos = env.reset(seed=70)
    assert env.observation_space.contains(seen)
    assert close(seen, np.stack([game.reset(seed=70 + i)[0] for i, game in enumerate(games)]))
    rng, own, running = np.random.default_rng(1), np.zeros(GAMES), set(range(GAMES))
    for _ in range(29):
        actions = choose(rng, infos["action_mask"])
        seen, rewards, terminated, _, infos = env.step(actions)
        assert env.observation_space.contains(seen)
        for i in sorted(running):
            alone, reward, done, _, info = games[i].step(actions[i])
            own[i] += info["game_reward"]
            assert (done, reward) == (terminated[i], pytest.approx(rewards[i], abs=1e-4))
            assert close(alone, infos["final_obs"][i] if done else seen[i])
            assert infos["episode_return"][i] == pytest.approx(own[i], abs=1e-3)
            if done:
                running.remove(i)
    assert len(running) < GAMES


@pytest.mark.slow
def test_next_step() -> None:
    """The last observation first; the step after it begins the next game, whatever the action."""
    env, rng = make(autoreset_mode="NextStep", observation="compact"), np.random.default_rng(1)
    ended = 0
    _, infos = env.reset(seed=5)
    waiting = np.zeros(GAMES, bool)
    for _ in range(40):
        actions = choose(rng, infos["action_mask"])
        _, rewards, terminated, _, infos = env.step(actions)
        assert not rewards[waiting].any()
        assert not terminated[waiting].any()
        assert (infos["episode_length"][waiting] == 0).all()
        waiting = terminated
        ended += int(waiting.sum())
        assert "final_obs" not in infos
    assert ended >= 2


@pytest.mark.slow
def test_next_step_plays_the_games_of_same_step() -> None:
    env = make(autoreset_mode=AutoresetMode.NEXT_STEP, observation="compact")
    same = make(observation="compact")
    seen, infos = env.reset(seed=9)
    told, told_infos = same.reset(seed=9)
    ended = False
    for step in range(40):
        actions = np.array([np.flatnonzero(m)[step % m.sum()] for m in infos["action_mask"]])
        if step == 3:
            actions[:] = np.flatnonzero(~infos["action_mask"].any(0))[0]  # ends all games
        seen, _, terminated, _, infos = env.step(actions)
        told, _, _, _, told_infos = same.step(actions)
        if step == 3:
            assert terminated.all()
            assert np.array_equal(seen, told_infos["final_obs"])
            seen, rewards, terminated, _, infos = env.step(actions)
            assert not rewards.any()
            assert not terminated.any()
            ended = True
        if terminated.any():
            break
        assert np.array_equal(seen, told)
        assert np.array_equal(infos["action_mask"], told_infos["action_mask"])
    assert ended


@pytest.mark.slow
def test_disabled() -> None:
    env = make(autoreset_mode=AutoresetMode.DISABLED, observation="full", max_episode_steps=3)
    _, infos = env.reset(seed=1)
    actions = infos["action_mask"].argmax(1)
    actions[2] = np.flatnonzero(~infos["action_mask"][2])[0]
    before, _, terminated, truncated, infos = env.step(actions)
    assert terminated.tolist() == [False, False, True, False]
    with pytest.raises(UserError, match="1 games have ended: reset them"):
        env.step(actions)
    seen, infos = env.reset(seed=50, options={"reset_mask": terminated})
    assert close(seen[2], single(observation="full").reset(seed=52)[0])
    assert np.array_equal(seen[[0, 1, 3]], before[[0, 1, 3]])
    for _ in range(2):
        *_, terminated, truncated, infos = env.step(infos["action_mask"].argmax(1))
    assert truncated[[0, 1, 3]].all()
    assert not truncated[2]


def test_wrong_use_is_told() -> None:
    with pytest.raises(UserError, match="num_envs must be at least 1, got 0"):
        gymnasium.make_vec(ID, num_envs=0)
    with pytest.raises(UserError, match="observation must be one of"):
        make(observation="rgb")
    with pytest.raises(UserError, match="reward must be one of game, progress, got 'points'"):
        make(reward="points")
    env = make()
    with pytest.raises(UserError, match="call reset first"):
        env.step(np.zeros(GAMES, int))
    with pytest.raises(UserError, match="seed must be one number or 4"):
        env.reset(seed=[1, 2])
    env._games = ()  # as if there were games, which take long to compile
    with pytest.raises(UserError, match=r"actions must be integers \[4\], got float64\[2\]"):
        env.step(np.zeros(2))
    with pytest.raises(UserError, match=r"actions must be 0\.\.27, got 0\.\.28"):
        env.step(np.array([0, 1, 28, 3]))
