"""`hackmatrix data record` and `verify`: games are kept, played again, and told apart."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import probe_environments as probes
import pytest
from made_data import GRID, change, change_facts, of_an_expert, recorded, use_grid
from paths import ROOT
from suites import first_quickly

from hackmatrix.cli.main import main
from hackmatrix.core.manifest import write_manifest
from hackmatrix.research.datasets import folder, record
from hackmatrix.research.datasets import shard as shards
from hackmatrix.research.datasets.folder import open_data_set
from hackmatrix.research.datasets.shard import Shard

Said = dict[str, Any]


@pytest.fixture(autouse=True)
def _grid(monkeypatch: pytest.MonkeyPatch) -> None:
    use_grid(monkeypatch)


def verified(path: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> tuple[int, Said]:
    capsys.readouterr()
    code = main(["data", "verify", str(path), "--json", *flags])
    said: Said = json.loads(capsys.readouterr().out)
    return code, said


def refused(capsys: pytest.CaptureFixture[str], *argv: object) -> str:
    """The one line that a command refuses with."""
    capsys.readouterr()
    assert main(["data", *map(str, argv)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def shards_of(path: Path) -> list[Shard]:
    return list(open_data_set(path).shards())


@pytest.mark.thorough
def test_recorded_games_are_whole_and_play_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(tmp_path / "it")
    (shard,) = shards_of(path)
    assert len(shard.lengths) == 40
    assert (shard.returns() == shard.terminated).all()  # the goal pays 1
    assert 0 < shard.terminated.mean() < 1
    assert (shard.lengths[~shard.terminated] == probes.Grid.max_episode_steps).all()
    code, said = verified(path, capsys)
    assert (code, said["games"], said["steps"]) == (0, 40, shard.lengths.sum())
    assert said["first"] is None
    assert [each.name for each in tmp_path.iterdir()] == ["it"]


@pytest.mark.thorough
def test_the_games_do_not_depend_on_how_they_are_cut_into_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (whole,) = shards_of(recorded(tmp_path / "whole"))
    monkeypatch.setattr(record, "_SHARD_BYTES", 5 * 50 * 15)  # 14 of 40 games
    parts = shards_of(recorded(tmp_path / "parts"))
    assert [part.first for part in parts] == [0, 14, 28]
    for name in ("lengths", "terminated", "finals", "actions", "rewards"):
        together = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(together, getattr(whole, name))
    assert verified(tmp_path / "parts", capsys)[0] == 0
    few = open_data_set(tmp_path / "parts").first(20, 10_000)
    assert [len(shard.lengths) for shard in few] == [14, 6]
    steps = int(whole.lengths[:17].sum())
    for allowed, games in ((steps, 17), (steps - 1, 16), (0, 1)):
        few = open_data_set(tmp_path / "parts").first(40, allowed)
        assert sum(len(shard.lengths) for shard in few) == games


def test_what_is_known_to_be_right_is_found_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verified(of_an_expert(tmp_path / "it", 30), capsys)[0] == 0


# A change of the data of an expert, and the field and the action of the game that differ.
CHANGES = {
    "invalid action": ("actions", -1, 0, "action", -1),
    "unknown action": ("actions", 0, 200, "action", 0),
    "reward": ("rewards", 0, 0.5, "reward", 0),
    "ending": ("terminated", 3, None, "end", -1),
    "observation": ("finals", 3, 5, "observation", -1),
}


@pytest.mark.parametrize("name", first_quickly(CHANGES))
def test_the_first_difference_is_named(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = of_an_expert(tmp_path / "it", 30)
    (shard,) = shards_of(path)
    array, index, value, field, action = CHANGES[name]
    if array in ("actions", "rewards"):  # of game 3
        index = shard.starts[3] + (index % shard.lengths[3])
    change(path, array, index, not shard.terminated[3] if value is None else value)
    code, said = verified(path, capsys)
    assert (code, said["differing"]) == (1, 1)
    first = said["first"]
    assert (first["game"], first["field"]) == (3, field)
    assert first["action"] == action % shard.lengths[3]
    assert main(["data", "verify", str(path)]) == 1
    assert f"first: game 3, action {first['action']}: {field} " in capsys.readouterr().out


def test_a_game_that_goes_on_after_its_end_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = of_an_expert(tmp_path / "it", 30)
    (shard,) = shards_of(path)
    # The first action of game 4 becomes one more of game 3.
    change(path, "lengths", 3, shard.lengths[3] + 1)
    change(path, "lengths", 4, shard.lengths[4] - 1)
    _, said = verified(path, capsys)
    first = said["first"]
    assert (first["game"], first["action"], first["field"]) == (3, shard.lengths[3] - 1, "end")


def test_changed_files_are_found_by_their_checksums(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(tmp_path / "it")
    shard = path / "games-0000000000.npz"
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    assert "does not match its checksum" in refused(capsys, "verify", path)
    shard.unlink()
    assert "games-0000000000.npz is missing" in refused(capsys, "verify", path)
    assert "is no data set" in refused(capsys, "verify", tmp_path)


def damage_no_zip(path: Path) -> None:
    (path / "games-0000000000.npz").write_bytes(b"PK nonsense")


def damage_bomb(path: Path) -> None:
    with zipfile.ZipFile(path / "games-0000000000.npz", "w", zipfile.ZIP_DEFLATED) as file:
        for k in range(3):
            file.writestr(f"{k}.npy", bytes(2**20))


def damage_pickle(path: Path) -> None:
    np.savez(path / "games-0000000000.npz", actions=np.array([print], object))


def damage_lengths(path: Path) -> None:
    change(path, "lengths", 0, 49)


def damage_number_of_games(path: Path) -> None:
    change_facts(path, games=41)


def damage_facts(path: Path) -> None:
    change_facts(path, max_steps="many")


def damage_environment(path: Path) -> None:
    change_facts(path, environment="a\nb:c")


def damage_more_facts(path: Path) -> None:
    change_facts(path, further=1)


def damage_shards(path: Path) -> None:
    (path / "games-0000000000.npz").rename(path / "games-0000000001.npz")


def damage_no_json(path: Path) -> None:
    (path / "data.json").write_text("[" * 100_000)


@pytest.mark.parametrize(
    "damage",
    first_quickly(
        [made for name, made in list(globals().items()) if name.startswith("damage_")], 3
    ),
)
def test_hostile_files_with_right_checksums_give_one_line(
    damage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shards, "MAX_SHARD", 2**20)
    path = recorded(tmp_path / "it")
    damage(path)
    write_manifest(path)
    assert f"{path}" in (line := refused(capsys, "verify", path))
    assert "is damaged" in line


def test_code_of_ones_own_is_imported_only_if_the_user_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(tmp_path / "it")
    change_facts(path, environment="os:getcwd")
    assert "say so by --env os:getcwd" in refused(capsys, "verify", path)
    assert "of os:getcwd, not of Grid-v0" in refused(capsys, "verify", path, "--env", GRID)


def test_nothing_is_overwritten_and_an_interrupted_recording_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(tmp_path / "it")
    before = {file: file.read_bytes() for file in path.iterdir()}
    assert "is there already" in refused(capsys, "record", path, "--env", GRID)
    assert before == {file: file.read_bytes() for file in path.iterdir()}
    assert "there is no folder" in refused(capsys, "record", tmp_path / "a" / "b", "--env", GRID)

    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert "is the current folder" in refused(capsys, "record", ".", "--env", GRID)
    (tmp_path / "empty").rmdir()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(folder.Writer, "add", interrupted)
    assert main(["data", "record", str(tmp_path / "new"), "--env", GRID, "--episodes", "9"]) == 130
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--agent", "random", "--search", "4"], "random has no network to search with"),
        (["--agent", "scripted", "--env", GRID], "--env Grid-v0 goes with `random` alone"),
        (["--agent", "exit", "--env", GRID], "--env Grid-v0 goes with `random` alone"),
        (["--agent", "mine.npz", "--env", GRID], "--env Grid-v0 goes with `random` alone"),
        (["--agent", "nobody.npz"], "nobody.npz: no such file"),
        (["--agent", "shipped@2", "--greedy"], "shipped@2: a search goes without --greedy"),
    ],
)
def test_agents_that_can_not_play_give_one_line(
    flags: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in refused(capsys, "record", tmp_path / "it", *flags)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["prepare_data", "verify_data"])
def test_the_scripts_run_from_a_clone(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / f"{name}.py"), "--help"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "usage: hackmatrix data " in result.stdout, result.stderr
