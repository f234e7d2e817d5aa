"""The native engine's scripted player takes the actions of the one in Python."""

import random
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lockstep_starts import full, new, quiet, rich
from strategies import Data, legal_states

import hackmatrix
from hackmatrix.agents.scripted.scripted import choose
from hackmatrix.game import native
from hackmatrix.game.engine.game import Game
from hackmatrix.game.engine.observation import observe
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.programs import PROGRAMS

if not native.available:
    pytest.skip("the native engine is left out", allow_module_level=True)

from hackmatrix.game.native.batch import scripted_actions
from hackmatrix.research.evaluation.native_built_in import WEIGHTS


def native_choices(records: list[bytes], forbidden: int = 0) -> list[int]:
    seen = np.array([np.frombuffer(record, np.uint8) for record in records])
    return scripted_actions(seen, WEIGHTS, forbidden).tolist()


def positions(seed: int, games: int, *, rich_player: bool) -> Iterator[bytes]:
    """Positions of random games, of a player who owns and affords all programs or of any."""
    rng = random.Random(seed)
    for episode in range(games):
        game = Game.new(seed, episode)
        if rich_player:
            game.state.owned = list(range(len(PROGRAMS)))
        for _ in range(100):
            if game.state.over:
                break
            if rich_player:
                game.state.player.hp = rng.randint(1, 3)
                game.state.player.credits = game.state.player.energy = 20
            if rng.random() < 0.2:
                yield game.observation()
            game.step(rng.choice(game.valid_actions()))


def made(seed: int, number: int) -> list[bytes]:
    rng = random.Random(seed)
    return [observe(start(rng)) for start in (new, quiet, rich, full) for _ in range(number)]


def check(records: list[bytes]) -> None:
    assert native_choices(records) == [choose(record) for record in records]


@pytest.mark.parametrize("rich_player", [False, True])
def test_choices_in_games_are_the_same(rich_player: bool) -> None:
    records = list(positions(21, 4, rich_player=rich_player))
    assert len(records) > 20
    check(records)


def test_choices_in_made_up_positions_are_the_same() -> None:
    check(made(3, 3))


@pytest.mark.thorough
@settings(max_examples=40)
@given(legal_states(), st.sets(st.integers(0, NUM_ACTIONS - 1), max_size=8))
def test_choices_in_any_position_are_the_same(data: Data, forbidden: set[int]) -> None:
    record = observe(Game.from_dict(data).state)
    bits = sum(1 << action for action in forbidden)
    assert native_choices([record], bits) == [choose(record, forbidden)]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_choices_in_many_positions_are_the_same() -> None:
    check([*positions(22, 150, rich_player=False), *positions(23, 150, rich_player=True)])
    check(made(4, 500))


def test_games_are_evaluated_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    how = {"episodes": 2, "seed": 4, "max_steps": 60}
    fast = hackmatrix.evaluate("scripted", **how)
    monkeypatch.setattr(native, "available", False)
    assert hackmatrix.evaluate("scripted", **how).accounts == fast.accounts
