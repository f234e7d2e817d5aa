"""Several environments as one: each game is what its task alone would be."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import probe_environments as probes
import pytest
from paths import CONFIGS

from hackmatrix.agents.roster.batch_players import network_player, random_player
from hackmatrix.environments.check import check_environment
from hackmatrix.environments.checked_report import report_of
from hackmatrix.environments.interface.environment import StepRecord
from hackmatrix.environments.interface.report import Column, PlayedGames
from hackmatrix.environments.registry import environment_id, make, make_environment
from hackmatrix.environments.tasks import MultiTask
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.learning.trainer.trainer import Trainer
from hackmatrix.research.evaluation.games import play
from hackmatrix.research.evaluation.limits import Limits

TASKS = ("CartPole-v1", "MountainCar-v0")
LIMIT = 7
MIXED = np.array([0, 1, 1, 1, 0, 1])  # more games of a task than its share of a batch


@pytest.fixture(scope="module")
def env() -> Any:
    return make("+".join(TASKS), max_episode_steps=LIMIT)


def started(env: Any, tasks: Any, seed: int = 0) -> tuple[Any, Any]:
    keys = jax.random.split(jax.random.key(seed), len(tasks))
    return jax.jit(jax.vmap(env.reset_task))(keys, jnp.asarray(tasks, jnp.int32))


def played(env: Any, seen: Any, state: Any, steps: int) -> list[Any]:
    """The environment's results for random valid actions."""
    random = np.random.default_rng(0)
    step, masks_of = jax.jit(jax.vmap(env.step)), jax.jit(jax.vmap(env.action_mask))
    results = []
    for number in range(steps):
        masks = np.asarray(masks_of(state))
        actions = jnp.asarray((random.random(masks.shape) * masks).argmax(axis=1), jnp.int32)
        keys = jax.random.split(jax.random.key(number), len(masks))
        seen, state, *others = step(keys, state, actions)
        results.append(jax.device_get((keys, actions, seen, state, *others)))
    return results


class Hops(probes.Grid):
    """An environment that looks its action up in a table, as a user's may."""

    def step(self, key: Any, state: Any, action: Any) -> Any:
        return super().step(key, state, jnp.arange(self.num_actions)[action])


@pytest.mark.thorough
def test_actions_of_a_host_with_64_bits_are_taken() -> None:
    env = MultiTask([probes.Grid(), Hops()])
    key = jax.random.key(0)
    _, state = env.reset_task(key, jnp.int32(1))
    step = jax.jit(env.step)
    expected = step(key, state, jnp.int32(1))
    with jax.enable_x64(True):
        results = jax.jit(env.step)(key, state, jnp.int64(1))
    jax.tree.map(np.testing.assert_array_equal, results, expected)


def test_it_is_an_environment_by_name(env: Any) -> None:
    check_environment(env)
    assert environment_id("CartPole-v1+HackMatrix") == "CartPole-v1+HackMatrix-v1"
    assert (env.id, env.tasks) == ("+".join(TASKS), TASKS)
    assert (env.num_actions, env.feature_size, env.max_episode_steps) == (3, 4 + 2 + 2, LIMIT)
    assert type(make_environment(env.id)) is MultiTask


def test_hackmatrix_can_be_one_of_the_tasks() -> None:
    env = make_environment("Acrobot-v1+HackMatrix", "tactical", reward="progress")
    check_environment(env)
    names = [metric.name for metric in env.metrics]  # type: ignore[attr-defined]
    assert "task/HackMatrix-v1/stats/mean_stage" in names
    assert "eval/task/HackMatrix-v1/win_rate" in names


@pytest.mark.thorough
def test_each_game_is_that_of_its_task_alone(env: Any) -> None:
    seen, state = started(env, MIXED)
    steps = [jax.jit(jax.vmap(one.step)) for one in env.envs]
    own_keys = jax.jit(jax.vmap(lambda key: jax.random.split(key, 2)))
    alone = [list(pair) for pair in zip(steps, state.of_tasks, strict=True)]
    for keys, actions, seen, after, reward, terminated, truncated, info in played(  # noqa: B020
        env, seen, state, LIMIT + 1
    ):
        for number, (step, before) in enumerate(alone):
            own = own_keys(keys)[:, number]
            observation, alone[number][1], *expected, _ = step(own, before, actions)
            is_it = number == MIXED
            for got, wanted in zip((reward, terminated, truncated), expected, strict=True):
                np.testing.assert_array_equal(got[is_it], wanted[is_it])
            np.testing.assert_allclose(
                seen.of_tasks[number][is_it], observation[is_it], rtol=1e-4, atol=1e-6
            )
            assert (seen.of_tasks[number][~is_it] == 0).all()
        np.testing.assert_array_equal(after.task, MIXED)
        ended = terminated | truncated
        assert (after.episode_length[ended] == 0).all()
        assert (info["episode_length"][ended] <= LIMIT).all()
    assert truncated.shape == MIXED.shape


def test_actions_of_other_tasks_are_masked_and_features_say_the_task(env: Any) -> None:
    seen, state = started(env, [0, 1])
    masks = jax.vmap(env.action_mask)(state)
    np.testing.assert_array_equal(masks, [[True, True, False], [True, True, True]])
    features = np.asarray(jax.vmap(env.features)(seen))
    np.testing.assert_array_equal(features[:, -2:], np.eye(2))
    np.testing.assert_array_equal(features[0, :4], seen.of_tasks[0][0])
    np.testing.assert_array_equal(features[1, 4:6], seen.of_tasks[1][1])
    assert (features[0, 4:6] == 0).all()
    assert (features[1, :4] == 0).all()
    np.testing.assert_array_equal(env.feature_owners.sum(axis=0), [1] * 6 + [0] * 2)


