"""Environments by id: what `hackmatrix.make` and the trainer make of a name."""

import sys
from typing import Any

import jax
import pytest
from suites import first_quickly

import hackmatrix
from hackmatrix.core.errors import UserError
from hackmatrix.environments import registry
from hackmatrix.environments.classic import ClassicControl
from hackmatrix.environments.hackmatrix import HackMatrixEnv
from hackmatrix.environments.interface.spaces import Discrete
from hackmatrix.environments.registry import CLASSIC_CONTROL, environment_id, make_environment
from hackmatrix.environments.task_list import TaskList


def refusal(name: str, **options: Any) -> str:
    with pytest.raises(UserError) as error:
        hackmatrix.make(name, **options)
    assert isinstance(error.value, ValueError)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("name", hackmatrix.registered())
def test_each_has_its_id_spaces_and_a_repr_that_makes_it(name: str) -> None:
    env: Any = hackmatrix.make(name, max_episode_steps=9)
    assert (env.id, environment_id(name)) == (name, name)
    assert env.max_episode_steps == 9
    assert env.action_space == Discrete(env.num_actions)
    assert type(eval(repr(env))) is type(env)
    assert repr(eval(repr(env))) == repr(env)
    observation, _ = jax.eval_shape(env.reset, jax.random.key(0))
    space = env.observation_space
    assert (space.shape, space.dtype) == (observation.shape, observation.dtype)


def test_the_default_is_hackmatrix_and_a_name_without_a_version_the_newest() -> None:
    assert isinstance(hackmatrix.make(), HackMatrixEnv)
    env: Any = hackmatrix.make("HackMatrix", observation="classic", auto_reset=False)
    assert (env.id, env.layout, env.auto_reset) == ("HackMatrix-v1", "classic", False)


def test_the_trainer_makes_them_from_its_settings() -> None:
    env: Any = make_environment("CartPole-v1", observation="classic", max_episode_steps=9)
    assert isinstance(env, ClassicControl)
    assert env.max_episode_steps == 9
    env = make_environment("HackMatrix", observation="classic", max_episode_steps=9)
    assert (env.layout, env.max_episode_steps) == ("classic", 9)


def test_there_is_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.MAKERS, "Pong-v0", lambda: lambda **options: options)
    assert "Pong-v0" in hackmatrix.registered()
    assert hackmatrix.make("Pong-v0", size=3) == {"size": 3}
    assert make_environment("Pong-v0", max_episode_steps=3) == {"max_episode_steps": 3}


KNOWN = "HackMatrix, HackMatrix-v1, CartPole-v1, Acrobot-v1, MountainCar-v0"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("cartpole", "did you mean CartPole-v1? There are "),
        ("HackMatrix-v0", "did you mean HackMatrix-v1? There are "),
        ("Pong", "there are "),
    ],
)
def test_unknown_names_are_told_the_nearest_and_all_known_ones(name: str, hint: str) -> None:
    told = f"no environment is called {name!r}, {hint}{KNOWN}, and module:function for one of "
    assert refusal(name) == f"{told}your own"


def test_wrong_options_are_refused() -> None:
    assert refusal("HackMatrix-v1", colour="red") == (
        "environment HackMatrix-v1: is called with colour='red': got an unexpected keyword "
        "argument 'colour'"
    )
    assert refusal("CartPole-v1", observation="full").startswith("environment CartPole-v1: is call")
    assert refusal("HackMatrix-v1", observation="pixels") == (
        "observation must be one of compact, classic, full, tactical, planes, got 'pixels'"
    )
    assert refusal("HackMatrix-v1", max_episode_steps=0).endswith("at least 1, got 0")


def test_one_of_your_own_gets_the_options() -> None:
    env: Any = hackmatrix.make("probe_environments:Grid")
    assert env.num_actions == 4
    assert refusal("probe_environments:Grid", size=3) == (
        "environment probe_environments:Grid: is called with size=3: got an unexpected keyword "
        "argument 'size'"
    )


def test_without_gymnax_one_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnax", None)
    assert refusal("CartPole-v1") == "needs gymnax: pip install 'hackmatrix[classic]'"


@pytest.mark.thorough
@pytest.mark.parametrize("name", first_quickly(CLASSIC_CONTROL))
def test_what_classic_control_returns_is_what_its_spec_says(name: str) -> None:
    env: Any = hackmatrix.make(name, max_episode_steps=20)
    spec, games = env.spec, 50
    keys = jax.random.split(jax.random.key(0), games)
    observation, state = jax.vmap(env.reset)(keys)
    step = jax.jit(jax.vmap(env.step))
    for time in range(45):
        action_keys = jax.vmap(jax.random.fold_in, (0, None))(keys, time)
        actions = jax.vmap(env.action_space.sample)(action_keys)
        stepped = step(action_keys, state, actions)
        observation, state = stepped[:2]
        assert jax.vmap(env.observation_space.contains)(observation).all()
        assert jax.vmap(env.observation_space.contains)(stepped[-1]["final_observation"]).all()
        assert jax.tree.structure(spec) == jax.tree.structure(type(spec)(*stepped))
        for wanted, got in zip(jax.tree.leaves(spec), jax.tree.leaves(stepped), strict=True):
            assert ((games, *wanted.shape), wanted.dtype) == (got.shape, got.dtype)


@pytest.mark.parametrize("name", ["CartPole-v1+" * 100_000, "x" * 1_000_000, "x:" * 1_000_000])
def test_a_name_that_fills_a_file_is_refused_in_a_short_line(name: str) -> None:
    with pytest.raises(UserError) as raised:
        environment_id(name)
    assert len(str(raised.value)) < 400


def test_a_task_list_that_is_nested_without_end_is_refused() -> None:
    with pytest.raises(UserError, match="must be a list of environments"):
        TaskList.of("[" * 10_000)
