"""The command `hackmatrix tune`, with a stand-in for the training."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
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
from hackmatrix.research.tuning import shared_process, study, worker

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


@pytest.mark.usefixtures("made")
def test_the_best_settings_are_a_file_that_trains(capsys: pytest.CaptureFixture[str]) -> None:
    said = tuned(capsys, "--num-trials", "8")
    found = said["samplers"]["tpe"]
    assert found["trials_by_state"]["complete"] + found["trials_by_state"].get("pruned", 0) == 8
    best = read_config(Path("tuning/base/best.yaml"))
    assert best["lr"] == found["best"]["params"]["training.learning_rate"]
    assert best["wandb"]  # what trials are spared, the winner is not
    assert best["num_seeds"] == 1
    assert main(["train", "--config", "tuning/base/best.yaml", "--print-config"]) == 0
    for name in ("history", "importance"):
        ElementTree.fromstring(Path(f"tuning/base/{name}.svg").read_text())
    assert json.loads(Path("tuning/base/report.json").read_text()) == said


def test_a_metric_that_no_run_has_ends_the_search(
    made: list[TrainConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["tune", "--config", "base.yaml", "--search-space", "space.yaml", "--num-trials", "8"]
    assert main([*argv, "--metric", "stats/mean_stages"]) == 2
    assert "has no metric stats/mean_stages; it has" in capsys.readouterr().err
    assert len(made) == 1


@pytest.mark.thorough
def test_the_winner_is_trained_again_with_seeds_that_no_trial_has_had(
    made: list[TrainConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    said = tuned(capsys, "--num-trials", "3")
    trials, again = made[:3], made[3:]
    assert all(config.run.seeds == range(2) for config in trials)
    assert [config.run.seeds for config in again] == [range(10_000, 10_003)] * 2
    assert again[0].learning.lr == 5e-3  # of the file
    assert (
        again[1].learning.lr == said["samplers"]["tpe"]["best"]["params"]["training.learning_rate"]
    )
    mean, low, high = said["fresh"]["tpe"]["better_by"]
    assert low == pytest.approx(mean) == pytest.approx(high)  # pairs differ by the same
    assert mean == pytest.approx(4 - abs(again[1].learning.lr - 0.001) * 1000, abs=0.02)
    assert mean > 0


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


@pytest.mark.thorough
def test_random_and_grid_stand_beside_tpe(
    made: list[TrainConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    for sampler in ("tpe", "random"):
        tuned(capsys, "--num-trials", "3", "--sampler", sampler)
    said = tuned(capsys, "--num-trials", "100", "--sampler", "grid", "--no-pruning")
    assert {name: each["trials"] for name, each in said["samplers"].items()} == {
        "tpe": 3,
        "random": 3,
        "grid": 6,  # 2 points x 3 choices, each once
    }
    in_grid = [config for config in made if config.run.num_seeds == 2][6:]
    assert len({(config.learning.lr, config.learning.update_epochs) for config in in_grid}) == 6
    scores = {name: said["fresh"][name]["score"][0] for name in said["samplers"]}
    assert said["chosen"] == max(scores, key=scores.__getitem__)


def test_failures_are_recorded_and_go_on(
    made: list[TrainConfig], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(config: TrainConfig, share: float) -> float:
        return math.nan if config.learning.update_epochs == 2 else peak(config, share)

    use(monkeypatch, failing, made)
    said = tuned(capsys, "--sampler", "grid", "--no-pruning")
    found = said["samplers"]["grid"]
    assert found["trials_by_state"] == {"complete": 4, "fail": 2}
    assert set(found["failures"].values()) == {"out of memory"}


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


@pytest.mark.usefixtures("made")
def test_settings_that_do_not_go_together_are_a_failed_trial(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("space.yaml").write_text("training:\n  num_minibatches: [3, 4]\n")
    said = tuned(capsys, "--sampler", "grid")
    found = said["samplers"]["grid"]
    assert found["trials_by_state"] == {"complete": 1, "fail": 1}
    (reason,) = found["failures"].values()
    assert reason.startswith("--num-minibatches 3 must divide")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("constraints", "can_win"),
    [
        ([], True),
        (["--constraint", "kl_too_high", "clip_too_high"], True),
        (["--constraint", "kl_too_high", "--constraint", "entropy_collapse"], False),
    ],
)
def test_a_run_that_breaks_a_constraint_is_not_the_best(
    constraints: list[str],
    can_win: bool,
    made: list[TrainConfig],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def collapsing(config: TrainConfig, share: float) -> float:
        if config.learning.update_epochs == 4:
            return 1000.0 if share == 1 else -1000.0  # ends highest, after an alarm
        return peak(config, share)

    use(monkeypatch, collapsing, made)
    said = tuned(capsys, "--sampler", "grid", "--no-pruning", *constraints)
    ends = {"complete": 6} | ({} if can_win else {"broke a constraint": 2})
    assert said["samplers"]["grid"]["trials_by_state"] == ends
    best = said["samplers"]["grid"]["best"]
    assert (best["params"]["training.n_epochs"] == "4") == can_win
    assert (best["values"][0] < 11) != can_win


def test_a_run_whose_metrics_are_not_finite_is_never_the_best(
    made: list[TrainConfig], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaking(config: TrainConfig, share: float) -> float:
        return (
            -math.inf if config.learning.update_epochs == 4 and share < 0.5 else peak(config, share)
        )

    use(monkeypatch, breaking, made)
    said = tuned(capsys, "--sampler", "grid", "--no-pruning", "--constraint", "kl_too_high")
    ends = {"complete": 6, "broke a constraint": 2}
    assert said["samplers"]["grid"]["trials_by_state"] == ends


@pytest.mark.usefixtures("made")
def test_a_constraint_that_is_no_critical_alarm_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["tune", "--constraint", "return_flat"]) == 2
    assert capsys.readouterr().err == (
        "hackmatrix tune: error: argument --constraint: must be one of entropy_collapse, "
        "kl_too_high, clip_too_high, not_finite, got 'return_flat'\n"
    )


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


def test_the_settings_of_the_file_are_the_best_if_no_winner_did_better(
    made: list[TrainConfig], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, lambda config, share: -abs(config.learning.lr - 5e-3) * share, made)
    said = tuned(capsys, "--num-trials", "2")
    assert said["chosen"] == "default"
    assert said["fresh"]["tpe"]["score"][0] < said["fresh"]["default"]["score"][0]
    assert read_config(Path("tuning/base/best.yaml"))["lr"] == 5e-3


@pytest.mark.usefixtures("made")
def test_a_single_fresh_seed_decides_nothing_and_the_next_line_can_be_copied(
    capsys: pytest.CaptureFixture[str],
) -> None:
    argv = ["--num-trials", "1", "--fresh-seeds", "1", "--output-dir", "my search", "--seed", "1"]
    assert main(["tune", "--config", "base.yaml", "--search-space", "space.yaml", *argv]) == 0
    said = capsys.readouterr().out
    assert said.count("a single fresh seed, which shows little") == 2
    assert "better than" not in said
    assert "hackmatrix train --config 'my search/best.yaml'" in said


def test_a_search_in_the_current_folder_is_named_after_it(
    made: list[TrainConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    tuned(capsys, "--num-trials", "1", "--fresh-seeds", "0", "--output-dir", ".")
    tuned(
        capsys, "--num-trials", "1", "--fresh-seeds", "0", "--output-dir", f"../{Path.cwd().name}"
    )
    assert len(made) == 1


def test_half_a_line_of_the_journal_is_dropped_and_a_damaged_journal_is_told(
    made: list[TrainConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    tuned(capsys, "--num-trials", "1", "--fresh-seeds", "0")
    journal = Path("tuning/base/journal.log")
    with journal.open("ab") as file:  # of a write that a full disk has cut
        file.write(b'{"op_code":8,"worker')
    assert (
        tuned(capsys, "--num-trials", "3", "--fresh-seeds", "0")["samplers"]["tpe"]["trials"] == 3
    )
    assert (
        tuned(capsys, "--num-trials", "3", "--fresh-seeds", "0")["samplers"]["tpe"]["trials"] == 3
    )
    assert len(made) == 3
    journal.write_bytes(b"nonsense\n" + journal.read_bytes())
    again = ["--search-space", "space.yaml", "--num-seeds", "2"]
    assert main(["tune", "--config", "base.yaml", *again]) == 2
    assert "journal.log: is no journal of a search, or a damaged one\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--search-space", "nowhere.yaml"], "--search-space nowhere.yaml: no such file"),
        (["--storage", "journal.log"], "--storage journal.log: must be a URL"),
        (["--storage", "postgresql+psycopg://me@/x?host=/nowhere"], "--storage postgresql+psycopg"),
        (["--storage", "nothing://x"], "--storage nothing://x: "),
        (["--storage", "nothing://me:secret@x/y"], "--storage nothing://me:***@x/y: "),
        (["--storage", "postgresql:me:secret@x"], "--storage postgresql:***@x: must be a URL"),
        (["--storage", "no://x/y?password=secret"], "--storage no://x/y?password=***: "),
        (
            ["--storage", "postgresql+psycopg://me:secret@/x?host=/nowhere"],
            "--storage postgresql+psycopg://me:***@/x?host=/nowhere: ",
        ),
        (["--sampler", "tpee"], "must be one of tpe, random, grid"),
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


@pytest.mark.usefixtures("made")
def test_a_search_of_something_else_does_not_go_on_in_the_same_folder(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tuned(capsys, "--num-trials", "1")
    Path("base.yaml").write_text("training:\n  lr: 4.0e-3\n  total_timesteps: 8000\n")
    assert main(["tune", "--config", "base.yaml", "--search-space", "space.yaml"]) == 2
    assert "choose another --output-dir" in capsys.readouterr().err


@pytest.mark.thorough
@pytest.mark.parametrize(
    "line",
    [
        "hyperparameter_search.py --search-space config/search_space.yaml --num-trials 20",
        "optuna_search.py --num-trials 50 --pruning",
    ],
)
def test_the_scripts_of_the_original_have_their_flags(line: str, tmp_path: Path) -> None:
    script, *flags = line.split()
    command = [sys.executable, str(ROOT / "scripts" / script), *flags]
    command += ["--config", "config/my_experiment.yaml"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 2  # the flags are understood, the file is missing
    error = "hackmatrix tune: error: --config config/my_experiment.yaml: No such"
    assert result.stderr.startswith(error)


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


@pytest.mark.thorough
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


@pytest.mark.thorough
@pytest.mark.usefixtures("made")
def test_a_training_that_is_killed_is_made_again_and_a_grid_with_a_gap_is_no_success() -> None:
    kills = Path("tuning/base/trials/kills")
    kills.parent.mkdir(parents=True)
    kills.write_text("5")  # of the two points with two epochs: one three times, the other twice

    def searched() -> tuple[int, str, str]:
        process = start("--sampler", "grid", "--no-pruning", stdout=PIPE, stderr=PIPE, text=True)
        out, errors = process.communicate(timeout=120)
        return process.returncode, out, errors

    code, out, errors = searched()
    assert code == 1
    assert out.count(": killed by SIGKILL (out of memory?); is made again\n") == 4
    assert out.count("; is made again by the next command\n") == 1
    assert "grid    5 trials (5 complete)" in out
    assert errors.startswith("hackmatrix tune: error: grid ")
    assert "was killed by SIGKILL (out of memory?), 3 times; the same command" in errors
    code, out, errors = searched()
    assert (code, errors) == (0, "")
    assert "grid    6 trials (6 complete)" in out


@pytest.mark.slow
@pytest.mark.usefixtures("made")
def test_searches_of_several_processes_share_the_trials() -> None:
    processes = [start("--num-trials", "6", "--jobs", "2") for _ in range(2)]
    assert [process.wait(120) for process in processes] == [0, 0]
    found = trials()
    assert {trial.state.name for trial in found} <= {"COMPLETE", "PRUNED"}
    assert 6 <= len(found) <= 7  # both may ask for the last one at the same moment
    assert len({str(trial.params) for trial in found}) == len(found)


@pytest.fixture
def database() -> Iterator[str]:
    """The URL of an empty database of a PostgreSQL server that is started for the test."""
    pytest.importorskip("psycopg")
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs:
        pytest.skip("there is no PostgreSQL server")
    folder = tempfile.mkdtemp()  # pytest's folders can be entered by their owner alone
    as_user: list[str] = []
    if os.geteuid() == 0:  # the server refuses to run as root
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        shutil.chown(folder, "postgres", "postgres")

    def server(program: str, *arguments: str) -> None:
        command = [*as_user, str(programs[-1] / program), *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)

    data, log = f"{folder}/data", f"{folder}/log"
    server("initdb", "-D", data, "-U", "me", "-A", "trust", "--no-sync")
    server("pg_ctl", "-D", data, "-l", log, "-w", "-o", f"-k {folder} -h ''", "start")
    try:
        yield f"postgresql+psycopg://me@/postgres?host={folder}"
    finally:
        server("pg_ctl", "-D", data, "-m", "fast", "-w", "stop")
        shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.usefixtures("made")
def test_a_database_holds_the_trials_of_workers_in_several_folders(database: str) -> None:
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
