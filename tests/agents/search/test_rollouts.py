"""The search, on small games of chance that are solved by enumeration."""

from collections.abc import Callable
from itertools import pairwise, product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.agents.search.rollouts import (
    NONE,
    Model,
    SearchResult,
    SearchSettings,
    halving,
    improve,
    search,
)

Array = jax.Array

ACTIONS, MOVES, WINDS = 3, 3, (-1, 0, 1)  # left, stay, right; then the wind
CELLS, START = 9, 4
DISCOUNT = 0.9
GAMES = 24
# What arriving at each cell pays, float32[GAMES, CELLS].
PAYS = np.random.default_rng(3).normal(size=(GAMES, CELLS)).round(1).astype(np.float32)


class Walker(NamedTuple):
    """States of the windy walk."""

    cell: Array  # int32[L]
    moves: Array  # int32[L]
    which: Array  # int32[L], whose walk it is
    world: Array  # uint32[L], which winds blow


def _random(which: Array, world: Array, move: Array, purpose: int) -> Array:
    def one(which: Array, world: Array, move: Array) -> Array:
        key = jax.random.key(purpose)
        for number in (which, world, move):
            key = jax.random.fold_in(key, number)
        return jax.random.uniform(key)

    return jax.vmap(one)(which, world, jnp.broadcast_to(move, which.shape))


def _step(walker: Walker, actions: Array) -> tuple[Array, Walker, Array, Array]:
    drawn = _random(walker.which, walker.world, walker.moves, 1)
    wind = (drawn * len(WINDS)).astype(jnp.int32) + WINDS[0]
    cell = jnp.clip(walker.cell + actions - 1 + wind, 0, CELLS - 1)
    after = Walker(cell, walker.moves + 1, walker.which, walker.world)
    goes_on = walker.moves < MOVES
    pay = jnp.where(goes_on, jnp.asarray(PAYS)[walker.which, cell], 0)
    return cell, after, pay, walker.moves >= MOVES - 1


def _uniform(observations: Array) -> tuple[Array, Array]:
    return jnp.zeros((observations.size, ACTIONS)), jnp.zeros(observations.size)


def _walk(start: int = START) -> Model:
    return Model(
        imagine=lambda which, world: Walker(
            jnp.full(which.shape, start), jnp.zeros_like(which), which, world
        ),
        uniform=lambda which, world, move: _random(which, world, move, 2),
        step=_step,
        valid=lambda walker: jnp.ones((walker.cell.size, ACTIONS), bool),
        judge=_uniform,
        weight=lambda observations: jnp.full(observations.size, 1000.0),
    )


def _solved() -> np.ndarray:
    """float64[GAMES, ACTIONS]: the expected return of each action, then of any by chance."""
    worth = np.zeros((GAMES, ACTIONS))
    for first, *rest in product(range(ACTIONS), repeat=MOVES):
        for winds in product(WINDS, repeat=MOVES):
            cell = START
            for move, (action, wind) in enumerate(zip((first, *rest), winds, strict=True)):
                cell = min(max(cell + action - 1 + wind, 0), CELLS - 1)
                chance = len(WINDS) ** MOVES * ACTIONS ** (MOVES - 1)
                worth[:, first] += DISCOUNT**move * PAYS[:, cell] / chance
    return worth


def _searched(
    model: Model, settings: SearchSettings, valid: np.ndarray
) -> tuple[SearchResult, np.ndarray]:
    observations = jnp.full(len(valid), START)
    run = jax.jit(lambda seen, valid: search(model, settings, seen, valid))
    found, answer = run(observations, jnp.asarray(valid))
    return found, np.asarray(answer)


class Walked(NamedTuple):
    """All games, searched."""

    found: SearchResult
    answer: np.ndarray  # int32[GAMES]
    valid: np.ndarray  # bool[GAMES, ACTIONS], in every third game not every first action


# So many moves that nearly all of a return is the estimate at the end of the game.
SETTINGS = SearchSettings(600, DISCOUNT, moves=60)


@pytest.fixture(scope="module")
def walked() -> Walked:
    valid = np.ones((GAMES, ACTIONS), bool)
    valid[::3, 1] = False
    return Walked(*_searched(_walk(), SETTINGS, valid), valid)


