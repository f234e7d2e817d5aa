"""One game in Gymnasium: its spaces, infos, seeds, pictures and errors."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from strategies import legal_states
from suites import first_quickly

import hackmatrix
from hackmatrix.core.errors import UserError
from hackmatrix.game.engine import Game
from hackmatrix.game.foresight.features import features
from hackmatrix.game.rules.actions import ACTION_NAMES
from hackmatrix.game.rules.observation import CELL_FEATURES
from hackmatrix.game.rules.tactical import GROUPS, START
from hackmatrix.integrations.gymnasium.game import GameEnv
from hackmatrix.integrations.gymnasium.observation_spaces import LAYOUTS, arrange_record, space_of
from hackmatrix.integrations.process.client import GameProcessError
from hackmatrix.ui.session.descriptions import PROGRAM_KEYS

ID = hackmatrix.ENVIRONMENT_ID


def make(**options: Any) -> Any:
    return gymnasium.make(ID, **options).unwrapped


def spawned(*args: Any, **options: Any) -> AsyncVectorEnv:
    """Games in processes that are not forks of this one, which may have threads of JAX."""
    return AsyncVectorEnv(*args, context="spawn", **options)


def choose(rng: np.random.Generator, mask: Any) -> int:
    return int(rng.choice(np.flatnonzero(mask)))


@pytest.mark.parametrize(
    "options",
    [
        *({"observation": layout} for layout in LAYOUTS),
        *({"render_mode": mode} for mode in ("human", "ansi", "rgb_array", "svg")),
        {"backend": "process"},
    ],
    ids=str,
)
def test_passes_the_check_of_gymnasium(options: dict[str, Any]) -> None:
    env = make(**options)
    check_env(env)  # warnings are errors
    env.close()


def test_the_spaces_are_those_of_the_original() -> None:
    assert make().observation_space == Dict(
        player=Box(0.0, 1.0, (10,), np.float32),
        programs=Box(0, 1, (23,), np.int32),
        grid=Box(0.0, 1.0, (6, 6, 42), np.float32),
    )
    assert make(observation="classic").observation_space.shape == (1545,)
    assert make(observation="full").observation_space.shape == (1946,)
    assert make(observation="tactical").observation_space.shape == (432,)
    assert make().action_space.n == 28


def test_the_bounds_of_the_layout_tactical_are_those_of_its_table() -> None:
    space = make(observation="tactical").observation_space
    for group in GROUPS:
        low, high = (bound[START[group.name] :][: group.size] for bound in (space.low, space.high))
        np.testing.assert_allclose(low, group.low / group.scale, rtol=1e-6)
        np.testing.assert_allclose(high, group.high / group.scale, rtol=1e-6)
    assert (space.low[START["flags"]], space.high[START["flags"]]) == (0, 1)


@settings(max_examples=50)
@given(legal_states(ended=True))
def test_any_legal_state_is_within_those_bounds(data: dict[str, Any]) -> None:
    seen = arrange_record(Game.from_dict(data).observation(), "tactical")
    assert space_of("tactical").contains(seen)


def test_observations_are_those_of_the_engine() -> None:
    envs = {layout: make(observation=layout) for layout in LAYOUTS}
    seen = {layout: env.reset(seed=11)[0] for layout, env in envs.items()}
    game, rng = Game.new(11), np.random.default_rng(0)
    for _ in range(30):
        record = game.observation()
        for layout in LAYOUTS:
            assert envs[layout].observation_space.contains(seen[layout])
        for layout in ("classic", "full", "tactical"):
            assert seen[layout].tolist() == np.float32(features(record, layout)).tolist()
        assert seen["compact"].tobytes() == record
        shaped = seen["dict"]
        flat = [shaped["player"], shaped["programs"], shaped["grid"].reshape(-1)]
        assert np.concatenate(flat).tolist() == seen["classic"].tolist()
        assert (seen["planes"][..., :CELL_FEATURES] == shaped["grid"]).all()
        valid = game.valid_actions()
        if not valid:
            break
        action = int(rng.choice(valid))
        game.step(action)
        seen = {layout: env.step(action)[0] for layout, env in envs.items()}


def test_another_reward_leaves_the_games_own_in_the_infos() -> None:
    """Until it ends, a game pays for stages, death, and the change of what the player has."""
    own, env, rng = make(), make(reward="progress"), np.random.default_rng(3)
    stages = 0
    for seed in range(6):
        own.reset(seed=seed)
        env.reset(seed=seed)
        start, paid, expected, done = potential(own), 0.0, 0.0, False
        while not done:
            action = choose(rng, own.action_masks())
            _, reward, done, _, told = own.step(action)
            _, progress, _, _, info = env.step(action)
            assert info.pop("game_reward") == pytest.approx(reward)
            assert set(info) == set(told)
            expected += bool(told.get("stage_complete")) - bool(told.get("death"))
            paid += progress
        stages += told["episode_stats"]["highest_stage"] - 1
        assert paid == pytest.approx(expected + potential(own) - start)
        stats = info["episode_stats"]
        parts = sum(stats["reward_breakdown"].values())
        assert stats.pop("game_return") == pytest.approx(parts - 0.01 * stats["steps"])
        assert stats == told["episode_stats"]
    assert stages > 0


def potential(env: Any) -> float:
    player = env.state().player
    held = min(player.credits, 20) + min(player.energy, 20)
    return float(0.3 * player.hp + 0.15 * min(player.siphons, 3) + 0.03 * held)


def test_infos_of_a_whole_game() -> None:
    env, rng = make(), np.random.default_rng(3)
    for seed in range(4):
        _, info = env.reset(seed=seed)
        assert list(info) == ["action_mask"]
        assert (info["action_mask"].shape, info["action_mask"].dtype) == ((28,), np.bool_)
        total, sums, actions, done = 0.0, dict[str, float](), [], False
        while not done:
            assert env.get_valid_actions() == np.flatnonzero(env.action_masks()).tolist()
            actions.append(choose(rng, env.action_masks()))
            _, reward, done, truncated, info = env.step(actions[-1])
            assert truncated is False
            assert len(info["reward_breakdown"]) == 14
            assert np.array_equal(info["action_mask"], env.action_masks())
            assert ("episode_stats" in info) == done
            assert set(info) <= {
                *("stage_complete", "death", "reward_breakdown", "action_mask", "episode_stats")
            }
            total += reward
            for name, points in info["reward_breakdown"].items():
                sums[name] = sums.get(name, 0) + points
        stats = info["episode_stats"]
        assert info["death"] is True
        assert stats["steps"] == len(actions)
        assert stats["reward_breakdown"] == pytest.approx(sums, abs=1e-6)
        assert total == pytest.approx(sum(sums.values()) - 0.01 * len(actions), abs=1e-6)
        assert stats["programs_used"] == sum(action > 4 for action in actions)
        kinds = {
            "move": sum(action < 4 for action in actions),
            "siphon": actions.count(4),
            "program": stats["programs_used"],
        }
        assert stats["action_counts"] == {kind: n for kind, n in kinds.items() if n}
        assert stats["highest_stage"] >= 1
        assert env.action_masks().all()
        assert env.get_valid_actions() == []


def test_an_action_is_any_integer() -> None:
    env, same = make(), make()
    for action in (0, np.int64(0), np.array(0), np.uint8(0)):
        env.reset(seed=1)
        same.reset(seed=1)
        assert env.step(action)[1] == same.step(0)[1]
        assert env.state() == same.state()


def test_other_actions_are_told_and_change_nothing() -> None:
    env = gymnasium.make(ID)
    env.reset(seed=1)
    for action in (None, np.array([2]), [2], 2.0, "2", 28, -1):
        with pytest.raises(UserError) as raised:
            env.step(action)
        assert str(raised.value) == f"an action is one integer, 0..27, got {action!r}"
        assert env.unwrapped.state() == Game.new(1).state  # type: ignore[attr-defined]


@pytest.mark.parametrize("backend", ["python", pytest.param("jax", marks=pytest.mark.slow)])
def test_a_pickled_game_goes_on(backend: str) -> None:
    env, rng = make(backend=backend), np.random.default_rng(0)
    env.reset(seed=3)
    env.step(choose(rng, env.action_masks()))
    other = pickle.loads(pickle.dumps(env))
    while not env.action_masks().all():
        action = choose(rng, env.action_masks())
        one, another = env.step(action), other.step(action)
        assert one[1:3] == another[1:3]
        assert env.state() == other.state()


def test_a_game_of_another_process_is_not_pickled() -> None:
    with pytest.raises(UserError, match="can't be pickled or copied: make another one"):
        pickle.dumps(make(backend="process"))


def test_a_seed_is_the_stream_of_the_game() -> None:
    env = make()
    env.reset(seed=123)
    assert env.state() == Game.new(123).state
    env.reset()
    following = env.state().dice.stream
    env.reset(seed=123)
    env.reset()
    assert env.state().dice.stream == following != 123
    with pytest.raises(UserError, match="reset has the option episode alone, got stage"):
        env.reset(options={"stage": 3})
    env.reset(seed=123, options={"episode": np.int64(4)})
    assert env.state() == Game.new(123, 4).state
    for episode in (-1, "4"):
        with pytest.raises(
            UserError, match=f"episode must be a number, 0..4294967295, got .?{episode}"
        ):
            env.reset(options={"episode": episode})
    with pytest.raises(UserError, match="backend process starts episode 0 of a stream alone"):
        make(backend="process").reset(seed=123, options={"episode": 4})
    env.reset(seed=2**31 + 5)
    assert 5 != (first := env.state().dice.stream) < 2**31
    env.reset()
    assert env.state().dice.stream != first


def test_keys_for_playing_name_each_action_once() -> None:
    """As `gymnasium.utils.play` wants them: tuples of characters or of pygame's numbers."""
    keys = gymnasium.make(ID).get_wrapper_attr("get_keys_to_action")()
    assert sorted(keys.values()) == list(range(28))
    assert keys[("s",)] == ACTION_NAMES.index("siphon")
    assert keys[(PROGRAM_KEYS["PUSH"],)] == ACTION_NAMES.index("PUSH")


