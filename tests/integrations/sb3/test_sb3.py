"""MaskablePPO on the game: short trainings, what they leave, how they end and go on."""

import json
import multiprocessing.util
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import ROOT

pytest.importorskip("sb3_contrib")

import torch
from gymnasium import make
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

from hackmatrix.cli import main as cli
from hackmatrix.integrations.gymnasium.observation_spaces import LAYOUTS
from hackmatrix.integrations.process.client import GameProcessError
from hackmatrix.integrations.sb3.callbacks import PARTS, Episodes, MaskViolated
from hackmatrix.integrations.sb3.envs import single, singles
from hackmatrix.integrations.sb3.options import Sb3TrainOptions
from hackmatrix.integrations.sb3.train import take_name
from hackmatrix.runs.folder import RunFolder

pytestmark = pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
SHORT = ["--n-steps", "64", "--batch-size", "32", "--no-wandb", "--eval-freq", "0"]


@pytest.fixture(autouse=True)
def one_thread_and_our_binary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    monkeypatch.delenv("HACKMATRIX_BINARY", raising=False)
    monkeypatch.chdir(tmp_path)
    multiprocessing.util.get_temp_dir()  # of all tests, and so not in the folder of one
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()


def train(*flags: str) -> int:
    return cli.main(["sb3", "train", *SHORT, *flags])


def only(folder: str) -> Path:
    (found,) = (path for path in Path(folder).iterdir() if path.is_dir())
    return found


@pytest.mark.parametrize("layout", LAYOUTS)
def test_passes_the_check_of_stable_baselines(layout: str) -> None:
    """Of arrays of three axes it says that they are no images; else nothing."""
    env = make("HackMatrix-v1", observation=layout).unwrapped
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        check_env(env)
    told = [str(each.message) for each in said]
    assert [line for line in told if "image" not in line] == []
    assert len(told) == (3 if layout in ("dict", "planes") else 0), told