@pytest.mark.thorough
def test_an_action_that_a_made_up_game_does_not_allow_returns_the_value_of_the_position() -> None:
    def step(walker: Walker, actions: Array) -> tuple[Array, Walker, Array, Array]:
        cell, after, pay, ended = _step(walker, actions)
        lost = (actions == 2) & (walker.world % 2 == 0)
        return cell, after, jnp.where(lost, -100.0, pay), lost | ended

    def valid(walker: Walker) -> Array:  # every second world forbids the last action
        return (jnp.arange(ACTIONS) < 2) | (walker.world[:, None] % 2 == 1)

    def searched(valid: Callable[[Walker], Array], step: Any) -> np.ndarray:
        model, settings = (
            _walk()._replace(step=step, valid=valid),
            SearchSettings(60, DISCOUNT, moves=4),
        )
        found, _ = _searched(model, settings, np.ones((GAMES, ACTIONS), bool))
        return np.asarray(found.q())

    q = searched(valid, step)
    assert q.min() > -10  # no such game is lost
    np.testing.assert_allclose(q[:, :2], searched(valid, _step)[:, :2])


def test_it_finds_the_best_action_of_a_game_of_chance(walked: Walked) -> None:
    each, answer, solved = np.arange(GAMES), walked.answer, _solved()
    worth = np.where(walked.valid, solved, -np.inf)
    lost = worth.max(axis=1) - worth[each, answer]
    assert lost.max() < 0.1
    assert np.mean(lost == 0) > 0.85  # chance would find a third or half
    error = np.asarray(walked.found.q())[each, answer] - solved[each, answer]
    assert abs(error).max() < 0.4
    assert abs(error.mean()) < 0.1


def test_statistics_add_up(walked: Walked) -> None:
    visits, lines = np.asarray(walked.found.visits), np.asarray(walked.found.lines)
    assert (visits[~walked.valid] == 0).all()
    number = visits.sum(axis=1)
    assert ((number > 0.9 * SETTINGS.simulations) & (number <= SETTINGS.simulations)).all()
    for action in range(ACTIONS):
        np.testing.assert_array_equal((lines[:, :, 0] == action).sum(axis=1), visits[:, action])
    walks = lines[lines[:, :, 0] != NONE]
    assert (walks[:, :MOVES] != NONE).all()
    assert (walks[:, MOVES:] == NONE).all()


def test_a_return_is_the_mean_of_the_estimates_after_each_move() -> None:
    """Each move pays 1 and leads from a number to the next one, which is its value."""

    def step(state: Array, _: Array) -> tuple[Array, Array, Array, Array]:
        return state + 1, state + 1, jnp.ones(state.shape), jnp.zeros(state.shape, bool)

    def judge(number: Array) -> tuple[Array, Array]:
        return jnp.zeros((number.size, 2)), number.astype(jnp.float32)

    model = Model(
        imagine=lambda which, _: which,
        uniform=lambda which, *_: jnp.zeros(which.shape),
        step=step,
        valid=lambda state: jnp.ones((state.size, 2), bool),
        judge=judge,
        weight=lambda observations: jnp.ones(observations.size),
    )
    found, _ = _searched(model, SearchSettings(2, 0.5, moves=2), np.ones((3, 2), bool))
    trace = 2 / 3
    shares = [1 - trace, trace * (1 - trace), trace**2]
    for start in range(3):
        estimates = [2 - 0.5**n + 0.5 ** (n + 1) * (start + n + 1) for n in range(3)]
        expected = np.dot(estimates, shares)
        np.testing.assert_allclose(found.totals[start], [expected, expected], rtol=1e-6)


@pytest.mark.thorough
def test_actions_are_compared_in_the_same_worlds_by_the_same_chance() -> None:
    """The last action does what the first one does, so it brings the same."""

    def step(walker: Walker, actions: Array) -> tuple[Array, Walker, Array, Array]:
        return _step(walker, jnp.where(actions == ACTIONS, 0, actions))

    def judge(observations: Array) -> tuple[Array, Array]:
        logits = jnp.where(jnp.arange(ACTIONS + 1) < ACTIONS, 0.0, -1e9)  # it never goes on so
        values = jnp.zeros(observations.size)
        return jnp.broadcast_to(logits, (observations.size, ACTIONS + 1)), values

    def valid(walker: Walker) -> Array:
        return jnp.ones((walker.cell.size, ACTIONS + 1), bool)

    model = _walk()._replace(step=step, judge=judge, valid=valid)
    two = np.zeros((GAMES, ACTIONS + 1), bool)
    two[:, [0, ACTIONS]] = True
    found, _ = _searched(model, SearchSettings(20, DISCOUNT, moves=4, sure=1.0), two)
    assert (found.visits[:, 0] == 10).all()
    np.testing.assert_array_equal(found.totals[:, 0], found.totals[:, ACTIONS])
    assert np.std(found.totals[:, 0]) > 0