def test_pictures(capsys: pytest.CaptureFixture[str]) -> None:
    env = make(render_mode="svg")
    env.reset(seed=3)
    assert env.render() == hackmatrix.draw(env.state())
    env = make(render_mode="rgb_array")
    env.reset(seed=3)
    image = env.render()
    assert (image.dtype, image.shape) == (np.uint8, (776, 486, 3))
    assert len(np.unique(image.reshape(-1, 3), axis=0)) > 8
    env = make(render_mode="ansi")
    env.reset(seed=3)
    assert env.render().startswith("HackMatrix: stage 1 of 8, turn 0\n")
    assert capsys.readouterr().out == ""
    make(render_mode="human").reset(seed=3)
    assert "stage 1 of 8, turn 0" in capsys.readouterr().out


def test_how_long_a_process_may_take_can_be_set(tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    ours = Path(sys.executable).with_name("hackmatrix-game")
    slow.write_text(f'#!/bin/sh\nsleep 1\nexec {ours} "$@"\n')
    slow.chmod(0o755)
    env = make(backend="process", game_binary=str(slow), game_start_timeout=0.1)
    with pytest.raises(GameProcessError, match=r"did not answer within 0\.1 s"):
        env.reset(seed=1)
    env = make(backend="process", game_binary=str(slow), game_timeout=0.9)
    env.reset(seed=1)  # the first answer may take longer
    env.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"observation": "rgb"}, "observation must be one of dict, compact, classic, full"),
        ({"reward": "points"}, "reward must be one of game, progress, got 'points'"),
        ({"backend": "swift"}, "backend must be one of python, process, jax, got 'swift'"),
        ({"render_mode": "rgb"}, "render_mode must be one of human, ansi, rgb_array, svg, got"),
        ({"game_binary": "/bin/true"}, "game_binary goes with backend process, not with python"),
        ({"backend": "process", "observation": "full"}, "backend process gives observations dict"),
        ({"backend": "process", "game_binary": "/no/such"}, "there is no such program"),
        ({"backend": "process", "game_timeout": 0}, "timeout must be a number of seconds above 0"),
    ],
)
def test_wrong_options_are_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        GameEnv(**options)


