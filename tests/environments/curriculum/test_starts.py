"""Starts of a curriculum: what the levels say, legal, and games of the rules from there on."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hackmatrix
from hackmatrix.core.errors import UserError
from hackmatrix.environments.curriculum.env import CurriculumEnv, Started, begin, with_curriculum
from hackmatrix.environments.curriculum.levels import Curriculum
from hackmatrix.environments.hackmatrix import EnvState, HackMatrixEnv
from hackmatrix.environments.hackmatrix.over_games import over_games
from hackmatrix.environments.registry import make
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.saving import state_from_dict, state_to_dict
from hackmatrix.game.engine.stage import begin_stage
from hackmatrix.game.engine.state import State

pytestmark = pytest.mark.thorough

GAMES = 128
RICH, LATER, HALF, AGAIN, FIRST, LAST = range(6)
ADVANCE = {"advance": {"stages_cleared": 1}}
CURRICULUM = Curriculum.of(
    [
        ADVANCE
        | {"stages": [2, 5], "credits": [1, 4], "energy": 7, "siphons": [0, 2]}
        | {"programs": [2, 6], "transmissions": 2, "quiet_turns": 30},
        ADVANCE | {"stages": [1, 8]},
        ADVANCE | {"stages": 3, "share": 0.5, "transmissions": 0},
        ADVANCE | {"retry": 0.5},
        ADVANCE | {"stages": [4, 6]},
        {"stages": 8, "retry": 0.5},
    ]
)
STREAMS = np.arange(GAMES, dtype=np.uint32)
ENV = hackmatrix.make()
new_games = jax.vmap(ENV.reset_game)
LEVEL = np.arange(GAMES) % FIRST


@pytest.fixture(scope="module")
def begun() -> tuple[Started, Any]:
    """The starts of games of all levels; the games before them were lost where `LEVEL` is AGAIN."""

    observation, new = new_games(STREAMS, STREAMS * 0 + 1)
    _, before = new_games(STREAMS + 1000, STREAMS * 0)
    games = ENV.games.without_saved(new.game), ENV.games.without_saved(before.game)
    nowhere, everywhere = np.zeros(GAMES, bool), np.ones(GAMES, bool)
    begin_each = over_games(
        begin,
        lambda started, *_: started,
        levels=CURRICULUM.levels,
        engine="auto",
    )
    made = jax.vmap(begin_each)(
        Started(games[0], observation, nowhere), games[1], everywhere, LEVEL == AGAIN, LEVEL
    )
    return jax.tree.map(np.asarray, (made, games[1]))


def engine_states(env: CurriculumEnv | HackMatrixEnv, games: Any) -> list[State]:
    """States of the Python engine; nothing is saved in them."""
    zero = np.zeros(GAMES, np.int32)
    new = jax.jit(env.games.new_games)(STREAMS, STREAMS)[1].game
    saved = env.games.with_saved(games, new)
    batch = jax.tree.map(np.asarray, EnvState(saved, zero, zero))
    return [jax.tree.map(lambda x, i=i: x[i], batch).to_engine() for i in range(GAMES)]


@pytest.fixture(scope="module")
def states(begun: tuple[Started, Any]) -> list[State]:
    return engine_states(ENV, begun[0].game)


def real(i: int, stage: int = 1) -> State:
    """The game as the rules begin it, were it to begin at a stage."""
    new = Game.new(int(STREAMS[i]), 1).state
    state = State(player=new.player, dice=new.dice, exit=0, stage=stage, interval=13 - stage)
    begin_stage(state)
    return state


def test_a_start_has_what_its_level_says(states: list[State]) -> None:
    rich = [(i, states[i]) for i in range(GAMES) if LEVEL[i] == RICH]
    assert {state.stage for _, state in rich} == {2, 3, 4, 5}
    assert {len(state.owned) for _, state in rich} == {2, 3, 4, 5, 6}
    assert len({program for _, state in rich for program in state.owned}) >= 20
    gifts = set()
    for i, state in rich:
        assert len(set(state.owned)) == len(state.owned)
        assert len(state.transmissions) == 2
        assert (state.interval, state.next_task) == (13 - state.stage, 30)
        bonus = Game.new(int(STREAMS[i]), 1).state.player
        gifts.add((state.player.credits - bonus.credits, state.player.siphons - bonus.siphons))
        assert state.player.energy - bonus.energy == 7
        assert (state.player.hp, state.player.attack, state.player.score) == (3, 1, 0)
    assert {credits for credits, _ in gifts} == {1, 2, 3, 4}
    assert {siphons for _, siphons in gifts} == {0, 1, 2}


def test_a_later_stage_is_as_the_rules_lay_it_out(states: list[State]) -> None:
    later = [(i, states[i]) for i in range(GAMES) if LEVEL[i] == LATER]
    assert {1, 2, 7} <= {state.stage for _, state in later} <= set(range(1, 9))
    for i, state in later:
        assert state_to_dict(state) == state_to_dict(real(i, state.stage))


def test_the_others_of_a_share_are_real_games(
    begun: tuple[Started, Any], states: list[State]
) -> None:
    half = np.nonzero(LEVEL == HALF)[0]
    at_level = begun[0].at_level[half]
    assert 0.25 < at_level.mean() < 0.75
    for i, by_start in zip(half, at_level, strict=True):
        if by_start:
            assert (states[i].stage, states[i].transmissions) == (3, [])
        else:
            assert state_to_dict(states[i]) == state_to_dict(real(i))


def test_a_lost_game_begins_its_stage_again_with_other_dice(
    begun: tuple[Started, Any], states: list[State]
) -> None:
    made, before_them = begun
    entered = engine_states(ENV, before_them)
    again = [int(i) for i in np.nonzero(LEVEL == AGAIN)[0]]
    retried = [i for i in again if not made.at_level[i]]
    assert 0.25 < len(retried) / len(again) < 0.75
    for i in again:
        if i not in retried:
            assert state_to_dict(states[i]) == state_to_dict(real(i))
            continue
        before = entered[i]
        assert states[i].dice != before.dice
        assert (states[i].dice.stream, states[i].dice.episode) == (STREAMS[i], 1)
        before.dice = states[i].dice
        assert state_to_dict(states[i]) == state_to_dict(before)


def test_starts_are_legal(begun: tuple[Started, Any], states: list[State]) -> None:
    """So that both engines play the same games from there, as from all that are legal."""
    for i, state in enumerate(states):
        data = state_to_dict(state)
        assert state_to_dict(state_from_dict(data)) == data
        assert Game(state).observation() == begun[0].observation[i].tobytes()


def test_only_hackmatrix_has_these_levels() -> None:
    with pytest.raises(UserError, match="--curriculum has levels of HackMatrix"):
        with_curriculum(make("CartPole-v1"), CURRICULUM)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", pytest.param("jax", marks=pytest.mark.slow)])
def test_games_begin_at_the_level_of_the_state_and_count_where_they_began_there(
    engine: str,
) -> None:
    """Random games: each that ends is followed by a start of the level, and told in `info`."""
    env = with_curriculum(hackmatrix.make(engine=engine), CURRICULUM, start_level=FIRST + 1)
    assert isinstance(env, CurriculumEnv)
    step, masks = jax.jit(jax.vmap(env.step, (None, 0, 0))), jax.jit(jax.vmap(env.action_mask))
    keys = jax.random.split(jax.random.key(1), GAMES)
    _, state = jax.vmap(env.reset)(keys)
    assert {game.stage for game in engine_states(env, state.env_state.game)} == {4, 5, 6}
    rng, ended_at, retried = np.random.default_rng(0), {FIRST: 0, LAST: 0}, 0
    for t in range(60):
        if t == 25:
            state = jax.vmap(env.at_level, (0, None))(state, jnp.int32(LAST))
        mask = np.asarray(masks(state))
        action = (mask * rng.random(mask.shape)).argmax(axis=1)
        before, (_, state, _, terminated, _, info) = state, step(None, state, action)
        ended, now = np.asarray(terminated), jax.tree.map(np.asarray, state)
        level = FIRST if t < 25 else LAST
        assert (np.asarray(info["level"]) == level + 1).all()
        counts = ended & (np.asarray(before.began_at) == level)
        np.testing.assert_array_equal(np.asarray(info["counts"]), counts)
        cleared = np.asarray(info["stage"]) - np.asarray(before.first_stage) + info["won"]
        np.testing.assert_array_equal(np.asarray(info["result"]), cleared)
        ended_at[level] += counts.sum()
        begun = now.began_at[ended] == level
        first = now.first_stage[ended]
        assert set(first[begun].tolist()) <= ({8} if level == LAST else {4, 5, 6})
        games = engine_states(env, state.env_state.game)
        assert first.tolist() == [games[i].stage for i in np.flatnonzero(ended)]
        np.testing.assert_array_equal(now.env_state.episode_length[ended], 0)
        again = ended & (now.began_at == -1)
        retried += again.sum()
        entered = engine_states(env, before.entered)
        for i in np.flatnonzero(again):
            assert games[i].cells == entered[i].cells
    assert min(ended_at.values()) > 20
    assert retried > 10
