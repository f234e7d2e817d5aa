"""Many games in Gymnasium: the games of single environments, in each mode of autoreset."""

import copy
import pickle
import subprocess
import sys
from functools import cache
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from gymnasium.wrappers.vector import (
    NormalizeObservation,
    NormalizeReward,
    RecordEpisodeStatistics,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import hackmatrix.integrations.gymnasium
from hackmatrix.core.errors import UserError
from hackmatrix.game import native
from hackmatrix.game.engine import Game
from hackmatrix.integrations.gymnasium.backends import PythonBackend
from hackmatrix.integrations.gymnasium.batches import BatchSettings, BatchStep
from hackmatrix.integrations.gymnasium.game import GameEnv
from hackmatrix.integrations.gymnasium.jax_batch import JaxBatch

if native.available:
    from hackmatrix.integrations.gymnasium.native_batch import NativeBatch

needs_native = pytest.mark.skipif(not native.available, reason="the native engine was left out")
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


class NextEpisode(PythonBackend):
    """As many games go on: the game of a stream again is the next one of that stream."""

    episode, stream = -1, -1

    def reset(self, stream: int, episode: int = 0) -> None:
        del episode
        self.episode = self.episode + 1 if stream == self.stream else 0
        self.stream = stream
        self._game = Game.new(stream, self.episode)


class Stream(GameEnv):
    """A single environment that begins the next game of its stream where no seed is given."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._backend = NextEpisode()

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=self._backend.stream if seed is None else seed, options=options)


def of_gymnasium(mode: AutoresetMode, limit: int | None = None, **options: Any) -> SyncVectorEnv:
    """The same games as a vector of Gymnasium's own."""

    def one() -> Any:
        return Stream(**options) if limit is None else TimeLimit(Stream(**options), limit)

    return SyncVectorEnv([one] * GAMES, autoreset_mode=mode)


def compare_with_gymnasiums(env: Any, truth: Any, steps: int) -> int:
    """Plays both, compares all that a program sees, and counts the ends."""
    rng, ends = np.random.default_rng(1), 0
    seen, infos = env.reset(seed=70)
    expected, facts = truth.reset(seed=70)
    cut_off = np.zeros(GAMES, bool)
    for _ in range(steps):
        assert close(seen, expected)
        masks = facts["action_mask"] | cut_off[:, None]  # a game that is cut off goes on for itself
        assert np.array_equal(infos["action_mask"], masks)
        assert np.array_equal(env.unwrapped.call("action_masks"), masks)
        actions = choose(rng, facts["action_mask"])
        seen, rewards, terminated, truncated, infos = env.step(actions)
        expected, rewards_, terminated_, truncated_, facts = truth.step(actions)
        np.testing.assert_allclose(rewards, rewards_, atol=1e-5)
        assert np.array_equal(terminated, terminated_)
        assert np.array_equal(truncated, truncated_ & ~terminated)  # TimeLimit counts on
        ended = terminated | truncated
        cut_off = truncated & ("final_obs" not in infos)
        ends += int(ended.sum())
        assert ("final_obs" in infos) == ("final_obs" in facts)
        if "final_obs" in infos:
            compare_ends(infos, facts)
        if ended.any():
            for what in ("r", "l"):
                found = infos["episode"][what], facts["episode"][what]
                np.testing.assert_allclose(*found, atol=1e-4)
    return ends


def compare_ends(infos: dict[str, Any], facts: dict[str, Any]) -> None:
    """The last observations and facts of games in the mode `SAME_STEP`."""
    ended = facts["_final_info"]
    assert np.array_equal(infos["_final_info"], ended)
    assert np.array_equal(infos["_final_obs"], facts["_final_obs"])
    told = infos["final_info"]
    for i in np.flatnonzero(ended):
        assert close(infos["final_obs"][i], facts["final_obs"][i])
        assert told["_episode_length"][i]
    assert all(infos["final_obs"][i] is None for i in np.flatnonzero(~ended))
    stats = facts["final_info"].get("episode_stats")  # of those that were not truncated
    if stats is not None:
        terminated = facts["final_info"]["_episode_stats"]
        assert (told["episode_length"] == stats["steps"])[terminated].all()
        assert (told["stage"] == stats["highest_stage"])[terminated].all()
        if "game_return" in stats:  # the games pay another reward
            assert close(told["episode_return"][terminated], stats["game_return"][terminated])


def close(one: Any, other: Any) -> bool:
    """Whether features are equal but for rounding: XLA multiplies by reciprocals."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(close(one[name], other[name]) for name in one)
    return np.allclose(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("mode", "limit", "options"),
    [
        (AutoresetMode.NEXT_STEP, None, {"observation": "compact"}),
        (AutoresetMode.NEXT_STEP, 12, {"observation": "planes"}),
        (AutoresetMode.SAME_STEP, 12, {}),
        (AutoresetMode.SAME_STEP, 50, {"observation": "tactical", "reward": "progress"}),
    ],
    ids=str,
)
def test_it_is_as_gymnasiums_own_vector(
    mode: AutoresetMode, limit: int | None, options: dict[str, Any]
) -> None:
    """With its wrappers, which take the first step of the next game for a reset in `SAME_STEP`."""
    given = options if mode == AutoresetMode.NEXT_STEP else {**options, "autoreset_mode": mode}
    env, truth = make(max_episode_steps=limit, **given), of_gymnasium(mode, limit, **options)
    assert env.metadata["autoreset_mode"] == mode
    recorded, expected = RecordEpisodeStatistics(env), RecordEpisodeStatistics(truth)
    ours, theirs = NormalizeReward(recorded), NormalizeReward(expected)
    if mode == AutoresetMode.NEXT_STEP and limit is None:
        ours, theirs = (NormalizeObservation(games) for games in (ours, theirs))
    assert compare_with_gymnasiums(ours, theirs, 80) > 8
    assert recorded.length_queue == expected.length_queue
    np.testing.assert_allclose(recorded.return_queue, expected.return_queue, atol=1e-4)


def test_copies_go_on_as_the_original_which_can_not_be_used_after_its_end() -> None:
    env = make(observation="compact")
    env.reset(seed=70)
    masks = env.action_masks()
    copies = pickle.loads(pickle.dumps(env)), copy.deepcopy(env)
    expected = env.step(masks.argmax(1))
    for each in copies:
        np.testing.assert_equal(each.step(masks.argmax(1)), expected)
    env.close()
    env.close()
    with pytest.raises(ClosedEnvironmentError, match="step: the environment is closed, make ano"):
        env.step(masks.argmax(1))
    with pytest.raises(ClosedEnvironmentError, match="reset: the environment is closed, make an"):
        env.reset()


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
    with pytest.raises(UserError, match="must be one of NextStep, SameStep, Disabled, got 'No'"):
        make(autoreset_mode="No")
    env = make()
    with pytest.raises(UserError, match="call reset first"):
        env.step(np.zeros(GAMES, int))
    for seed in ([1, 2], [1, 2, 3, "4"], [1, -2, 3, 4], -1, 1.5, "seed"):
        with pytest.raises(UserError, match=r"^seed must be one number or 4, each at least 0 "):
            env.reset(seed=seed)
    with pytest.raises(UserError, match="reset has the option reset_mask alone, got stage, tu"):
        env.reset(options={"stage": 3, "turn": 2})
    env._games = ()  # as if there were games, which take long to compile
    with pytest.raises(UserError, match=r"actions must be integers \[4\], got float64\[2\]"):
        env.step(np.zeros(2))
    with pytest.raises(UserError, match=r"actions must be 0\.\.27, got 0\.\.28"):
        env.step(np.array([0, 1, 28, 3]))


def test_attributes_of_each_game() -> None:
    """As the vectors of Gymnasium have them; masks are compared with theirs above."""
    env = make()
    assert [masks.shape for masks in env.call("action_masks")] == [(28,)] * GAMES
    assert env.get_attr("observation_space") == (env.single_observation_space,) * GAMES
    assert [spec.id for spec in env.get_attr("spec")] == [ID] * GAMES
    assert env.get_attr("render_mode") == (None,) * GAMES
    env.set_attr("name", "abcd")
    assert env.get_attr("name") == ("abcd",) * GAMES
    env.set_attr("name", [*"abcd"])
    assert pickle.loads(pickle.dumps(env)).get_attr("name") == tuple("abcd")
    with pytest.raises(UserError, match="values must be one or 4, got 2"):
        env.set_attr("name", ["a", "b"])
    with pytest.raises(AttributeError, match="has no attribute 'colour'"):
        env.get_attr("colour")


@pytest.mark.parametrize("batch", [pytest.param("native", marks=needs_native), "jax"])
def test_pictures_of_each_game(batch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hackmatrix.integrations.gymnasium.vector._batch_of", _OF[batch])
    env = make(render_mode="ansi", observation="compact")
    with pytest.raises(UserError, match="call reset first"):
        env.render()
    env.reset(seed=70)
    one = single(render_mode="ansi")
    for number, text in enumerate(env.render()):
        one.reset(seed=70 + number)
        assert text == one.render()
    assert env.get_attr("render_mode") == ("ansi",) * GAMES
    assert make().render() is None
    with pytest.raises(UserError, match="must be one of ansi, rgb_array, svg, got 'human'"):
        make(render_mode="human")


_OF: dict[str, Any] = {"native": lambda how: NativeBatch(how), "jax": JaxBatch}


def test_seeds_of_each_game() -> None:
    """A list may leave games to chance; without them, the seed decides what chance brings."""
    env = make()
    assert env._streams(5).tolist() == [5, 6, 7, 8]
    drawn = env._streams(None).tolist()
    assert env._streams(5).tolist() == [5, 6, 7, 8]
    assert env._streams([7, None, np.int64(9), None]).tolist() == [7, drawn[0], 9, drawn[1]]
    assert max(env._streams(None)) < 2**31


@needs_native
@settings(max_examples=30)
@given(st.integers(0, 2**70) | st.integers(2**31 - 3, 2**31 + 3))
def test_a_seed_is_the_same_game_alone_and_among_many(seed: int) -> None:
    """And never one of an evaluation, whose streams begin at 2**31."""
    many, one = _two_faces()
    records, _ = many.reset(seed=seed)
    streams = set()
    for number, record in enumerate(records):
        assert np.array_equal(one.reset(seed=seed + number)[0], record)
        streams.add(one.unwrapped.state().dice.stream)
    assert len(streams) == GAMES
    assert max(streams) < 2**31
    assert np.array_equal(many.reset(seed=[0, 2**31, seed, 1])[0][2], records[0])
    assert not np.array_equal(*many.reset(seed=[0, 2**31, 2, 3])[0][:2])


@cache
def _two_faces() -> tuple[Any, Any]:
    return make(observation="compact"), gymnasium.make(ID, observation="compact")


@needs_native
def test_jax_is_not_needed() -> None:
    """In a process that can't import it."""
    code = (
        "import sys\n"
        "sys.modules['jax'] = None\n"
        "import gymnasium, numpy as np, hackmatrix\n"
        "for observation in ('dict', 'compact', 'full', 'tactical', 'planes'):\n"
        "    env = gymnasium.make_vec('HackMatrix-v1', num_envs=4, observation=observation)\n"
        "    env.reset(seed=0)\n"
        "    env.step(np.zeros(4, np.int64))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@needs_native
@pytest.mark.parametrize(
    ("mode", "observation"),
    [
        (AutoresetMode.DISABLED, "compact"),
        pytest.param(AutoresetMode.NEXT_STEP, "dict", marks=pytest.mark.thorough),
        pytest.param(AutoresetMode.SAME_STEP, "compact", marks=pytest.mark.thorough),
    ],
)
def test_both_engines_return_the_same(mode: AutoresetMode, observation: str) -> None:
    how = BatchSettings(6, observation, 12, mode, "game")
    batches = NativeBatch(how), JaxBatch(how)
    streams = np.arange(6, dtype=np.uint32)
    begun = [batch.begin(streams) for batch in batches]
    assert_same(begun[0][1:], begun[1][1:])
    games, mask = [each.games for each in begun], begun[0].mask
    rng, ended = np.random.default_rng(0), 0
    for _ in range(30):
        actions = (rng.random(mask.shape) * (mask + 0.01)).argmax(axis=1).astype(np.int32)
        played = [batch.play(each, actions) for batch, each in zip(batches, games, strict=True)]
        games, mask = [each for each, _ in played], played[0][1].mask
        steps = [step for _, step in played]
        if mode == AutoresetMode.SAME_STEP and (over := ended_in(steps[0])).any():
            assert_same(*(step.final_observation[over] for step in steps))
        assert_same(*(step._replace(final_observation=None) for step in steps))
        if (over := ended_in(steps[0])).any():
            ended += 1
            if mode == AutoresetMode.DISABLED:
                new = [batch.begin(streams + ended) for batch in batches]
                both = zip(batches, new, games, strict=True)
                begun = [b.replace(over, each, old, mask) for b, each, old in both]
                assert_same(begun[0][1:], begun[1][1:])
                games, mask = [each.games for each in begun], begun[0].mask
    assert ended > 2


def ended_in(step: BatchStep) -> np.ndarray:
    return step.terminated | step.truncated


def assert_same(ours: Any, theirs: Any) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), ours, theirs)
