"""Classic control: the face of an environment, Gymnasium's dynamics, and that it is learned."""

from functools import cache
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from paths import CONFIGS
from scipy.stats import ks_2samp

from hackmatrix.agents.roster.batch_players import network_player
from hackmatrix.environments.classic import ClassicControl
from hackmatrix.environments.registry import CLASSIC_CONTROL
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.learning.trainer.trainer import Trainer
from hackmatrix.research.evaluation.games import play
from hackmatrix.research.evaluation.limits import Limits

pytestmark = pytest.mark.thorough


class Facts(NamedTuple):
    """The known facts of an environment."""

    actions: int
    features: int
    limit: int
    state: dict[str, float]  # its fields, with the largest values of states to step from


FACTS = {
    "CartPole-v1": Facts(2, 4, 500, {"x": 2.4, "x_dot": 4, "theta": 0.2094, "theta_dot": 4}),
    # Half the top speeds: beyond, one step magnifies float32's rounding up to 0.008.
    "Acrobot-v1": Facts(
        3,
        6,
        500,
        {"joint_angle1": 3.1415, "joint_angle2": 3.1415, "velocity_1": 6.2, "velocity_2": 14.1},
    ),
    "MountainCar-v0": Facts(3, 2, 200, {"position": 1.2, "velocity": 0.07}),
}


GAMES = 2_000
# Of each environment with its own limit, compiled once.
env_of = cache(ClassicControl)


@cache
def programs(name: str) -> tuple[Any, Any]:
    env = env_of(name)
    return jax.jit(jax.vmap(env.reset)), jax.jit(jax.vmap(env.step))


def started(name: str) -> tuple[np.ndarray, Any]:
    observations, state = programs(name)[0](jax.random.split(jax.random.key(0), GAMES))
    return np.asarray(observations), state


def stepped(name: str, state: Any, actions: Any) -> tuple[Any, ...]:
    """One step of all games, as NumPy arrays."""
    keys = jax.random.split(jax.random.key(1), GAMES)
    # Unsigned as in a rollout, where 0 - 1 is 255 to gymnax's MountainCar.
    return jax.device_get(programs(name)[1](keys, state, jnp.asarray(actions, jnp.uint8)))


@pytest.mark.parametrize("name", CLASSIC_CONTROL)
def test_sizes_and_limits(name: str) -> None:
    env, facts = env_of(name), FACTS[name]
    assert (env.num_actions, env.feature_size, env.max_episode_steps) == facts[:3]
    assert ClassicControl(name, max_episode_steps=7).max_episode_steps == 7
    observations, state = started(name)
    assert jax.vmap(env.action_mask)(state).all()
    np.testing.assert_array_equal(jax.vmap(env.features)(observations), observations)


@pytest.mark.parametrize("name", CLASSIC_CONTROL)
def test_games_start_as_in_gymnasium(name: str) -> None:
    original = gymnasium.make(name)
    theirs = np.array([original.reset(seed=seed)[0] for seed in range(500)])
    ours, _ = started(name)
    for column in range(ours.shape[1]):
        assert ks_2samp(ours[:, column], theirs[:, column]).pvalue > 0.01


@pytest.mark.parametrize("where", ["anywhere", "in play"])
@pytest.mark.parametrize("name", CLASSIC_CONTROL)
def test_a_step_is_that_of_gymnasium(name: str, where: str) -> None:
    facts, random = FACTS[name], np.random.default_rng(0)
    _, state = started(name)
    if where == "anywhere":
        drawn = {f: random.uniform(-top, top, GAMES) for f, top in facts.state.items()}
        state = state.replace(**{f: jnp.float32(values) for f, values in drawn.items()})
    else:  # each of ten actions is kept for ten steps, to get far
        for actions in random.integers(facts.actions, size=(10, GAMES)):
            for _ in range(10):
                state = stepped(name, state, actions)[1]
    before = np.stack([np.asarray(getattr(state, field)) for field in facts.state], axis=1)
    actions = random.integers(facts.actions, size=GAMES)
    _, _, reward, terminated, _, info = stepped(name, state, actions)

    original = gymnasium.make(name).unwrapped
    original.reset()
    theirs = []
    for game in range(GAMES):
        original.state = tuple(map(float, before[game]))
        original.steps_beyond_terminated = None  # CartPole's memory of an earlier end
        theirs.append(original.step(actions[game])[:3])
    observations, rewards, ends = map(np.array, zip(*theirs, strict=True))
    np.testing.assert_allclose(info["final_observation"], observations, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(reward, rewards)
    np.testing.assert_array_equal(terminated, ends)
    if where == "anywhere":
        assert 20 < ends.sum() < GAMES / 2


@pytest.mark.parametrize("name", CLASSIC_CONTROL)
def test_an_episode_is_cut_off_at_the_limit_and_not_before(name: str) -> None:
    limit = FACTS[name].limit
    at_limit = np.arange(GAMES) % 2 == 1
    _, state = started(name)
    state = state.replace(time=limit - 2 + jnp.asarray(at_limit, jnp.int32))
    obs, after, _, terminated, truncated, info = stepped(name, state, np.ones(GAMES))
    assert not terminated.any()
    np.testing.assert_array_equal(truncated, at_limit)
    np.testing.assert_array_equal(after.time, np.where(at_limit, 0, limit - 1))
    differs = (obs != info["final_observation"]).any(axis=1)
    np.testing.assert_array_equal(differs, at_limit)


def test_a_game_that_ends_at_the_limit_is_both() -> None:
    _, state = started("CartPole-v1")
    late, right, fast = jnp.full(GAMES, 499), jnp.full(GAMES, 2.399), jnp.ones(GAMES)
    state = state.replace(time=late, x=right, x_dot=fast)
    _, _, reward, terminated, truncated, _ = stepped("CartPole-v1", state, np.ones(GAMES))
    assert (reward[0], terminated[0], truncated[0]) == (1.0, True, True)


def test_the_next_game_starts_in_the_same_call() -> None:
    _, state = started("CartPole-v1")
    state = state.replace(theta=jnp.full(GAMES, 0.209), theta_dot=jnp.ones(GAMES))
    obs, after, _, terminated, _, info = stepped("CartPole-v1", state, np.zeros(GAMES))
    assert terminated.all()
    assert (info["final_observation"][:, 2] > 0.2095).all()
    assert (np.abs(obs) <= 0.05).all()
    assert obs.std(axis=0) == pytest.approx(0.1 / 12**0.5, rel=0.1)  # each game has its own start
    np.testing.assert_array_equal(after.theta, obs[:, 2])
    np.testing.assert_array_equal(after.time, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "mean_return"), [("cartpole_best", 475), ("acrobot", -80), ("mountain_car", -110)]
)
def test_the_configurations_learn_what_they_say(file: str, mean_return: float) -> None:
    config = TrainConfig.of(**read_config(CONFIGS / f"{file}.yaml"))
    env = config.environment.make()
    trainer = Trainer(env, config.learning, config.network)
    state = trainer.run(trainer.init(0), config.learning.course.num_updates)
    player = network_player(file, trainer.network, trainer.network_params(state), greedy=False)
    assert play(env, player, Limits(episodes=200)).returns.mean() > mean_return
