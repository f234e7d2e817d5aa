"""Recorded games that the native engine replays for benchmarks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import programs
from benchmarks.native_play import games_of, replay
from hackmatrix.cli.main import main
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.state import Ending
from hackmatrix.research.datasets.folder import open_data_set


@pytest.mark.slow
def test_a_replay_shows_each_observation_before_its_action(tmp_path: Path) -> None:
    argv = ["--agent", "scripted", "--episodes", "6", "--max-steps", "1500", "--seed", "3"]
    assert main(["data", "record", str(tmp_path / "games"), *argv]) == 0
    data = open_data_set(tmp_path / "games")
    (shard,) = data.shards()
    seen = [list[bytes]() for _ in shard.lengths]

    def look(running: Any, records: Any) -> None:
        for game in running:
            seen[game].append(records[game].tobytes())

    won = replay(data, games_of(data), look)

    for number, (start, length) in enumerate(zip(shard.starts, shard.lengths, strict=True)):
        game = Game.new(stream=3, episode=number)
        for time, action in enumerate(shard.actions[start : start + length]):
            assert seen[number][time] == game.observation()
            game.step(int(action))
        assert won[number] == (game.state.over is Ending.WON)
    assert [len(each) for each in seen] == shard.lengths.tolist()
    assert 0 < np.count_nonzero(won) < len(won)


def test_programs_are_counted_in_games_of_hackmatrix_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["--env", "CartPole-v1", "--agent", "random", "--episodes", "2"]
    assert main(["data", "record", str(tmp_path / "poles"), *argv]) == 0
    assert programs.main(["--data", str(tmp_path / "poles")]) == 2
    assert "its games are of CartPole-v1, not HackMatrix-v1" in capsys.readouterr().err
