"""Data sets of HackMatrix: played and judged by the Python engine, and by both."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hackmatrix.cli.main import main
from hackmatrix.game.engine import Game
from hackmatrix.game.rules.rewards import UNIT
from hackmatrix.research.datasets.folder import open_data_set
from hackmatrix.research.datasets.jax_replay import rewards_of
from hackmatrix.research.datasets.python_replay import (
    OracleGame,
    first_difference,
    play_plain,
)
from hackmatrix.research.evaluation.plain_games import PlainGame

pytestmark = pytest.mark.thorough

JOB = PlainGame("exit", seed=5, episode=2, max_steps=2_000)


@pytest.fixture(scope="module")
def played() -> OracleGame:
    return play_plain(JOB)


def units_of(game: OracleGame) -> Any:
    return np.frombuffer(game.units, np.int32).copy()


def test_a_game_is_that_of_its_seed_and_number(played: OracleGame) -> None:
    game = Game.new(stream=5, episode=2)
    outcomes = [game.step(action) for action in played.actions]
    assert game.state.over is not None
    assert played.terminated
    rewards = [outcome.reward for outcome in outcomes]
    np.testing.assert_allclose(units_of(played) * UNIT, rewards)
    assert first_difference(played) is None


def test_the_oracle_names_the_first_difference(played: OracleGame) -> None:
    units = units_of(played)
    units[11] += 1
    last = len(played.actions) - 1
    some = bytes([1 - played.actions[0] % 2])
    cases = [
        (played._replace(units=units.tobytes()), 11, "reward"),
        (played._replace(actions=played.actions[:9] + b"\x1c" + played.actions[10:]), 9, "action"),
        (played._replace(final=played.final ^ 1), last, "observation"),
        (played._replace(terminated=False), last, "end"),
        (
            played._replace(actions=played.actions + some, units=played.units + bytes(4)),
            last,
            "end",
        ),
        (played._replace(actions=played.actions[:-1], units=played.units[:-4]), last - 1, "end"),
    ]
    for changed, action, field in cases:
        found = first_difference(changed)
        assert found is not None
        assert (found.game, found.action, found.field) == (2, action, field)


def test_a_cut_off_game_is_one_only_at_the_limit() -> None:
    cut_off = play_plain(JOB._replace(max_steps=20))
    assert not cut_off.terminated
    assert first_difference(cut_off) is None
    found = first_difference(cut_off._replace(max_steps=21))
    assert found is not None
    assert (found.action, found.field) == (19, "end")


def test_the_scripted_player_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "it"
    argv = ["--agent", "scripted", "--seed", "5", "--episodes", "3", "--max-steps", "30"]
    assert main(["data", "record", str(path), *argv]) == 0
    (shard,) = open_data_set(path).shards()
    played = play_plain(JOB._replace(player="scripted", max_steps=30))
    start = shard.starts[2]
    assert shard.actions[start:].tobytes() == played.actions
    np.testing.assert_array_equal(shard.rewards[start:], rewards_of(units_of(played)))
    assert (shard.finals[2], shard.terminated[2]) == (played.final, played.terminated)


@pytest.mark.parametrize(("games", "sampled"), [(65, 64), (20, 20)])
def test_64_games_are_played_in_both_engines(
    games: int, sampled: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "it")
    argv = ["--agent", "exit", "--episodes", str(games), "--max-steps", "3"]
    assert main(["data", "record", path, *argv]) == 0
    assert main(["data", "verify", path]) == 0
    assert f"{sampled} of them in both engines: as recorded" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_both_engines_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "it")
    argv = ["--agent", "random", "--episodes", "100", "--max-steps", "300"]
    assert main(["data", "record", path, *argv]) == 0
    assert main(["data", "verify", path, "--oracle"]) == 0
    assert "100 of them in both engines: as recorded" in capsys.readouterr().out
