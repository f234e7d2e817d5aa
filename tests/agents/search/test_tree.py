"""The search, on small games of chance that are solved by enumeration."""

from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.agents.search.tree import Model, Settings, Tree, halving_visits, improved, search

Array = jax.Array

ACTIONS, MOVES, WINDS = 3, 3, (-1, 0, 1)  # left, stay, right; then the wind
CELLS, START = 9, 4
DISCOUNT = 0.9
GAMES = 24
# What arriving at each cell pays, float32[GAMES, CELLS].
PAYS = np.random.default_rng(3).normal(size=(GAMES, CELLS)).round(1).astype(np.float32)


class Walker(NamedTuple):
    """States of the windy walk."""

    cell: Array  # int32[N]
    moves: Array  # int32[N]
    number: Array  # uint32[N], which winds blow


def _step(walker: Walker, actions: Array) -> tuple[Array, Walker, Array, Array]:
    def wind(game: Array, number: Array, move: Array) -> Array:
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(game), number), move)
        return jax.random.randint(key, (), WINDS[0], WINDS[-1] + 1)

    games = jnp.arange(GAMES)
    blown = actions - 1 + jax.vmap(wind)(games, walker.number, walker.moves)
    cell = jnp.clip(walker.cell + blown, 0, CELLS - 1)
    walker = Walker(cell, walker.moves + 1, walker.number)
    return cell, walker, jnp.asarray(PAYS)[games, cell], walker.moves >= MOVES


def _uniform(observations: Array) -> tuple[Array, Array]:
    return jnp.zeros((observations.size, ACTIONS)), jnp.zeros(observations.size)


def _two(observations: Array) -> Array:
    return jnp.full(observations.size, 2.0)


WALK = Model(
    imagine=lambda cell, number: Walker(cell, jnp.zeros_like(cell), number),
    step=_step,
    valid=lambda walker: jnp.ones((walker.cell.size, ACTIONS), bool),
    judge=_uniform,
    weight=_two,
)


def _solved() -> np.ndarray:
    """float64[GAMES, ACTIONS]: the expected return of each first action with its best sequel."""
    best = np.full((GAMES, ACTIONS), -np.inf)
    for plan in product(range(ACTIONS), repeat=MOVES):
        total = np.zeros(GAMES)
        for winds in product(WINDS, repeat=MOVES):
            cell = START
            for move, (action, wind) in enumerate(zip(plan, winds, strict=True)):
                cell = min(max(cell + action - 1 + wind, 0), CELLS - 1)
                total += DISCOUNT**move * PAYS[:, cell] / len(WINDS) ** MOVES
        best[:, plan[0]] = np.maximum(best[:, plan[0]], total)
    return best


def _searched(
    model: Model, settings: Settings, valid: np.ndarray, start: int = START
) -> tuple[Tree, Array]:
    observations = jnp.full(len(valid), start)
    run = jax.jit(lambda seen, valid: search(model, settings, seen, valid))
    return run(observations, jnp.asarray(valid))


class Walked(NamedTuple):
    """All games, searched."""

    tree: Tree
    answer: np.ndarray  # int32[GAMES]
    valid: np.ndarray  # bool[GAMES, ACTIONS], in every third game not every first action


SETTINGS = Settings(600, DISCOUNT, exploration=2.0, depth=8)


@pytest.fixture(scope="module")
def walked() -> Walked:
    valid = np.ones((GAMES, ACTIONS), bool)
    valid[::3, 1] = False
    tree, answer = _searched(WALK, SETTINGS, valid)
    return Walked(tree, np.asarray(answer), valid)


def test_it_finds_the_best_action_of_a_game_of_chance(walked: Walked) -> None:
    best = np.where(walked.valid, _solved(), -np.inf)
    lost = best.max(axis=1) - best[np.arange(GAMES), walked.answer]
    assert lost.max() < 0.1
    assert np.mean(lost == 0) > 0.85  # uniform play would find a third or half


def test_its_values_come_near_the_solution(walked: Walked) -> None:
    """Means over simulations: they hold the exploration too, so they stay below the best."""
    each, answer = np.arange(GAMES), walked.answer
    error = np.asarray(walked.tree.root().q())[each, answer] - _solved()[each, answer]
    assert abs(error).max() < 0.5
    assert -0.2 < error.mean() < 0.1


