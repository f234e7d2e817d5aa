"""The options of `hackmatrix sb3`, which need no Stable-Baselines3."""

import pytest

from hackmatrix.core.errors import UserError
from hackmatrix.game import native
from hackmatrix.integrations.sb3.options import OF_MANY, Sb3TrainOptions


def test_the_native_engine_plays_many_games(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "available", True)
    options = Sb3TrainOptions(backend="native")
    assert options.player in OF_MANY
    assert options.of_player(evaluation=True) == options.of_player() == {"backend": "python"}
    monkeypatch.setattr(native, "available", False)
    with pytest.raises(UserError, match="--backend native: it was left out at the installation"):
        Sb3TrainOptions(backend="native")


def test_the_preset_that_learns() -> None:
    pytest.importorskip("sb3_contrib")
    options = Sb3TrainOptions(preset="tactical")
    assert (options.player, options.games) == ("jax", 64)
    assert options.of_game() == {"observation": "tactical", "reward": "progress"}
    assert options.of_game(evaluation=True)["reward"] == "game"
    settings = options.of_algorithm()
    assert (settings["n_steps"], settings["batch_size"]) == (64, 512)
    assert [settings["learning_rate"](left) for left in (1, 0.5, 0)] == [1e-3, 5e-4, 0]
    given = Sb3TrainOptions(preset="tactical", num_envs=2, backend="python", reward="game")
    assert (given.player, given.games, given.of_game()["reward"]) == ("python", 2, "game")


def test_the_defaults_are_those_of_the_original(monkeypatch: pytest.MonkeyPatch) -> None:
    options = Sb3TrainOptions()
    assert (options.player, options.games) == ("python", 1)
    assert options.of_game() == {"observation": "dict", "reward": "game"}
    monkeypatch.setenv("HACKMATRIX_BINARY", "/a/binary")
    assert Sb3TrainOptions().player == "process"
    assert Sb3TrainOptions(preset="tactical").player == "jax"