def test_a_training_leaves_models_metrics_and_a_history(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--timesteps", "300", "--save-freq", "100", "--eval-freq", "150"]
    assert train(*flags, "--max-episode-steps", "20", "--run-suffix", "Try") == 0
    models, logs = only("models"), only("logs")
    assert models.name == logs.name
    assert models.name.startswith("hackmatrix-")
    assert models.name.endswith("-1-try")
    saved = ["best_model", "final_model"]
    saved += [f"maskable_ppo_hack_{steps}_steps" for steps in (100, 200, 300)]
    assert sorted(path.name for path in models.iterdir()) == [f"{name}.zip" for name in saved]
    rows = metrics()
    assert [row["timesteps"] for row in rows] == [64, 128, 192, 256, 320]
    assert [row["update"] for row in rows] == [1, 2, 3, 4, 5]
    assert rows[-1]["stats/truncated"] > 0
    assert list(Path("temporary").glob("SB3-*")) == []
    assert {f"episode/reward_{part}" for part in PARTS} <= set(rows[-1])
    assert "saved" in capsys.readouterr().out
    check_history(rows)


def test_another_observation_and_reward(capsys: pytest.CaptureFixture[str]) -> None:
    """The history has the game's own reward, and the saved model says its layout."""
    flags = ["--timesteps", "200", "--eval-freq", "100", "--max-episode-steps", "20"]
    assert train(*flags, "--observation", "tactical", "--reward", "progress") == 0
    models = only("models")
    check_history(metrics())
    model = MaskablePPO.load(models / "final_model.zip")
    assert model.observation_space.shape == (432,)
    capsys.readouterr()
    assert cli.main(["sb3", "watch", "--latest", "--episodes", "2", "--max-steps", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[1:]] == ["game 1", "game 2", "mean"]
    assert re.fullmatch(r"mean: [01]\.\d\d stages cleared, 0% won, return [+-]\d+\.\d\d", lines[3])
    saved = str(models / "final_model.zip")
    assert train("--resume", saved) == 2
    assert "was it trained with another --preset or --observation?" in capsys.readouterr().err


def metrics() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (only("logs") / "metrics.jsonl").read_text().splitlines()]


def told_by_the_database(query: str, *values: str) -> list[Any]:
    with closing(sqlite3.connect("logs/training_history.db")) as database:
        database.row_factory = sqlite3.Row
        rows = [*map(dict, database.execute(query, values))]
        database.commit()
    return rows


def check_history(rows: list[dict[str, Any]]) -> None:
    episodes = told_by_the_database("SELECT * FROM episodes ORDER BY id")
    assert [row["episode_num"] for row in episodes] == list(range(1, len(episodes) + 1))
    assert len(episodes) == rows[-1]["episode/count"]
    assert any(row["steps"] == 20 for row in episodes)  # truncated ones count
    for row in episodes:
        actions = row["action_moves"] + row["action_siphons"] + row["action_programs"]
        assert actions == row["steps"]
        parts = sum(row[f"reward_{part}"] for part in PARTS)
        assert row["total_reward"] == pytest.approx(parts - 0.01 * row["steps"], abs=1e-3)


def test_a_resumed_training_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--timesteps", "64") == 0
    models, rows = only("models"), metrics()
    resume = ["--timesteps", "64", "--resume", str(models / "final_model.zip")]
    with closing(RunFolder(only("logs"))):
        assert train(*resume) == 2
    assert "is being trained by another process" in capsys.readouterr().err
    assert metrics() == rows
    assert train(*resume) == 0
    assert only("models") == models
    assert MaskablePPO.load(models / "final_model.zip").num_timesteps == 128
    assert [row["timesteps"] for row in metrics()] == [64, 128]
    assert "after 64 steps" in capsys.readouterr().out


def test_what_came_after_an_older_model_is_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    """It is made again, and would count twice."""
    flags = ["--max-episode-steps", "10", "--timesteps", "256", "--save-freq", "64"]
    assert train(*flags) == 0
    models, logs = only("models"), only("logs")
    told_by_the_database("INSERT INTO episodes (run_id, timestep) VALUES ('other', 300)")
    older = str(models / "maskable_ppo_hack_128_steps.zip")
    assert train(*flags, "--resume", older) == 0
    assert "2 rows of metrics and" in capsys.readouterr().out
    rows = metrics()
    assert [row["timesteps"] for row in rows] == [64, 128, 192, 256, 320, 384]
    found = "SELECT episode_num, timestep FROM episodes WHERE run_id = ? ORDER BY id"
    episodes = told_by_the_database(found, logs.name)
    assert told_by_the_database(found, "other") == [{"episode_num": None, "timestep": 300}]
    assert [row["episode_num"] for row in episodes] == list(range(1, len(episodes) + 1))
    steps = [row["timestep"] for row in episodes]
    assert steps == sorted(steps)
    assert len(episodes) == rows[-1]["episode/count"]


def test_the_best_model_of_a_resumed_run_stays_until_it_is_beaten() -> None:
    flags = ["--timesteps", "64", "--eval-freq", "32", "--max-episode-steps", "10"]
    assert train(*flags) == 0
    models, logs = only("models"), only("logs")
    told = dict(np.load(logs / "evaluations.npz"))
    told["results"][:] = 1e6  # which no later one reaches
    np.savez(logs / "evaluations.npz", **told)
    best = (models / "best_model.zip").read_bytes()
    assert train(*flags, "--resume", str(models / "final_model.zip")) == 0
    assert (models / "best_model.zip").read_bytes() == best
    with np.load(logs / "evaluations.npz") as now:
        assert now["timesteps"].tolist() == [32, 64, 96, 128]
        assert now["results"][:2].tolist() == told["results"].tolist()


def test_wrong_models_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path("no.zip").write_bytes(b"no model")
    assert train("--resume", "no.zip") == 2
    assert "--resume no.zip: not a model of this environment" in capsys.readouterr().err
    assert train("--resume", "gone.zip") == 2
    assert "--resume gone.zip: there is no such file" in capsys.readouterr().err
    assert cli.main(["sb3", "watch"]) == 1
    assert "no model in models: train one first" in capsys.readouterr().err
    assert cli.main(["sb3", "watch", "gone.zip"]) == 1
    assert cli.main(["sb3", "watch", "no.zip"]) == 2


def test_missing_packages_are_told() -> None:
    code = (
        "import sys\nsys.modules['sb3_contrib'] = None\n"
        "from hackmatrix.cli.main import main\nsys.exit(main(['sb3', 'train']))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 2
    said = "needs sb3_contrib: pip install 'hackmatrix[sb3]' (before it, `pip install torch"
    assert said in result.stderr


def test_names_count_up_and_bad_ones_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    options = Sb3TrainOptions(run_suffix="b")
    names = [take_name(options), take_name(options), take_name(Sb3TrainOptions())]
    assert [name.split("-", 3)[3] for name in names] == ["1-b", "2-b", "3"]
    assert train("--run-suffix", "a/b") == 2
    assert "--run-suffix must be 1 to 100 letters" in capsys.readouterr().err
    assert train("--game-binary", "x", "--backend", "jax") == 2
    assert "--game-binary goes with --backend process" in capsys.readouterr().err
    assert train("--preset", "tactical", "--backend", "process") == 2
    assert "backend process gives observations dict, classic, not" in capsys.readouterr().err


def test_games_in_processes_are_the_games() -> None:
    alone = DummyVecEnv([partial(single, 30)] * 2)
    apart = singles(2, 30)
    try:
        assert isinstance(apart, SubprocVecEnv)
        assert os.getpid() not in {process.pid for process in apart.processes}
        rng = np.random.default_rng(0)
        seen = []
        for env in (alone, apart):
            env.seed(5)
            seen.append(env.reset())
        for _ in range(40):
            assert all(np.array_equal(seen[0][name], seen[1][name]) for name in seen[0])
            masks = [np.stack(env.env_method("action_masks")) for env in (alone, apart)]
            assert np.array_equal(*masks)
            actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in masks[0]])
            told = [env.step(actions) for env in (alone, apart)]
            seen = [each[0] for each in told]
            assert told[0][1] == pytest.approx(told[1][1])  # one of them has rounded
            assert np.array_equal(told[0][2], told[1][2])
    finally:
        apart.close()
    assert not any(process.is_alive() for process in apart.processes)


