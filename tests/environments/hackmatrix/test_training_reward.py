"""Rewards to train with: `progress` and its potential, `stages` without it, the outcome alone."""

from dataclasses import replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hackmatrix
from hackmatrix.core.errors import UserError
from hackmatrix.environments.config import EnvironmentConfig
from hackmatrix.environments.hackmatrix import HackMatrixEnv
from hackmatrix.environments.hackmatrix.training_reward import progress
from hackmatrix.environments.interface.spaces import StepSpec
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.state import Player
from hackmatrix.game.engine.text import state_from_text
from hackmatrix.game.engine.training_reward import progress as plain_progress
from hackmatrix.game.jaxgame.conversion import state_from_engine
from hackmatrix.game.rules.actions import FIRST_PROGRAM, SIPHON
from hackmatrix.game.rules.observation import BYTE, number_of
from hackmatrix.game.rules.programs import ProgramId

BOARD = """
    .. .. .. .. .. X.
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    s. .@ .. .. .. s.
    player credits 3 energy 1
    owned UNDO
"""
LEFT, RIGHT = 2, 3


@cache
def stepper() -> tuple[HackMatrixEnv, Any]:
    env = hackmatrix.make(auto_reset=False, reward="progress")
    return env, jax.jit(lambda state, action: env.step(None, state, action))


def play(position: str, *actions: int) -> list[StepSpec]:
    """The results of the steps; the reward is `progress`."""
    env, step = stepper()
    state, steps = env.from_text(position), []
    for action in actions:
        steps.append(StepSpec(*step(state, jnp.int32(action))))
        state = steps[-1].state
    return steps


def test_picking_up_a_data_siphon_and_taking_it_back_pays_nothing_together() -> None:
    undo = FIRST_PROGRAM + ProgramId.UNDO
    # The first step is an enemy turn, after which the state is saved.
    paid = [step.reward for step in play(BOARD, RIGHT, LEFT, LEFT, undo, undo)[2:]]
    assert paid[0] == pytest.approx(0.15)
    assert sum(paid) == pytest.approx(0, abs=1e-6)


def test_the_episode_return_stays_the_games_own() -> None:
    (step,) = play(BOARD, LEFT)
    of_game = Game.from_text(BOARD).step(LEFT).reward
    assert step.info["episode_return"] == pytest.approx(of_game, abs=1e-6)
    assert step.reward != pytest.approx(of_game, abs=1e-2)


def test_both_engines_pay_the_same() -> None:
    """Whatever the player has: beyond what counts, too, and losing it."""
    rng = np.random.default_rng(0)
    largest = {"hp": 4, "siphons": 6, "credits": 40, "energy": 40}
    had, has = (
        {name: rng.integers(most, size=200) for name, most in largest.items()} for _ in "12"
    )
    completed, won, died = flags = rng.random((3, 200)) < 0.3
    game = Game.from_text(BOARD)
    record = np.frombuffer(game.observation(), np.uint8)
    after = np.tile(record, (200, 1))
    for name, numbers in has.items():
        after[:, BYTE[name]] = numbers
    player = state_from_engine(game.state).player
    before = jax.tree.map(lambda x: jnp.zeros(200, x.dtype), player)
    before = replace(before, **{name: jnp.asarray(numbers) for name, numbers in had.items()})
    paid = jax.jit(progress)(before, after, *flags)
    expected = [
        plain_progress(
            Player(0, **{name: int(numbers[i]) for name, numbers in had.items()}),
            Player(0, **{name: int(numbers[i]) for name, numbers in has.items()}),
            completed=bool(completed[i]),
            won=bool(won[i]),
            died=bool(died[i]),
        )
        for i in range(200)
    ]
    np.testing.assert_allclose(paid, expected, atol=1e-5)


def test_an_unknown_reward_is_refused() -> None:
    with pytest.raises(UserError, match="win_worth must be above 0, got 0"):
        hackmatrix.make(reward="score", win_worth=0)
    with pytest.raises(UserError, match="program_worth must be at least 0, got -1"):
        hackmatrix.make(reward="programs", program_worth=-1)
    with pytest.raises(
        UserError,
        match="reward must be one of game, progress, stages, programs, win, score, got 'x'",
    ):
        hackmatrix.make(reward="x")


def test_siphoning_pays_what_it_brings_less_the_siphon() -> None:
    text = BOARD.replace("energy 1", "energy 1 siphons 1")
    before = state_from_text(text).player
    (step,) = play(text, SIPHON)
    now = step.state.to_engine().player
    gained = now.credits - before.credits + now.energy - before.energy
    assert step.reward == pytest.approx(-0.15 + 0.03 * gained)


