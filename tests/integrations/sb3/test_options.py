"""The options of `hackmatrix sb3`, which need no Stable-Baselines3."""

import pytest

from hackmatrix.core.errors import UserError
from hackmatrix.game import native
from hackmatrix.integrations.sb3.options import OF_MANY, Sb3TrainOptions


def test_the_native_engine_plays_many_games_and_python_those_of_evaluations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(native, "available", True)
    options = Sb3TrainOptions(backend="native")
    assert options.player in OF_MANY
    assert options.of_player(evaluation=True) == options.of_player() == {"backend": "python"}
    monkeypatch.setattr(native, "available", False)
    with pytest.raises(UserError, match="--backend native: it was left out at the installation"):
        Sb3TrainOptions(backend="native")
