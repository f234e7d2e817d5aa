"""What benchmarks play: random valid actions, walking to the exit, and crowded positions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.agents.roster.built_in import BUILT_IN
from hackmatrix.game.engine import Game
from hackmatrix.game.rules.actions import NUM_DIRECTIONS
from hackmatrix.research.bench.env import (
    crowded_position,
    random_actions,
    rich_position,
    walks_to_exit,
)


def test_random_actions_are_valid_and_equally_likely() -> None:
    bits = jnp.full(30_000, 0b1000_0000_0000_0001_0000_0010, jnp.uint32)
    words = jax.random.bits(jax.random.key(0), bits.shape, jnp.uint32)
    actions, counts = np.unique(jax.jit(random_actions)(bits, words), return_counts=True)
    assert actions.tolist() == [1, 8, 23]
    assert (abs(counts - 10_000) < 400).all()


def test_the_walker_walks_as_the_player_exit() -> None:
    games = [Game.new(stream) for stream in range(64)]
    for game in games[32:]:
        game.step(game.valid_actions()[-1])
    games = [game for game in games if min(game.valid_actions(), default=99) < NUM_DIRECTIONS]
    observations = jnp.array([list(game.observation()) for game in games], jnp.uint8)
    bits = jnp.array([sum(1 << a for a in game.valid_actions()) for game in games], jnp.uint32)
    walk = jax.jit(walks_to_exit)
    actions = walk(observations, bits, jnp.ones(len(games), jnp.uint32)).tolist()
    walks = BUILT_IN["exit"].choose
    assert walks is not None
    assert actions == [walks(game.state, ()) for game in games]
    assert len(games) > 50
    random = walk(observations, bits, jnp.zeros(len(games), jnp.uint32)).tolist()
    assert random == [game.valid_actions()[0] for game in games]


@pytest.mark.parametrize("enemies", [0, 3, 32])
def test_crowded_positions(enemies: int) -> None:
    state = crowded_position(7, 5, enemies)
    assert (state.stage, len(state.enemies), state.transmissions) == (5, enemies, [])
    assert Game.from_dict(Game(state).to_dict()).valid_actions()  # a legal state


def test_rich_positions_are_of_later_stages() -> None:
    states = [rich_position(number) for number in range(100)]
    assert {state.stage for state in states} == set(range(3, 9))
    assert all(len(state.enemies) >= 6 for state in states)