BELOW_A_PROGRAM = """
    .. .. .. .. .. X.
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    P. .. .. .. .. ..
    .@ .. .. .. .. ..
    player credits 3 energy 1 siphons 1
    owned {owned}
"""


@pytest.mark.parametrize("engine", ["native", pytest.param("jax", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("owned", "worth"), [("UNDO", 0.3), ("UNDO WAIT ROW COL", 0.0)])
def test_programs_up_to_the_fourth_are_worth_something(
    engine: str, owned: str, worth: float
) -> None:
    env = hackmatrix.make(reward="programs", engine=engine)
    start = env.from_text(BELOW_A_PROGRAM.format(owned=owned))
    _, _, paid, *_, info = env.step(None, start, jnp.int32(SIPHON))
    assert info["programs_owned"] == len(owned.split()) + 1
    assert paid == pytest.approx(-0.15 + worth)  # less the siphon
    assert info["shaping"] == pytest.approx(worth)  # the part that can fade
    assert env.spec.info.keys() == info.keys()


def test_the_worth_of_a_program_is_a_setting() -> None:
    config = EnvironmentConfig(reward="programs", program_worth=1.5)
    for env in (config.make(), config.make().imagination().env):
        start = env.from_text(BELOW_A_PROGRAM.format(owned="UNDO"))
        assert env.step(None, start, jnp.int32(SIPHON))[2] == pytest.approx(-0.15 + 1.5)


AT_THE_LAST_EXIT = """
    .. .. .. .. .@ X.
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    stage 8
    player credits 30 energy 1 siphons 2 score 5 hp 2
    owned PUSH
"""
BESIDE_DEATH = """
    .. .. .. .. .. X.
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    .. .. .v .. .. ..
    .@ .. .. .. .. ..
    stage 3
    player credits 4 energy 1 siphons 1 score 5 hp 1
    owned PUSH
"""


@pytest.mark.parametrize("engine", ["auto", pytest.param("jax", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("reward", "won", "lost"),
    [
        # 1 for the stage, 5 for the win, and the hp that a stage brings
        ("progress", 6.3, -1.3),
        # what is held is paid back: 3 hp, 20 credits, 1 energy, 2 siphons; 4 credits, 1 energy, 1
        ("stages", 6.3 - 0.9 - 0.63 - 0.3, -1.3 - 0.15 - 0.15),
        ("programs", 6.3, -1.3),  # as no program is won or lost
        ("win", 1, 0),
        # points are paid when they are won, and paid back by a defeat
        ("score", 1, -5 / 10),
    ],
)
def test_what_the_end_pays(engine: str, reward: str, won: float, lost: float) -> None:
    env = hackmatrix.make(reward=reward, win_worth=10, engine=engine, auto_reset=False)
    for position, expected in ((AT_THE_LAST_EXIT, won), (BESIDE_DEATH, lost)):
        _, state, paid, terminated, *_ = env.step(None, env.from_text(position), jnp.int32(RIGHT))
        assert terminated
        assert paid == pytest.approx(expected, abs=1e-5)
        assert env.step(None, state, jnp.int32(RIGHT))[2] == 0  # the game was over


@pytest.mark.slow
@pytest.mark.parametrize("reward", ["stages", "score"])
def test_without_a_discount_only_what_is_to_count_pays(reward: str) -> None:
    """However it is played: `stages`, the win and death, less the potential of the start; and no
    point of a game that is lost."""
    env = hackmatrix.make(reward=reward, layout="tactical")
    step = jax.jit(jax.vmap(env.step, (None, 0, 0)))
    records, state = jax.vmap(env.reset_game, (0, None))(jnp.arange(64), jnp.uint32(0))
    before = potentials if reward == "stages" else lambda records: np.zeros(len(records))
    sums, rng, ended, points = before(records), np.random.default_rng(1), 0, 0.0
    for _ in range(200):
        masks = np.asarray(jax.vmap(env.action_mask)(state))
        actions = (rng.random(masks.shape) * masks).argmax(axis=1)
        records, state, paid, terminated, _, info = step(None, state, actions)
        sums += np.asarray(paid)
        over, won = np.asarray(terminated), np.asarray(info["won"])
        ends = info["stage"] - 1 + 6 * won - ~won if reward == "stages" else np.float32(won)
        np.testing.assert_allclose(sums[over], ends[over], atol=1e-4)
        sums[over], ended = before(records)[over], ended + over.sum()
        points += info["score"][over].sum()
    assert ended > 50
    assert points > 10


def potentials(records: Any) -> Any:
    hp, siphons, *hoard = (
        np.asarray(number_of(records, name), np.float64)
        for name in ("hp", "siphons", "credits", "energy")
    )
    return 0.3 * hp + 0.15 * np.minimum(siphons, 3) + 0.03 * np.minimum(hoard, 20).sum(axis=0)