def _coin() -> Model:
    """Action 2 takes 0.2 and ends; else a coin is thrown, and the next action says how it fell."""

    def imagine(which: Array, world: Array) -> tuple[Array, Array]:
        return jnp.zeros_like(which), (_random(which, world, jnp.int32(0), 3) < 0.5).astype(int)

    def step(state: tuple[Array, Array], action: Array) -> tuple[Array, object, Array, Array]:
        asked, coin = state
        safe, guess = (asked == 0) & (action == 2), jnp.where(action == coin, 1.0, -1.0)
        reward = jnp.where(safe, 0.2, jnp.where(asked == 1, guess, 0.0))
        return asked + 1, (asked + 1, coin), reward, safe | (asked >= 1)

    def valid(state: tuple[Array, Array]) -> Array:
        asked = state[0][:, None] == 1
        return jnp.where(asked, jnp.array([True, True, False]), jnp.ones(ACTIONS, bool))

    return _walk()._replace(imagine=imagine, step=step, valid=valid)


@pytest.mark.thorough
def test_a_coin_can_not_be_foreseen_and_the_network_weighs_in() -> None:
    """In any one imagined world, guessing might win; over many of them, it is worth nothing.

    In the other games, the network finds guessing e**9 or e**4 times as good as not to guess, which
    is worth 0.2 more; their returns weigh 1000 as in the first game, 50 and 1.
    """

    def judge(observations: Array) -> tuple[Array, Array]:
        logits, values = _uniform(observations)
        sure = jnp.resize(jnp.array([0.0, 9.0, 4.0, 4.0, 4.0]), observations.size)
        return logits.at[:, 0].set(sure), values

    def weight(observations: Array) -> Array:
        return jnp.ones(observations.size) * jnp.array([1000.0, 1000.0, 1000.0, 50.0, 1.0])

    model, settings = _coin()._replace(judge=judge, weight=weight), SearchSettings(2000, 1.0, 60)
    found, answer = _searched(model, settings, np.ones((5, ACTIONS), bool))
    assert answer.tolist() == [2, 0, 2, 2, 0]
    assert (np.abs(np.asarray(found.q())[0, :2]) < 0.3).all()
    simulated = found.visits.sum(axis=1)
    assert simulated[1] == 0  # where the network is sure
    assert simulated[2] > 1900


@pytest.mark.parametrize("simulations", [1, 2, 8, 32, 100])
@pytest.mark.parametrize("considered", [1, 2, 6, 8])
def test_halving_shares_all_simulations(considered: int, simulations: int) -> None:
    left, each = halving(considered, simulations)
    for number in range(1, considered + 1):
        spent = left[number] * each[number]
        assert spent.sum() <= simulations
        assert spent.sum() > simulations - 2 * number
        rounds = left[number][each[number] > 0]
        assert rounds[0] == min(number, simulations)
        assert all(after <= max(2, before // 2) for before, after in pairwise(rounds))


def test_the_improved_policy_doubts_means_of_few_simulations() -> None:
    """One action that was often good, one that was bad once, one not tried, one not valid."""
    visits = jnp.array([[98.0, 1.0, 0.0, 0.0]])
    totals = jnp.array([[98.0 * 1.5, 0.5, 0.0, 0.0]])
    found = SearchResult(jnp.zeros((1, 4)), jnp.array([3.0]), visits, totals, jnp.zeros((1, 0, 0)))
    valid = jnp.array([[True, True, True, False]])
    policy, value = improve(found, valid, 2.0)
    mean = (3 + 99 * (0.5 * 1.5 + 0.5 * 0.5)) / 100
    gains = np.array([(1.5 - mean) * 98 / 106, (0.5 - mean) / 9, 0])
    chances = np.asarray(policy)[0]
    np.testing.assert_allclose(np.log(chances[:3] / chances[2]), 2 * gains, atol=1e-4)
    assert chances[3] == 0
    assert value[0] == pytest.approx(mean + chances[:3] @ gains, abs=1e-4)


def test_without_simulations_the_improved_policy_is_the_network_s() -> None:
    logits, none = jnp.array([[1.0, 2.0, 3.0]]), jnp.zeros((1, 3))
    found = SearchResult(logits, jnp.array([3.0]), none, none, jnp.zeros((1, 0, 0)))
    policy, value = improve(found, jnp.array([[True, True, False]]), 30.0)
    np.testing.assert_allclose(policy, jax.nn.softmax(jnp.array([[1.0, 2.0, -1e9]])), atol=1e-6)
    assert value[0] == 3
