"""The edge of the engine: whatever kind of integer names a game or an action, it is the same."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix import Game

_KINDS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
_KINDS += [np.array, jnp.int8, jnp.int32, jnp.uint32]


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.filterwarnings("error")
def test_every_integer_type_plays_the_same_game(kind: Any) -> None:
    game, same = Game.new(7, 5), Game.new(kind(7), kind(5))
    assert same.to_dict() == game.to_dict()
    while not game.state.over:
        action = game.valid_actions()[-1]
        assert same.step(kind(action)) == game.step(action)
        assert same.to_dict() == game.to_dict()


@pytest.mark.parametrize("word", [5.0, "5", None, np.float32(5), np.array([5])])
def test_what_is_no_integer_is_refused_in_one_line(word: Any) -> None:
    for argument, call in (
        ("stream", lambda: Game.new(word)),
        ("episode", lambda: Game.new(7, word)),
        ("action", lambda: Game.new(7).step(word)),
    ):
        with pytest.raises(TypeError, match=rf"^{argument} must be an integer, got .*$"):
            call()


@pytest.mark.parametrize("word", [-1, 2**32, np.int8(-1), np.uint64(2**32)])
def test_a_number_that_names_no_game_is_refused_in_one_line(word: Any) -> None:
    for argument, call in (
        ("stream", lambda: Game.new(word)),
        ("episode", lambda: Game.new(7, word)),
    ):
        with pytest.raises(ValueError, match=rf"^{argument} must be 0\.\.4294967295, got {word}$"):
            call()