def test_what_ends_a_game_is_told(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """In one line; and wrong options before a process is started."""
    binary = tmp_path / "binary"
    binary.write_text("#!/bin/sh\nread line\necho overheated >&2\nexit 7\n")
    binary.chmod(0o755)
    flags = ["--num-envs", "2", "--timesteps", "64"]
    assert train(*flags, "--game-binary", str(binary)) == 1
    said = capfd.readouterr().err
    assert "has ended with exit code 7; it said last: overheated\n" in said
    assert said.count("\n") == 1
    assert train(*flags, "--game-binary", "/no/such") == 2
    said = capfd.readouterr().err
    assert "there is no such program" in said
    assert said.count("\n") == 1


def test_a_games_process_that_is_killed_is_told() -> None:
    env = singles(2, 30)
    env.reset()
    os.kill(env.processes[1].pid, signal.SIGKILL)
    with pytest.raises(GameProcessError, match="a process that plays a game has ended"):
        env.step(np.array([4, 4]))
    env.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_saves_the_model(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: Episodes) -> bool:
        if self.num_timesteps == 70:
            os.kill(os.getpid(), number)
        return True

    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    monkeypatch.setattr(Episodes, "_on_step", interrupt)
    assert train("--timesteps", "500") == 128 + number
    assert {each: signal.getsignal(each) for each in before} == before
    model = MaskablePPO.load(only("models") / "interrupted_model.zip")
    assert model.num_timesteps == 70


def test_a_signal_ends_an_update_and_an_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    """An update and an evaluation may take longer than a machine that ends waits for them."""

    def soon() -> None:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()

    monkeypatch.setattr(Episodes, "_on_rollout_end", lambda _: soon())
    assert train("--timesteps", "512", "--n-steps", "512", "--batch-size", "2") == 143
    model = MaskablePPO.load(only("models") / "interrupted_model.zip")
    assert (model.num_timesteps, model._n_updates < 10) == (512, True)

    def evaluate(*_: Any, callback: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        callback({}, {})
        raise AssertionError("went on")

    monkeypatch.setattr("sb3_contrib.common.maskable.callbacks.evaluate_policy", evaluate)
    assert train("--timesteps", "64", "--eval-freq", "10", "--run-suffix", "b") == 143
    (saved,) = Path("models").glob("*-b/interrupted_model.zip")
    assert MaskablePPO.load(saved).num_timesteps == 10


@pytest.mark.timeout(300)
def test_a_signal_to_all_processes_saves_the_model(tmp_path: Path) -> None:
    """As from a terminal, or from a service manager: the games' processes get it too."""
    script = str(ROOT / "python" / "scripts" / "train.py")
    flags = ["--num-envs", "2", "--backend", "process", "--timesteps", "1000000", *SHORT]
    command = [sys.executable, script, *flags, "--save-freq", "50"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )
    while process.poll() is None and not list(tmp_path.glob("models/*/*_steps.zip")):
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (143, ""), out
    assert "2 x process" in out
    (saved,) = tmp_path.glob("models/*/interrupted_model.zip")
    assert MaskablePPO.load(saved).num_timesteps >= 50


def test_a_crash_saves_the_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def crash(_: Episodes) -> bool:
        raise RuntimeError("the power\nis gone")

    monkeypatch.setattr(Episodes, "_on_step", crash)
    assert train("--timesteps", "500", "--run-suffix", "b") == 1
    assert "error: RuntimeError: the power is gone\n" in capsys.readouterr().err
    assert len(list(Path("models").glob("*-b/crash_recovery_model.zip"))) == 1


def test_a_violated_mask_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = Episodes._check_masks

    def violate(self: Episodes) -> None:
        mask = self.locals["action_masks"].copy()
        mask[0, self.locals["actions"][0]] = False
        self.locals["action_masks"] = mask
        real(self)

    monkeypatch.setattr(Episodes, "_check_masks", violate)
    assert train("--timesteps", "64") == 1
    assert f"error: {MaskViolated.__name__}: game 0: action " in capsys.readouterr().err


def test_truncated_episodes_have_statistics() -> None:
    env = single(4)
    env.reset(seed=0)
    for _ in range(4):
        action = int(np.flatnonzero(env.get_wrapper_attr("action_masks")())[0])
        *_, terminated, truncated, info = env.step(action)
    assert (terminated, truncated) == (False, True)
    assert info["episode_stats"]["steps"] == info["episode"]["l"] == 4


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_preset_tactical_learns() -> None:
    """A fifth of the 500,000 steps within which games are to clear 1.5 stages; random play 0.20."""
    flags = ["--preset", "tactical", "--timesteps", "100000", "--eval-freq", "0", "--no-wandb"]
    assert cli.main(["sb3", "train", *flags]) == 0
    rows = metrics()
    cleared = [row["stats/mean_stage"] - 1 for row in rows if "stats/mean_stage" in row]
    assert np.mean(cleared[:2]) < 0.6
    assert np.mean(cleared[-5:]) > 1.8


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_lines_of_the_original_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With our process in the place of the binary; shorter than they are written."""
    binary = Path(sys.executable).with_name("hackmatrix-game")
    monkeypatch.setenv("HACKMATRIX_BINARY", str(binary))
    short = [*SHORT[:-2], "--eval-freq", "64", "--timesteps", "64", "--max-episode-steps", "20"]

    def typed(line: str, *further: str) -> str:
        script, *words = line.split()
        command = [sys.executable, str(ROOT / "python" / script), *words, *further]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        return result.stdout

    told = typed("scripts/train.py --timesteps 100000000 --save-freq 50000", *short)
    assert "1 x process" in told
    best = f"./models/{only('models').name}/best_model.zip"
    assert "after 64 steps" in typed(f"scripts/train.py --resume {best}", *short)
    typed("scripts/train.py --no-wandb", *short)
    assert typed(f"scripts/watch_trained_agent.py --model {best}").count("game ") == 3