@pytest.mark.parametrize(
    "imports",
    first_quickly(
        [
            "import hackmatrix, importlib.util as u; u.find_spec('gymnasium'); "
            "import gymnasium.spaces",
            "import gymnasium, hackmatrix, hackmatrix.integrations.gymnasium",
        ]
    ),
)
def test_it_is_registered_by_an_import_that_is_light(imports: str) -> None:
    code = (
        f"{imports}\nimport sys\nassert 'HackMatrix-v1' in gymnasium.registry\n"
        "gymnasium.make('HackMatrix-v1').reset(seed=0)\n"
        "sys.exit(str({'jax', 'torch', 'flax'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stderr == "set()\n"


@pytest.mark.parametrize(
    ("vector", "mode"),
    [
        (SyncVectorEnv, AutoresetMode.NEXT_STEP),
        (SyncVectorEnv, AutoresetMode.SAME_STEP),
        pytest.param(spawned, AutoresetMode.NEXT_STEP, marks=pytest.mark.thorough),
    ],
)
def test_the_mask_is_there_at_every_step(vector: Any, mode: AutoresetMode) -> None:
    """In vectors of Gymnasium: at an end, where no action counts, and where a game begins too."""
    env = vector([GameEnv] * 2, autoreset_mode=mode)
    _, infos = env.reset(seed=4)
    rng, ends = np.random.default_rng(1), 0
    for _ in range(100):
        masks = infos["action_mask"]
        assert infos["_action_mask"].all()
        assert masks.any(1).all()
        assert np.array_equal(masks, np.stack(env.call("action_masks")))
        *_, ended, _, infos = env.step((masks * rng.random(masks.shape)).argmax(1))
        ends += ended.sum()
        if mode == AutoresetMode.NEXT_STEP:
            assert infos["action_mask"].all(1)[ended].all()
    assert ends > 1
    env.close()
