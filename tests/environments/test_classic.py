"""Classic control: the face of an environment, Gymnasium's dynamics, and that it is learned."""

from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from paths import CONFIGS
from scipy.stats import ks_2samp
from suites import first_quickly

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.roster.batch_players import network_player
from hackmatrix.environments.classic import ClassicControl
from hackmatrix.environments.registry import CLASSIC_CONTROL
from hackmatrix.learning.algorithms.config import PPOConfig
from hackmatrix.learning.reporting.metrics import LEARNER_METRICS, summarise
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.learning.trainer import rollout
from hackmatrix.learning.trainer.keys import UpdateKeys
from hackmatrix.learning.trainer.trainer import Trainer
from hackmatrix.research.evaluation.games import play
from hackmatrix.research.evaluation.limits import Limits

pytestmark = pytest.mark.thorough

Array = jax.Array


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


def shape_of(env: ClassicControl) -> tuple[int, int, int]:
    return env.num_actions, env.feature_size, env.max_episode_steps


def started(env: ClassicControl, games: int) -> tuple[Array, Any]:
    return jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(0), games))


def stepped(env: ClassicControl, state: Any, actions: Any) -> tuple[Any, ...]:
    """One step of N games, as NumPy arrays."""
    keys = jax.random.split(jax.random.key(1), len(actions))
    return jax.device_get(jax.jit(jax.vmap(env.step))(keys, state, jnp.asarray(actions)))


def after_play(env: ClassicControl, state: Any, random: np.random.Generator) -> Any:
    """The state of N games after 100 steps of random actions, each kept for 10 to get far."""
    games = len(state.time)
    actions = np.repeat(random.integers(env.num_actions, size=(10, games)), 10, axis=0)
    keys = jax.random.split(jax.random.key(2), games)

    def step(state: Any, actions: Array) -> tuple[Any, None]:
        return jax.vmap(env.step)(keys, state, actions)[1], None

    return jax.lax.scan(step, state, jnp.asarray(actions))[0]


@pytest.mark.parametrize("name", CLASSIC_CONTROL)
def test_sizes_and_limits(name: str) -> None:
    assert shape_of(ClassicControl(name)) == FACTS[name][:3]
    assert ClassicControl(name, max_episode_steps=7).max_episode_steps == 7


@pytest.mark.parametrize("name", CLASSIC_CONTROL)
def test_types_and_shapes_under_jit_and_vmap(name: str) -> None:
    env = ClassicControl(name)
    obs, state = started(env, 5)
    assert (obs.shape, obs.dtype) == ((5, env.feature_size), jnp.float32)
    mask = jax.vmap(env.action_mask)(state)
    assert (mask.shape, mask.dtype) == ((5, env.num_actions), bool)
    assert mask.all()
    features = jax.vmap(env.features)(obs)
    assert features.dtype == jnp.float32
    np.testing.assert_array_equal(features, obs)

    obs, after, reward, terminated, truncated, info = stepped(env, state, np.zeros(5, np.int32))
    assert (obs.shape, obs.dtype) == ((5, env.feature_size), np.float32)
    assert [x.dtype for x in (reward, terminated, truncated)] == [np.float32, bool, bool]
    assert [x.shape for x in (reward, terminated, truncated)] == [(5,)] * 3
    assert jax.tree.map(jnp.shape, after) == jax.tree.map(jnp.shape, state)
    np.testing.assert_array_equal(info["final_observation"], obs)


@pytest.mark.parametrize("name", CLASSIC_CONTROL)
def test_games_start_as_in_gymnasium(name: str) -> None:
    original = gymnasium.make(name)
    theirs = np.array([original.reset(seed=seed)[0] for seed in range(1_000)])
    ours = np.asarray(started(ClassicControl(name), 1_000)[0])
    for column in range(ours.shape[1]):
        assert ks_2samp(ours[:, column], theirs[:, column]).pvalue > 0.01