def test_games_of_an_evaluation_take_turns_and_are_determined(env: Any) -> None:
    stream, numbers = jnp.full(4, 2**31, jnp.uint32), jnp.arange(4, dtype=jnp.uint32)
    reset_game = jax.jit(jax.vmap(env.reset_game))
    seen, state = reset_game(stream, numbers)
    again, _ = reset_game(stream, numbers)
    np.testing.assert_array_equal(state.task, [0, 1, 0, 1])
    jax.tree.map(np.testing.assert_array_equal, seen, again)
    assert (seen.of_tasks[0][0] != seen.of_tasks[0][2]).all()


class Told(probes.Grid):
    """A task with metrics of its own."""

    metrics = probes.Ladder.metrics[1:]

    def measure(self, step: StepRecord) -> dict[str, Any]:
        assert step.mask.shape == (self.num_actions,)
        return {"ladder/right": (step.action == 1, step.mask[1])}

    def report(self, games: PlayedGames) -> list[Column]:
        jumps = games.lengths + games.actions.sum(axis=1) + games.info["own"]
        return [Column("jumps", "mean_jumps", jumps, "jumps_ci")]


@pytest.mark.thorough
def test_what_is_measured_counts_for_the_games_task_alone() -> None:
    env = MultiTask([probes.Pairing(), Told()])
    assert env.tasks == ("Pairing", "Told")
    _, state = started(env, [0, 1, 1, 1])
    mask = jax.vmap(env.action_mask)(state)
    actions, keys = jnp.array([0, 1, 1, 0]), jax.random.split(jax.random.key(1), 4)
    _, _, reward, _, _, info = jax.jit(jax.vmap(env.step))(keys, state, actions)
    ended = jnp.array([False, False, True, True])
    record = StepRecord(actions, mask, mask, reward, ended, info)
    measured = jax.jit(jax.vmap(env.measure))(record)
    assert measured.keys() == {m.name for m in env.metrics if not m.name.startswith("eval/")}
    total, chances = measured["task/Told/mean_return"]
    np.testing.assert_array_equal(chances, [0, 0, 1, 1])
    np.testing.assert_allclose(total, np.where(ended, reward, 0))
    right, chances = measured["task/Told/ladder/right"]
    np.testing.assert_array_equal(right, [0, 1, 1, 0])
    np.testing.assert_array_equal(chances, np.asarray(mask)[:, 1] * [0, 1, 1, 1])


def test_the_report_of_a_task_is_of_its_games() -> None:
    env = MultiTask([probes.Pairing(), Told()])
    final = np.zeros((4, 1), np.uint8)
    infos = ({"final_observation": final}, {"final_observation": final, "own": np.arange(4) * 10})
    games = PlayedGames(
        returns=np.arange(4, dtype=np.float32),
        lengths=np.array([5, 6, 7, 8]),
        actions=np.ones((4, env.num_actions), np.int32),
        terminated=np.ones(4, bool),
        info={"task": np.array([0, 1, 0, 1]), "of_tasks": infos},
        final_observation=final,
    )
    columns = {each.key: each for each in report_of(env, games)}
    jumps = columns["task/Told/mean_jumps"]
    assert isinstance(jumps, Column)
    assert jumps.values.tolist() == [6 + 4 + 10, 8 + 4 + 30]
    assert (jumps.title, jumps.interval_key) == ("Told jumps", "task/Told/jumps_ci")
    returns = columns["task/Pairing/mean_return"]
    assert isinstance(returns, Column)
    assert returns.values.tolist() == [0, 2]


@pytest.mark.thorough
def test_an_evaluation_tells_each_task_apart(env: Any) -> None:
    games = play(env, random_player(), Limits(episodes=5))
    columns = {each.key: each for each in env.report(games)}
    cart, car = (columns[f"task/{name}/mean_return"].values for name in TASKS)
    np.testing.assert_array_equal(games.returns, [cart[0], car[0], cart[1], car[1], cart[2]])
    assert (car == -LIMIT).all()
    assert columns["task/CartPole-v1/mean_length"].values.tolist() == cart.tolist()


@pytest.mark.slow
def test_the_configuration_solves_all_of_its_tasks_at_once() -> None:
    config = TrainConfig.of(**read_config(CONFIGS / "multi_task.yaml"))
    env = config.environment.make()
    trainer = Trainer(env, config.learning, config.network)
    state = trainer.run(trainer.init(0), config.learning.course.num_updates)
    player = network_player("", trainer.network, trainer.network_params(state), greedy=False)
    games = play(env, player, Limits(episodes=300))
    means = {each.key: each.values.mean() for each in env.report(games)}  # type: ignore[attr-defined]
    assert means["task/CartPole-v1/mean_return"] >= 475
    assert means["task/Acrobot-v1/mean_return"] >= -100
    assert means["task/MountainCar-v0/mean_return"] >= -110


@pytest.mark.slow
def test_games_of_hackmatrix_are_those_of_hackmatrix_alone() -> None:
    env: Any = make_environment("CartPole-v1+HackMatrix", "tactical")
    seen, state = started(env, [1, 0, 1, 1])
    alone, before = env.envs[1], state.of_tasks[1]
    for keys, actions, seen, _, reward, *_ in played(env, seen, state, 30):  # noqa: B020
        own = jax.vmap(lambda key: jax.random.split(key, 2))(keys)[:, 1]
        observation, before, expected, *_ = jax.vmap(alone.step)(own, before, actions)
        numbers = jax.vmap(alone.feature_integers)(observation)
        is_it = np.array([True, False, True, True])
        np.testing.assert_array_equal(reward[is_it], expected[is_it])
        np.testing.assert_array_equal(seen.of_tasks[1][is_it], numbers[is_it])
