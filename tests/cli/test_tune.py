"""The command `hackmatrix tune`, with a stand-in for the training."""

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE
from typing import Any
from xml.etree import ElementTree

import optuna
import pytest
from made_training import made_training, peak
from paths import HELPERS, ROOT
from small_runs import assert_same_run

from hackmatrix.cli.main import main
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.research.tuning import results, shared_process, study, worker

pytestmark = pytest.mark.thorough

Said = dict[str, Any]

SPACE = """\
training:
  learning_rate: {low: 1.0e-4, high: 1.0e-2, log: true, points: 2}
  n_epochs: [1, 2, 4]
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[TrainConfig]:
    """The trainings that were made; files of settings and space are in the working folder."""
    monkeypatch.chdir(tmp_path)
    Path("space.yaml").write_text(SPACE)
    Path("base.yaml").write_text("training:\n  lr: 5.0e-3\n  total_timesteps: 8000\n")
    monkeypatch.setattr(worker, "POLL", 0.0)
    configs: list[TrainConfig] = []
    use(monkeypatch, peak, configs)
    return configs


def use(monkeypatch: pytest.MonkeyPatch, value: Any, configs: list[TrainConfig]) -> None:
    stand_in = made_training(value, configs)
    monkeypatch.setattr(shared_process, "training", stand_in)


def tuned(capsys: pytest.CaptureFixture[str], *argv: str) -> Said:
    base = ["tune", "--config", "base.yaml", "--search-space", "space.yaml", "--seed", "1"]
    assert main([*base, "--num-seeds", "2", "--fresh-seeds", "3", "--json", *argv]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    said: Said = json.loads(captured.out)
    return said


def test_the_winner_is_trained_again_and_is_a_file_that_trains(
    made: list[TrainConfig], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "_LEAST", 3)  # trials, for importances
    said = tuned(capsys, "--num-trials", "3", "--no-pruning")
    found = said["samplers"]["tpe"]
    assert found["trials_by_state"] == {"complete": 3}
    best = read_config(Path("tuning/base/best.yaml"))
    assert best["lr"] == found["best"]["params"]["training.learning_rate"]
    assert best["wandb"]  # what trials are spared, the winner is not
    assert best["num_seeds"] == 1
    assert main(["train", "--config", "tuning/base/best.yaml", "--print-config"]) == 0
    for name in ("history", "importance"):
        ElementTree.fromstring(Path(f"tuning/base/{name}.svg").read_text())
    assert json.loads(Path("tuning/base/report.json").read_text()) == said

    trials, again = made[:3], made[3:]
    assert all(config.run.seeds == range(2) for config in trials)
    assert [config.run.seeds for config in again] == [range(10_000, 10_003)] * 2  # no trial's
    assert [config.learning.lr for config in again] == [5e-3, best["lr"]]  # the file's, the best
    mean, low, high = said["fresh"]["tpe"]["better_by"]
    assert low == pytest.approx(mean) == pytest.approx(high)  # pairs differ by the same
    assert mean == pytest.approx(4 - abs(best["lr"] - 0.001) * 1000, abs=0.02)
    assert mean > 0


def test_a_metric_that_no_run_has_ends_the_search(
    made: list[TrainConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["tune", "--config", "base.yaml", "--search-space", "space.yaml", "--num-trials", "8"]
    assert main([*argv, "--metric", "stats/mean_stages"]) == 2
    assert "has no metric stats/mean_stages; it has" in capsys.readouterr().err
    assert len(made) == 1


def test_the_same_command_again_makes_nothing_anew_and_more_trials_go_on(
    made: list[TrainConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    first = tuned(capsys, "--num-trials", "2")
    count = len(made)
    assert tuned(capsys, "--num-trials", "2") == first
    assert len(made) == count
    said = tuned(capsys, "--num-trials", "4", "--fresh-seeds", "0")
    assert said["samplers"]["tpe"]["trials"] == 4
    assert len(made) == count + 2
    again = ["tune", "--config", "base.yaml", "--search-space", "space.yaml"]
    assert main([*again, "--num-seeds", "1"]) == 2  # is another search
    assert "choose another --output-dir" in capsys.readouterr().err
    journal = Path("tuning/base/journal.log")
    journal.write_bytes(b"nonsense\n" + journal.read_bytes())
    assert main([*again, "--num-seeds", "2"]) == 2
    assert "journal.log: is no journal of a search, or a damaged one\n" in capsys.readouterr().err


def test_grid_and_random_stand_beside_each_other_and_the_file_if_none_did_better(
    made: list[TrainConfig], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, lambda config, share: -abs(config.learning.lr - 5e-3) * share, made)
    tuned(capsys, "--num-trials", "2", "--sampler", "random")
    said = tuned(capsys, "--num-trials", "100", "--sampler", "grid", "--no-pruning")
    counts = {name: each["trials"] for name, each in said["samplers"].items()}
    assert counts == {"random": 2, "grid": 6}  # 2 points x 3 choices, each once
    in_grid = [config.learning for config in made if config.run.num_seeds == 2][2:]
    assert len({(learning.lr, learning.update_epochs) for learning in in_grid}) == 6
    scores = {name: each["score"][0] for name, each in said["fresh"].items()}
    assert said["chosen"] == max(scores, key=scores.__getitem__) == "default"
    assert read_config(Path("tuning/base/best.yaml"))["lr"] == 5e-3


WORST = "--constraint kl_too_high clip_too_high --constraint entropy_collapse"


def test_failures_and_runs_that_break_a_constraint_are_recorded_and_not_the_best(
    made: list[TrainConfig], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def value(config: TrainConfig, share: float) -> float:
        """Of 1 epoch all is well, of 2 the process fails, of 8 a number is not finite."""
        collapses = 1000.0 if share == 1 else -1000.0  # ends highest, after an alarm
        breaks = -math.inf if share < 0.5 else peak(config, share)
        epochs = {1: peak(config, share), 2: math.nan, 4: collapses, 8: breaks}
        return epochs[config.learning.update_epochs]

    use(monkeypatch, value, made)
    Path("space.yaml").write_text("training: {n_epochs: [1, 2, 4, 8], num_minibatches: [3, 4]}\n")
    flags = ("--sampler", "grid", "--no-pruning", "--fresh-seeds", "0")
    for constraints, ends, epochs in (
        ([], {"complete": 3, "broke a constraint": 1, "fail": 5}, "4"),
        (WORST.split(), {"complete": 3, "broke a constraint": 2, "fail": 5}, "1"),
    ):
        said = tuned(capsys, *flags, *constraints, "--output-dir", f"tuning/{epochs}")
        found = said["samplers"]["grid"]
        assert found["trials_by_state"] == ends
        assert found["best"]["params"]["training.n_epochs"] == epochs
        reasons = {reason.partition(" must")[0] for reason in found["failures"].values()}
        assert reasons == {"out of memory", "--num-minibatches 3"}


def test_a_search_without_a_winner_fails(
    made: list[TrainConfig], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, lambda *_: math.nan, made)
    assert main(["tune", "--config", "base.yaml", "--num-trials", "2"]) == 1
    captured = capsys.readouterr()
    assert captured.err == (
        "hackmatrix tune: error: no trial has finished within the constraints\n"
    )
    assert "2 trials (2 fail)" in captured.out
    assert not Path("tuning/base/best.yaml").exists()


def test_a_trial_that_is_worse_than_half_of_the_others_is_pruned(
    made: list[TrainConfig], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "_STARTUP", 1)
    Path("space.yaml").write_text("training:\n  learning_rate: [0.001, 0.009]\n")
    # The grid's order is fixed: this file's has the good one first.
    use(
        monkeypatch,
        lambda config, share: -config.learning.lr * share if len(made) > 1 else share,
        made,
    )
    said = tuned(capsys, "--sampler", "grid", "--fresh-seeds", "0")
    assert said["samplers"]["grid"]["trials_by_state"] == {"complete": 1, "pruned": 1}


def test_pareto_measures_seconds_too_and_stops_what_is_hopeless(
    made: list[TrainConfig], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("space.yaml").write_text(
        "training:\n  n_epochs: [1, 8]\n  total_timesteps: [4000, 8000]\n"
    )
    # One epoch is fast and good at once; eight are slow, and good at the end if at all.
    use(
        monkeypatch,
        lambda config, share: (
            config.learning.total_timesteps / 1000 if config.learning.update_epochs == 1 else share
        ),
        made,
    )
    said = tuned(capsys, "--objective", "pareto", "--sampler", "grid")
    found = said["samplers"]["grid"]
    front = sorted(tuple(trial["values"]) for trial in found["front"])
    fast = [(4.0, 4.0), (8.0, 8.0)]
    assert [each for each in front if each[0] >= 4] == [
        (pytest.approx(score, abs=0.01), pytest.approx(seconds)) for score, seconds in fast
    ]
    assert found["trials_by_state"]["stopped early"] >= 1
    assert found["best"]["params"] == {
        "training.n_epochs": "1",
        "training.total_timesteps": "8000",
    }
    ElementTree.fromstring(Path("tuning/base/pareto.svg").read_text())


def test_a_single_fresh_seed_decides_nothing_and_the_next_line_can_be_copied(
    made: list[TrainConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    files = [f"--config={Path.cwd()}/base.yaml", f"--search-space={Path.cwd()}/space.yaml"]
    same = [*files, "--num-trials", "1", "--fresh-seeds", "1", "--seed", "1"]
    assert main(["tune", *same, "--output-dir", "my search"]) == 0
    said = capsys.readouterr().out
    assert said.count("a single fresh seed, which shows little") == 2
    assert "better than" not in said
    assert len(made) == 3
    with contextlib.chdir("my search"):
        assert main(["tune", *same, "--output-dir", "."]) == 0
    assert len(made) == 3  # the same search
    assert "hackmatrix train --config 'my search/best.yaml'" in said


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--search-space", "nowhere.yaml"], "--search-space nowhere.yaml: no such file"),
        (["--storage", "journal.log"], "--storage journal.log: must be a URL"),
        (["--storage", "nothing://me:secret@x/y"], "--storage nothing://me:***@x/y: "),
        (["--storage", "postgresql:me:secret@x"], "--storage postgresql:***@x: must be a URL"),
        (["--storage", "no://x/y?password=secret"], "--storage no://x/y?password=***: "),
        (
            ["--storage", "postgresql+psycopg://me:secret@/x?host=/nowhere"],
            "--storage postgresql+psycopg://me:***@/x?host=/nowhere: ",
        ),
        (["--sampler", "tpee"], "must be one of tpe, random, grid"),
        (
            ["--constraint", "return_flat"],
            "argument --constraint: must be one of entropy_collapse, kl_too_high, clip_too_high, "
            "not_finite, got 'return_flat'",
        ),
        (["--output-dir", "base.yaml"], "--output-dir base.yaml: "),
    ],
)
def test_wrong_use_is_one_line(
    argv: list[str], message: str, made: list[TrainConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tune", "--config", "base.yaml", *argv]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "secret" not in error
    assert error.count("\n") == 1
    assert not made


PROCESS = f"""\
import sys
sys.path.insert(0, {str(HELPERS)!r})
from hackmatrix.research.tuning import training, worker
training.COMMAND[:] = [sys.executable, {str(HELPERS / "made_training.py")!r}]
worker.POLL = 0.05
from hackmatrix.cli.main import main
sys.exit(main(["tune", *sys.argv[1:]]))
"""


def start(*argv: str, **streams: Any) -> "subprocess.Popen[Any]":
    """A search in a process of its own, whose trainings are processes too."""
    command = [sys.executable, "-c", PROCESS, "--config", "base.yaml", "--num-seeds", "2"]
    command += ["--search-space", "space.yaml", "--fresh-seeds", "0", *argv]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, **streams)


def trials() -> list[optuna.trial.FrozenTrial]:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    storage = JournalStorage(JournalFileBackend("tuning/base/journal.log"))
    return optuna.load_study(study_name="base-tpe", storage=storage).trials


@pytest.mark.slow
@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    "how",
    [
        signal.SIGKILL,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
    ],
)
def test_a_search_that_is_ended_goes_on_with_the_same_settings(
    how: signal.Signals,
) -> None:
    gate = Path("tuning/base/trials/gate")
    gate.parent.mkdir(parents=True)
    gate.touch()
    process = start("--num-trials", "2", "--jobs", "2")
    runs = [gate.parent / f"tpe-{n}" / "metrics.jsonl" for n in (0, 1)]
    deadline = time.monotonic() + 60
    while not all(map(Path.exists, runs)) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(how)
    process.wait(60)
    assert process.returncode in (-signal.SIGKILL, 130)
    if how != signal.SIGKILL:  # the trainings are ended too
        for pid in gate.parent.glob("*.pid"):
            assert not Path(f"/proc/{pid.read_text()}").exists()
    gate.unlink()
    assert start("--num-trials", "2", "--jobs", "2").wait(60) == 0
    found = trials()
    states = [trial.state.name for trial in found]
    assert sorted(states) == ["COMPLETE", "COMPLETE", "FAIL", "FAIL"]
    ended, again = found[:2], found[2:]
    settings = [sorted(map(str, (trial.params for trial in some))) for some in (ended, again)]
    assert settings[0] == settings[1]


@pytest.mark.slow
@pytest.mark.usefixtures("made")
def test_a_training_that_is_killed_is_made_again_and_a_grid_with_a_gap_is_no_success() -> None:
    kills = Path("tuning/base/trials/kills")
    kills.parent.mkdir(parents=True)
    Path("space.yaml").write_text(SPACE.replace(", 4]", "]"))
    kills.write_text("5")  # of the two points with two epochs: one three times, the other twice

    def searched() -> tuple[int, str, str]:
        process = start("--sampler", "grid", "--no-pruning", stdout=PIPE, stderr=PIPE, text=True)
        out, errors = process.communicate(timeout=120)
        return process.returncode, out, errors

    code, out, errors = searched()
    assert code == 1
    assert out.count(": killed by SIGKILL (out of memory?); is made again\n") == 4
    assert out.count("; is made again by the next command\n") == 1
    assert "grid    3 trials (3 complete)" in out
    assert errors.startswith("hackmatrix tune: error: grid ")
    assert "was killed by SIGKILL (out of memory?), 3 times; the same command" in errors
    code, out, errors = searched()
    assert (code, errors) == (0, "")
    assert "grid    4 trials (4 complete)" in out


@pytest.mark.slow
@pytest.mark.usefixtures("made")
def test_a_database_holds_the_trials_of_workers_in_several_folders(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/trials.db"  # on several machines PostgreSQL or MySQL
    shared = ["--num-trials", "6", "--storage", database]
    folders = [Path("one/base"), Path("two/base")]  # as on two machines, under one name
    processes = [start(*shared, "--output-dir", str(folder)) for folder in folders]
    assert [process.wait(300) for process in processes] == [0, 0]
    storage = optuna.storages.RDBStorage(database)
    found = optuna.load_study(study_name="base-tpe", storage=storage).trials
    storage.engine.dispose()
    assert {trial.state.name for trial in found} <= {"COMPLETE", "PRUNED"}
    assert 6 <= len(found) <= 7
    made_there = [len(list((folder / "trials").glob("tpe-*.log"))) for folder in folders]
    assert sum(made_there) == len(found)
    reports = [json.loads((folder / "report.json").read_text()) for folder in folders]
    assert all(report["samplers"]["tpe"]["best"] is not None for report in reports)


TINY = """\
model: {hidden_dim: 8, num_layers: 1}
environment: {name: CartPole-v1, num_envs: 8}
training: {num_steps: 8, total_timesteps: 40_000}
logging: {log_interval: 10}
"""


@pytest.mark.slow
def test_trials_together_are_made_again_after_a_kill_and_are_what_train_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(TINY)
    Path("space.yaml").write_text("training:\n  lr: {low: 1.0e-4, high: 1.0e-2, log: true}\n")
    hackmatrix = [sys.executable, "-m", "hackmatrix"]
    search = [*hackmatrix, "tune", "--config", "tiny.yaml", "--search-space", "space.yaml"]
    search += ["--together", "2", "--num-trials", "3", "--num-seeds", "2", "--fresh-seeds", "2"]
    search += ["--output-dir", "tuning/base", "--no-pruning", "--seed", "1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(search, env=environment)
    folder = Path("tuning/base/trials")
    deadline = time.monotonic() + 300
    while len(list(folder.glob("tpe-*/metrics.jsonl"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    process.wait()
    done = subprocess.run(search, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    states = [trial.state.name for trial in trials()]
    assert sorted(states) == ["COMPLETE"] * 3 + ["FAIL"] * 2
    number = states.index("COMPLETE")
    alone = ["train", "--config", str(folder / f"tpe-{number}.yaml"), "--output-dir", "alone"]
    subprocess.run([*hackmatrix, *alone], env=environment, check=True, stdout=subprocess.DEVNULL)
    assert_same_run(folder / f"tpe-{number}", Path("alone"), 625)
    report = json.loads(Path("tuning/base/report.json").read_text())
    assert len(report["fresh"]["tpe"]["scores"]) == 2
    assert len(report["fresh"]["tpe"]["better_by"]) == 3