@pytest.mark.parametrize("where", first_quickly(["anywhere", "in play"]))
@pytest.mark.parametrize("name", CLASSIC_CONTROL)
def test_a_step_is_that_of_gymnasium(name: str, where: str) -> None:
    env, facts = ClassicControl(name), FACTS[name]
    games, random = 2_000, np.random.default_rng(0)
    _, state = started(env, games)
    if where == "anywhere":
        drawn = {f: random.uniform(-top, top, games) for f, top in facts.state.items()}
        state = state.replace(**{f: jnp.float32(values) for f, values in drawn.items()})
    else:
        state = after_play(env, state, random)
    before = np.stack([np.asarray(getattr(state, field)) for field in facts.state], axis=1)
    actions = random.integers(env.num_actions, size=games)
    # Unsigned as in a rollout, where 0 - 1 is 255 to gymnax's MountainCar.
    _, _, reward, terminated, _, info = stepped(env, state, actions.astype(np.uint8))

    original = gymnasium.make(name).unwrapped
    original.reset()
    theirs = []
    for game in range(games):
        original.state = tuple(map(float, before[game]))
        original.steps_beyond_terminated = None  # CartPole's memory of an earlier end
        theirs.append(original.step(actions[game])[:3])
    observations, rewards, ends = map(np.array, zip(*theirs, strict=True))
    np.testing.assert_allclose(info["final_observation"], observations, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(reward, rewards)
    np.testing.assert_array_equal(terminated, ends)
    if where == "anywhere":
        assert 20 < ends.sum() < games / 2


@pytest.mark.parametrize("name", CLASSIC_CONTROL)
def test_an_episode_is_cut_off_at_the_limit_and_not_before(name: str) -> None:
    env, limit = ClassicControl(name), FACTS[name].limit
    _, state = started(env, 2)
    state = state.replace(time=jnp.array([limit - 2, limit - 1]))
    obs, after, _, terminated, truncated, info = stepped(env, state, np.ones(2, np.int32))
    np.testing.assert_array_equal(terminated, [False, False])
    np.testing.assert_array_equal(truncated, [False, True])
    np.testing.assert_array_equal(after.time, [limit - 1, 0])
    np.testing.assert_array_equal(obs[0], info["final_observation"][0])
    assert (obs[1] != info["final_observation"][1]).any()


def test_a_game_that_ends_at_the_limit_is_both() -> None:
    env = ClassicControl("CartPole-v1")
    _, state = started(env, 1)
    state = state.replace(time=jnp.array([499]), x=jnp.array([2.399]), x_dot=jnp.array([1.0]))
    _, _, reward, terminated, truncated, _ = stepped(env, state, np.ones(1, np.int32))
    assert (reward[0], terminated[0], truncated[0]) == (1.0, True, True)


def test_the_next_game_starts_in_the_same_call() -> None:
    env = ClassicControl("CartPole-v1")
    _, state = started(env, 1_000)
    state = state.replace(theta=jnp.full(1_000, 0.209), theta_dot=jnp.ones(1_000))
    obs, after, _, terminated, _, info = stepped(env, state, np.zeros(1_000, np.int32))
    assert terminated.all()
    assert (info["final_observation"][:, 2] > 0.2095).all()
    assert (np.abs(obs) <= 0.05).all()
    assert obs.std(axis=0) == pytest.approx(0.1 / 12**0.5, rel=0.1)  # each game has its own start
    np.testing.assert_array_equal(after.theta, obs[:, 2])
    np.testing.assert_array_equal(after.time, 0)


def test_a_time_limit_bootstraps_from_the_final_observation() -> None:
    env = ClassicControl("MountainCar-v0", max_episode_steps=3)
    trainer = Trainer(
        env, PPOConfig(num_envs=8, num_steps=7), NetworkConfig(hidden_dim=8, num_layers=1)
    )
    params, numbers = trainer.init(0).params, jnp.arange(8)
    keys = UpdateKeys(jnp.uint32(0), jnp.int32(0))
    games = rollout.new_games(trainer.setup, keys, numbers)
    _, played = rollout.play(
        trainer.setup, trainer.algorithm, params, games, keys, numbers, trainer.hyper
    )
    steps = played.steps
    assert not steps.terminated.any()
    np.testing.assert_array_equal(steps.truncated.all(axis=1), [0, 0, 1, 0, 0, 1, 0])

    obs = steps.obs.reshape(-1, 2)
    _, state = started(env, len(obs))
    state = state.replace(position=obs[:, 0], velocity=obs[:, 1])
    info = stepped(env, state, steps.action.reshape(-1))[-1]
    _, value, _ = trainer.network(params, info["final_observation"])
    expected = np.where(steps.truncated, value.reshape(7, 8), 0)
    np.testing.assert_allclose(steps.final_value, expected, rtol=1e-5, atol=1e-6)
    assert (steps.final_value[2] != 0).all()


def test_cartpole_is_learned_quickly() -> None:
    config = TrainConfig.of(**read_config(CONFIGS / "cartpole_best.yaml"))
    trainer = Trainer(config.environment.make(), config.learning, config.network)
    state, _ = trainer.take_sums(trainer.run(trainer.init(0), 40))
    _, sums = trainer.take_sums(trainer.run(state, 20))
    mean_return = summarise(jax.device_get(sums), LEARNER_METRICS)["train/mean_episode_return"]
    assert mean_return is not None
    assert mean_return > 150  # 22 by random actions, 500 at most


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
