"""`hackmatrix data record` and `verify`: games are kept, played again, and told apart."""

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import probe_environments as probes
import pytest
from made_data import GRID, change, change_facts, of_an_expert, recorded, use_grid
from paths import ROOT
from suites import first_quickly

from hackmatrix.cli.main import main
from hackmatrix.core.files import write_manifest
from hackmatrix.research.datasets import folder, record
from hackmatrix.research.datasets import folder as shards
from hackmatrix.research.datasets.folder import Shard, open_data_set

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def _grid(monkeypatch: pytest.MonkeyPatch) -> None:
    use_grid(monkeypatch)


@pytest.fixture(scope="module")
def experts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of an expert."""
    return of_an_expert(tmp_path_factory.mktemp("expert") / "it", 40)


@pytest.fixture
def path(experts: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(experts, tmp_path / "it"))


@pytest.fixture
def verified(capsys: pytest.CaptureFixture[str]) -> Command:
    """The code of `data verify`, and what it says."""

    def run(path: Path) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = main(["data", "verify", str(path), "--json"])
        return code, json.loads(capsys.readouterr().out)

    return run


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Command:
    """The one line that a command refuses with."""

    def run(*argv: object) -> str:
        capsys.readouterr()
        assert main(["data", *map(str, argv)]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        return error

    return run


def shards_of(path: Path) -> list[Shard]:
    return list(open_data_set(path).shards())


@pytest.mark.thorough
def test_recorded_games_play_again_however_they_are_cut_into_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verified: Command
) -> None:
    (whole,) = shards_of(recorded(tmp_path / "whole"))
    assert len(whole.lengths) == 40
    assert (whole.returns() == whole.terminated).all()  # the goal pays 1
    assert 0 < whole.terminated.mean() < 1
    assert (whole.lengths[~whole.terminated] == probes.Grid.max_episode_steps).all()
    monkeypatch.setattr(record, "_SHARD_BYTES", 5 * 50 * 21)  # 20 of 40 games
    parts = shards_of(recorded(tmp_path / "parts"))
    assert [part.first for part in parts] == [0, 20]
    for name in ("lengths", "terminated", "finals", "actions", "rewards"):
        together = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(together, getattr(whole, name))
    code, said = verified(tmp_path / "parts")
    assert (code, said["games"], said["steps"]) == (0, 40, whole.lengths.sum())
    assert said["first"] is None
    few = open_data_set(tmp_path / "parts").first(26, 10_000)
    assert [len(shard.lengths) for shard in few] == [20, 6]
    steps = int(whole.lengths[:23].sum())
    for allowed, number in ((steps, 23), (steps - 1, 22), (0, 1)):
        few = open_data_set(tmp_path / "parts").first(40, allowed)
        assert sum(len(shard.lengths) for shard in few) == number


# A change of the data of an expert, and the field and the action of the game that differ.
CHANGES = {
    "invalid action": ("actions", -1, 0, "action", -1),
    "unknown action": ("actions", 0, 200, "action", 0),
    "reward": ("rewards", 0, 0.5, "reward", 0),
    "ending": ("terminated", 3, None, "end", -1),
    "observation": ("finals", 3, 5, "observation", -1),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", first_quickly(CHANGES))
def test_the_first_difference_is_named(name: str, path: Path, verified: Command) -> None:
    (shard,) = shards_of(path)
    array, index, value, field, action = CHANGES[name]
    if array in ("actions", "rewards"):  # of game 3
        index = shard.starts[3] + (index % shard.lengths[3])
    change(path, array, index, not shard.terminated[3] if value is None else value)
    code, said = verified(path)
    assert (code, said["differing"]) == (1, 1)
    first = said["first"]
    assert (first["game"], first["field"]) == (3, field)
    assert first["action"] == action % shard.lengths[3]


def test_a_game_past_its_end_differs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shard,) = shards_of(path)
    # The first action of game 4 becomes one more of game 3.
    change(path, "lengths", 3, shard.lengths[3] + 1)
    change(path, "lengths", 4, shard.lengths[4] - 1)
    assert main(["data", "verify", str(path)]) == 1
    told = f"first: game 3, action {shard.lengths[3] - 1}: end "
    assert told in capsys.readouterr().out


def test_changed_files_are_found(path: Path, refused: Command) -> None:
    shard = path / "games-0000000000.npz"
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    assert "does not match its checksum" in refused("verify", path)
    shard.unlink()
    assert "games-0000000000.npz is missing" in refused("verify", path)
    assert "is no data set" in refused("verify", path.parent)


SHARD = "games-0000000000.npz"


def bomb(path: Path) -> None:
    with zipfile.ZipFile(path / SHARD, "w", zipfile.ZIP_DEFLATED) as file:
        for k in range(3):
            file.writestr(f"{k}.npy", bytes(2**20))


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "no zip": lambda path: (path / SHARD).write_bytes(b"PK nonsense"),
    "bomb": bomb,
    "pickle": lambda path: np.savez(path / SHARD, actions=np.array([print], object)),
    "lengths": lambda path: change(path, "lengths", 0, 49),
    "number of games": lambda path: change_facts(path, games=41),
    "facts": lambda path: change_facts(path, max_steps="many"),
    "environment": lambda path: change_facts(path, environment="a\nb:c"),
    "more facts": lambda path: change_facts(path, further=1),
    "shards": lambda path: (path / SHARD).rename(path / "games-0000000001.npz"),
    "no JSON": lambda path: (path / "data.json").write_text("[" * 100_000),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", DAMAGES)
def test_hostile_files_with_right_checksums_give_one_line(
    name: str, path: Path, monkeypatch: pytest.MonkeyPatch, refused: Command
) -> None:
    monkeypatch.setattr(shards, "MAX_SHARD", 2**20)
    DAMAGES[name](path)
    write_manifest(path)
    assert f"{path}" in (line := refused("verify", path))
    assert "is damaged" in line
    assert ("would take more than 1,048,576 bytes of memory" in line) == (name == "bomb")


def test_code_is_imported_only_if_named(path: Path, refused: Command) -> None:
    change_facts(path, environment="os:getcwd")
    assert "say so by --env os:getcwd" in refused("verify", path)
    assert "of os:getcwd, not of Grid-v0" in refused("verify", path, "--env", GRID)


@pytest.mark.thorough
def test_nothing_is_overwritten_and_an_interrupted_recording_leaves_nothing(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refused: Command,
) -> None:
    before = {file: file.read_bytes() for file in path.iterdir()}
    assert "is there already" in refused("record", path, "--env", GRID)
    assert before == {file: file.read_bytes() for file in path.iterdir()}
    assert "there is no folder" in refused("record", tmp_path / "a" / "b", "--env", GRID)

    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert "is the current folder" in refused("record", ".", "--env", GRID)
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
        (["--agent", "mine.npz", "--env", GRID], "--env Grid-v0 goes with `random` alone"),
        (["--agent", "nobody.npz"], "nobody.npz: no such file"),
        (["--agent", "shipped@2", "--greedy"], "shipped@2: a search goes without --greedy"),
    ],
)
def test_agents_that_can_not_play(
    flags: list[str], words: str, tmp_path: Path, refused: Command
) -> None:
    assert words in refused("record", tmp_path / "it", *flags)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["prepare_data", "verify_data"])
def test_the_scripts_run_from_a_clone(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / f"{name}.py"), "--help"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "usage: hackmatrix data " in result.stdout, result.stderr
