"""Minari loads what is exported, and it is what the games were."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import minari
import numpy as np
import probe_environments as probes
import pytest
from made_data import GRID, of_an_expert

from hackmatrix.cli.main import main
from hackmatrix.environments.interface.spaces import Box
from hackmatrix.environments.registry import MAKERS
from hackmatrix.game.engine import Game
from hackmatrix.integrations.gymnasium.observation_spaces import arrange_record
from hackmatrix.research.datasets.folder import open_data_set
from hackmatrix.research.evaluation.seeding import DATA

NAME = "grid/expert-v0"


class SpaciousGrid(probes.Grid):
    observation_space = Box(0, 24, (1,), np.uint8)


@pytest.fixture(autouse=True)
def _minaris_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    monkeypatch.setitem(MAKERS, GRID, lambda: lambda **_: SpaciousGrid())


def exported(path: Path, *flags: str, name: str = NAME) -> Any:
    assert main(["data", "export", str(path), name, *flags]) == 0
    return minari.load_dataset(name)


@pytest.mark.thorough
def test_episodes_are_the_games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hackmatrix.integrations.minari_export._GAMES_AT_ONCE", 8)
    path = of_an_expert(tmp_path / "data", 14)
    (shard,) = open_data_set(path).shards()
    loaded = exported(path, "--episodes", "12")
    assert (loaded.total_episodes, loaded.total_steps) == (12, shard.lengths[:12].sum())
    for game, known in enumerate(loaded.storage.get_episode_metadata(range(12))):
        assert (known["seed"], known["options"]) == (3, {"episode": game})
    first, _ = DATA.begin(SpaciousGrid(), jnp.uint32(3), jnp.arange(12))
    for game, episode in enumerate(loaded.iterate_episodes()):
        steps = slice(shard.starts[game], shard.starts[game] + shard.lengths[game])
        assert episode.id == game
        np.testing.assert_array_equal(episode.actions, shard.actions[steps])
        np.testing.assert_array_equal(episode.rewards, shard.rewards[steps])
        moves = np.array([5, -5, -1, 1])[shard.actions[steps]]
        positions = int(first[game, 0]) + np.cumsum([0, *moves])
        np.testing.assert_array_equal(episode.observations[:, 0], positions)
        ended = np.arange(len(episode)) == len(episode) - 1
        np.testing.assert_array_equal(episode.terminations, ended & shard.terminated[game])
        np.testing.assert_array_equal(episode.truncations, ended & ~shard.terminated[game])
        masks = jax.vmap(SpaciousGrid().valid)(jnp.asarray(positions[:-1]))
        np.testing.assert_array_equal(episode.infos["action_mask"][:-1], masks)
        assert not episode.infos["action_mask"][-1].any()


@pytest.mark.thorough
def test_a_bounded_export_and_what_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(of_an_expert(tmp_path / "data", 20))
    (shard,) = open_data_set(Path(path)).shards()
    steps = str(shard.lengths[:9].sum())
    assert exported(Path(path), "--max-steps", steps).total_episodes == 9
    before = sorted((tmp_path / "minari").rglob("*"))
    wrong = "an id of Minari is "
    for name, words in ((NAME, "of this name"), ("../it-v0", wrong), ("grid/it", wrong)):
        capsys.readouterr()
        assert main(["data", "export", path, name]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1

    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hackmatrix.integrations.minari_export._episode", broken)
    assert main(["data", "export", path, "grid/other-v0", "--episodes", "7"]) == 1
    assert "No space left" in capsys.readouterr().err
    assert sorted((tmp_path / "minari").rglob("*")) == before


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("layout", ["dict", "compact"])
def test_episodes_of_hackmatrix(layout: str, tmp_path: Path) -> None:
    path = tmp_path / "data"
    argv = ["--agent", "scripted", "--seed", "9", "--episodes", "3", "--max-steps", "60"]
    assert main(["data", "record", str(path), *argv]) == 0
    loaded = exported(path, "--observation", layout, name=f"hackmatrix/{layout}-v0")
    env = loaded.recover_environment()
    assert env.observation_space == loaded.observation_space
    known = loaded.storage.get_episode_metadata(range(loaded.total_episodes))
    for episode, start in zip(loaded.iterate_episodes(), known, strict=True):
        replayed, _ = env.reset(seed=start["seed"], options=start["options"])
        first = jax.tree.map(lambda x: x[0], episode.observations)
        jax.tree.map(np.testing.assert_array_equal, replayed, first)
        game = Game.new(9, int(episode.id))
        for time, action in enumerate([*episode.actions, None]):
            expected = arrange_record(game.observation(), layout)
            shown = jax.tree.map(lambda x: x[time], episode.observations)  # noqa: B023
            jax.tree.map(np.testing.assert_array_equal, shown, expected)
            if action is not None:
                valid = np.flatnonzero(episode.infos["action_mask"][time])
                assert valid.tolist() == game.valid_actions()
                reward = game.step(int(action)).reward
                assert episode.rewards[time] == pytest.approx(reward, rel=1e-6)
