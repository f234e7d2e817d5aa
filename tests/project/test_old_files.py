"""Files of earlier versions: the package reads them, and goes on where they were.

The archives hold what commands of 2026-11 wrote: runs, data sets, a search. The `.npz` files are
the params to which that package trained on; the JSON and text is one saved game.
"""

import json
import os
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest
from made_places import COMPILED_QUICKLY
from paths import DATA

from hackmatrix.agents.networks.policy import load_policy
from hackmatrix.cli.main import main
from hackmatrix.core.processes import python_module
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.replay import Replay
from hackmatrix.game.engine.saving import state_from_dict, state_to_dict

pytestmark = pytest.mark.thorough

BEFORE = DATA / "old_files"
VECTORS = "avx512f"  # of the processor that trained then: its name alone doesn't tell


def unpacked(name: str, folder: Path) -> Path:
    with tarfile.open(BEFORE / f"{name}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def goes_on(run_folder: Path, steps: int, expected: str) -> None:
    """Resumes a run as a process, compiled as it was; its params are those of then.

    Bit for bit where processor and JAX are those of then, else as near as rounding lets them be.
    """
    words = ("train", "--resume", run_folder, "--total-timesteps", steps)
    command = python_module("hackmatrix", *map(str, words))
    environment = {**os.environ, **COMPILED_QUICKLY}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    starts = (run_folder / "starts.jsonl").read_text().splitlines()
    start, now = map(json.loads, starts)
    is_same = all(start[name] == now[name] for name in ("processor", "device"))
    is_same = is_same and start["versions"]["jaxlib"] == now["versions"]["jaxlib"]
    is_same = is_same and VECTORS in Path("/proc/cpuinfo").read_text()
    with np.load(BEFORE / expected) as then, np.load(run_folder / "final_params.npz") as ours:
        assert set(then) == set(ours)
        for name in then:
            if is_same:
                np.testing.assert_array_equal(ours[name], then[name])
            else:
                np.testing.assert_allclose(ours[name], then[name], rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_a_run_goes_on_exactly(tmp_path: Path) -> None:
    run_folder = unpacked("cartpole", tmp_path) / "cartpole"
    goes_on(run_folder, 320, "cartpole_after_20_updates.npz")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_of_hackmatrix_goes_on_exactly(tmp_path: Path) -> None:
    goes_on(unpacked("hackmatrix", tmp_path) / "game", 64, "hackmatrix_after_8_updates.npz")


@pytest.mark.parametrize(("archive", "name"), [("cartpole", "cartpole"), ("hackmatrix", "game")])
def test_checkpoints_and_params_are_whole(
    archive: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_folder = unpacked(archive, tmp_path) / name
    assert load_policy(run_folder).config.hidden_dim == 8
    assert main(["checkpoint", "list", str(run_folder)]) == 0
    assert f"checkpoints/{'10' if name == 'cartpole' else '4'}" in capsys.readouterr().out


def test_data_sets_are_verified(tmp_path: Path) -> None:
    folder = unpacked("data_sets", tmp_path)
    assert main(["data", "verify", str(folder / "pole")]) == 0
    assert main(["data", "verify", str(folder / "games"), "--oracle"]) == 0


def test_a_search_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(unpacked("search", tmp_path))
    files = "--config base.yaml --search-space space.yaml --output-dir search"
    words = "--sampler grid --num-trials 2 --num-seeds 1 --fresh-seeds 0 --seed 1"
    assert main(["tune", *files.split(), *words.split()]) == 0
    assert "2 trials (2 complete)" in capsys.readouterr().out


def test_a_saved_game_is_played_and_drawn(tmp_path: Path) -> None:
    replay = Replay.of_json(json.loads((BEFORE / "game.json").read_text()))
    game = Game.new(stream=replay.game.stream, episode=replay.game.episode)
    for action in replay.actions:
        game.step(action)
    assert game.to_text() == (BEFORE / "game.txt").read_text()
    saved = json.loads((BEFORE / "state.json").read_text())
    assert state_to_dict(game.state) == saved
    assert state_to_dict(state_from_dict(saved)) == saved
    drawn = tmp_path / "game.svg"
    assert main(["replay", str(BEFORE / "game.json"), "--svg", str(drawn)]) == 0
    assert drawn.read_text().startswith("<svg")