def test_statistics_add_up(walked: Walked) -> None:
    visits, children = np.asarray(walked.tree.visits), np.asarray(walked.tree.children)
    assert (visits[:, 0].sum(axis=1) == SETTINGS.simulations).all()
    assert (visits[:, 0][~walked.valid] == 0).all()
    for game in range(GAMES):
        for node, action in zip(*np.nonzero(children[game]), strict=True):
            child = children[game, node, action]
            # The visit that made the child ended there, or the game did.
            assert visits[game, child].sum() == visits[game, node, action] - 1


def _coin() -> Model:
    """Action 2 takes 0.2 and ends; else a coin is thrown, and the next action says how it fell."""

    def imagine(seen: Array, number: Array) -> tuple[Array, Array]:
        return seen, (number * jnp.uint32(2654435761) >> 16 & 1).astype(jnp.int32)

    def step(state: tuple[Array, Array], action: Array) -> tuple[Array, object, Array, Array]:
        asked, coin = state
        safe, guess = (asked == 0) & (action == 2), jnp.where(action == coin, 1.0, -1.0)
        reward = jnp.where(safe, 0.2, jnp.where(asked == 1, guess, 0.0))
        return asked + 1, (asked + 1, coin), reward, safe | (asked == 1)

    def valid(state: tuple[Array, Array]) -> Array:
        asked = state[0][:, None] == 1
        return jnp.where(asked, jnp.array([True, True, False]), jnp.ones(ACTIONS, bool))

    return Model(imagine, step, valid, _uniform, _two)


def test_it_does_not_know_how_a_coin_will_fall() -> None:
    """In any one imagined world, guessing would win; over many of them, it is worth nothing."""
    valid = np.ones((4, ACTIONS), bool)
    tree, answer = _searched(_coin(), Settings(256, 1.0), valid, start=0)
    assert answer.tolist() == [2] * 4
    assert (np.abs(np.asarray(tree.root().q())[:, :2]) < 0.2).all()


@pytest.mark.parametrize("simulations", [1, 8, 32, 100])
def test_halving_gives_the_best_most(simulations: int) -> None:
    considered = 6
    table = halving_visits(considered, simulations)
    assert table.shape == (considered + 1, simulations)
    for number in range(1, considered + 1):
        visits = np.zeros(number, int)  # the action with the lowest number is always the best
        for wanted in table[number]:
            visits[np.flatnonzero(visits == wanted)[0]] += 1
        assert (np.diff(visits) <= 0).all()
        assert visits.min() >= min(1, simulations // number)
        assert visits[0] >= simulations / number


def test_the_improved_policy_doubts_means_of_few_simulations() -> None:
    """One action that was often good, one that was bad once, one not tried, one not valid."""
    visits = jnp.array([[[98.0, 1.0, 0.0, 50.0]]])
    totals = jnp.array([[[98.0 * 1.5, 0.5, 0.0, 75.0]]])
    zeros = jnp.zeros_like(visits)
    tree = Tree(zeros.astype(jnp.int32), visits, totals, zeros, jnp.full((1, 1), 3.0))
    valid = jnp.array([[True, True, True, False]])
    policy, value = improved(tree, valid, 2.0)
    mean = (3 + 149 * (0.5 * 1.5 + 0.5 * 0.5)) / 150
    gains = np.array([(1.5 - mean) * 98 / 106, (0.5 - mean) / 9, 0])
    chances = np.asarray(policy)[0]
    np.testing.assert_allclose(np.log(chances[:3] / chances[2]), 2 * gains, atol=1e-4)
    assert chances[3] == 0
    assert value[0] == pytest.approx(mean + chances[:3] @ gains, abs=1e-4)


def test_an_action_that_was_not_tried_promises_the_mean() -> None:
    visits, totals = jnp.array([2.0, 0.0, 1.0]), jnp.array([3.0, 0.0, 0.0])
    node = Tree(jnp.zeros(3, jnp.int32), visits, totals, jnp.zeros(3), jnp.array(5.0))
    np.testing.assert_allclose(node.q(), [1.5, (5 + 3) / 4, 0])


def test_what_returns_are_worth_decides_between_them_and_the_network() -> None:
    """The network is sure of guessing, which is worth 0.2 less."""

    def judge(observations: Array) -> tuple[Array, Array]:
        logits, values = _uniform(observations)
        return logits.at[:, 0].set(6.0), values

    def weight(observations: Array) -> Array:
        return jnp.where(jnp.arange(observations.size) == 0, 50.0, 1.0)

    model = _coin()._replace(judge=judge, weight=weight)
    _, answer = _searched(model, Settings(256, 1.0), np.ones((2, ACTIONS), bool), start=0)
    assert answer.tolist() == [2, 0]
