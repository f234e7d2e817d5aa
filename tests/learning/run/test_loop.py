"""A run from its first line to its files, on a tiny environment."""

import dataclasses
import errno
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import probe_environments as probes
import pytest
import yaml
from interrupted_runs import after_update
from sharing_trainer import SharingTrainer
from small_runs import (
    assert_same_run,
    config_in,
    rows_of,
    run_of,
    updates_of,
    without_speed,
)
from suites import first_quickly
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from hackmatrix.agents.networks.policy import load_policy
from hackmatrix.core.errors import UserError
from hackmatrix.core.files import write_manifest
from hackmatrix.learning.run.loop import End, MakeEvaluate
from hackmatrix.learning.run.schedule import Chunks, note_on_learning_rate
from hackmatrix.learning.run.snapshots import named_leaves
from hackmatrix.learning.run.start import find_start
from hackmatrix.learning.settings.config import TrainOptions
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.learning.settings.resolve import resolve
from hackmatrix.learning.trainer.trainer import Trainer, TrainState
from hackmatrix.runs.checkpoints import load_checkpoint
from hackmatrix.runs.trackers import Trackers

pytestmark = pytest.mark.usefixtures("shared_programs")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run of seven updates that nothing met."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hackmatrix.learning.run.loop.Trainer", SharingTrainer)
        yield run_of(tmp_path_factory.mktemp("whole")).run


@pytest.fixture
def mine(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, for a test to go on from."""
    return Path(shutil.copytree(whole, tmp_path / "mine"))


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def resumed(path: Path | str, **options: Any) -> TrainOptions:
    return TrainOptions(resume=str(path), **options)


def test_a_run_leaves_a_folder_that_explains_itself(tmp_path: Path) -> None:
    output = io.StringIO()
    outcome = run_of(tmp_path, output=output)
    run = tmp_path / "mine"
    assert outcome.end is End.FINISHED
    assert (outcome.run, outcome.updates) == (run, 7)
    assert outcome.params == run / "final_params.npz"
    assert outcome.checkpoint == run / "checkpoints" / "7"
    params = [f"{name}.{kind}" for name in ("final_params", "params_7") for kind in ("json", "npz")]
    others = [".lock", "checkpoints", "config.yaml", "log.txt", "metrics.jsonl", "starts.jsonl"]
    assert sorted(path.name for path in run.iterdir()) == sorted([*params, *others])
    assert yaml.safe_load((run / "config.yaml").read_text())["environment"]["num_envs"] == 8
    assert resolve({}, read_config(run / "config.yaml"))[0] == config_in(tmp_path)

    rows = rows_of(run)
    assert [row["update"] for row in rows] == [3, 6, 7]
    assert [row["timesteps"] for row in rows] == [192, 384, 448]
    for row in rows:
        assert row["train/steps_per_second"] > 0
        assert row["train/learning_rate"] == 2.5e-4
        assert "stats/mean_stage" not in row

    lines = output.getvalue().splitlines()
    assert lines[0].startswith("compiling for ")
    assert lines[2] == f"run {run}"
    assert [line.split()[1] for line in lines if line.startswith("update")] == ["3/7", "6/7", "7/7"]
    assert f"checkpoint: update 7 saved to {run / 'checkpoints' / '7'}" in lines
    assert [line[21:] for line in (run / "log.txt").read_text().splitlines()] == lines

    policy = load_policy(run)
    assert policy.about["update"] == 7
    assert policy.about["config"]["lr"] == 2.5e-4
    config = config_in(tmp_path)
    trainer = SharingTrainer(probes.Grid(), config.learning, config.network)
    expected = trainer.run(trainer.init(0), 7).params
    jax.tree.map(np.testing.assert_array_equal, policy.params, jax.device_get(expected))


@pytest.mark.thorough
@pytest.mark.parametrize("ahead", [1, 5])
def test_the_length_of_calls_changes_neither_metrics_nor_params(
    ahead: int, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hackmatrix.learning.run.schedule.updates_per_call", lambda *_: ahead)
    run_of(tmp_path, save_interval=4)
    assert updates_of(tmp_path / "mine") == [4, 7]
    assert_same_run(whole, tmp_path / "mine", 7)


# --- signals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", first_quickly([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
def test_a_signal_ends_the_run_between_updates_and_what_follows_is_as_if_it_had_not(
    number: signal.Signals, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, folder = io.StringIO(), tmp_path / "mine"

    def send(_: TrainState) -> None:
        for _ in range(2 if number is signal.SIGHUP else 1):  # a second hangup does not hurry it
            os.kill(os.getpid(), number)

    with monkeypatch.context() as patch:
        after_update(patch, 4, send)
        outcome = run_of(tmp_path, output=output)
    assert (outcome.end, outcome.signal, outcome.updates) == (End.SIGNAL, number, 5)
    assert outcome.params == folder / "params_5.npz"
    assert updates_of(folder) == [5]
    assert "stopping after this update" in output.getvalue()

    assert run_of(tmp_path, resumed(folder)).end is End.FINISHED
    assert_same_run(whole, folder, 7)


def test_a_hangup_that_is_ignored_as_by_nohup_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_update(monkeypatch, 4, lambda _: os.kill(os.getpid(), signal.SIGHUP))
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        outcome = run_of(tmp_path)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert (outcome.end, outcome.signal, outcome.updates) == (End.FINISHED, None, 7)


def stop_at_once(patch: pytest.MonkeyPatch) -> None:
    """A signal arrives before the first update."""
    run = Trainer.run

    def stopped(self: Trainer, state: TrainState, count: int) -> TrainState:
        os.kill(os.getpid(), signal.SIGTERM)
        return run(self, state, count)

    patch.setattr(Trainer, "run", stopped)


def test_a_signal_before_the_first_update_leaves_nothing_to_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_at_once(monkeypatch)
    outcome = run_of(tmp_path)
    assert (outcome.end, outcome.updates, outcome.params) == (End.SIGNAL, 0, None)
    assert updates_of(tmp_path / "mine") == []


# --- a run goes on -------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_resumed_run_is_the_run_that_was_never_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What kills leave: the checkpoint of update 5 without its params, rows and a file beyond it.
    settings = {"total_timesteps": 12 * 64, "save_interval": 5, "params_average": 1.0}
    unharmed = run_of(tmp_path / "whole", **settings).run
    folder = Path(shutil.copytree(unharmed, tmp_path / "killed" / "mine"))
    for update in (10, 12):
        shutil.rmtree(folder / "checkpoints" / str(update))
    for path in folder.glob("*params*"):
        path.unlink()
    (folder / "checkpoints" / ".saving-10-1").mkdir()
    with (folder / "metrics.jsonl").open("a") as metrics:
        metrics.write('{"update": 12, "train/ent')

    monkeypatch.setattr("hackmatrix.learning.run.schedule.updates_per_call", lambda *_: 2)
    assert run_of(tmp_path / "killed", resumed(folder)).updates == 12
    assert updates_of(folder) == [5, 10, 12]
    assert_same_run(unharmed, folder, 12)
    params, expected = ({p.name for p in run.glob("*params*")} for run in (folder, unharmed))
    assert params == expected
    assert not (folder / "checkpoints" / ".saving-10-1").exists()


@pytest.mark.thorough
def test_a_resumed_run_can_begin_to_average_its_params(mine: Path) -> None:
    output = io.StringIO()
    changes = {"total_timesteps": 9 * 64, "params_average": 1.0}
    run_of(mine.parent, resumed(mine), output=output, **changes)
    assert "changed since: params_average None -> 1.0" in output.getvalue()
    before, _ = load_checkpoint(mine / "checkpoints" / "7")
    after, _ = load_checkpoint(mine / "checkpoints" / "9")
    assert not any(name.startswith("averages.") for name in before)
    for name, exported in named_leaves(load_policy(mine / "final_params.npz").params):
        np.testing.assert_array_equal(exported, after[f"averages.{name}"])
        change = np.abs(exported - before[f"params.{name}"]).sum()
        whole_change = np.abs(after[f"params.{name}"] - before[f"params.{name}"]).sum()
        assert 0 < change < 0.3 * whole_change  # two of nine updates


def test_every_start_of_a_run_is_recorded(mine: Path) -> None:
    run_of(mine.parent, resumed(mine), total_timesteps=9 * 64)
    first, second = map(json.loads, (mine / "starts.jsonl").read_text().splitlines())
    assert (first["update"], second["update"]) == (0, 7)
    assert first["command"] == sys.argv
    assert first["devices"] == 1
    assert first["device"] == jax.devices()[0].device_kind
    assert first["versions"]["jax"] == jax.__version__
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    assert first["commit"] is None or first["commit"].rstrip("+") == commit.strip()


def test_a_finished_run_that_is_resumed_stays_as_it_is(mine: Path) -> None:
    before, output = (mine / "metrics.jsonl").read_bytes(), io.StringIO()
    outcome = run_of(mine.parent, resumed(mine), output=output)
    assert (outcome.end, outcome.updates) == (End.FINISHED, 7)
    assert outcome.params == mine / "final_params.npz"
    assert outcome.params.exists()
    assert "a higher --total-timesteps goes on" in output.getvalue()
    assert (mine / "metrics.jsonl").read_bytes() == before


@pytest.mark.thorough
def test_an_older_checkpoint_is_resumed_only_where_what_came_after_may_go(tmp_path: Path) -> None:
    folder = run_of(tmp_path, save_interval=3).run
    older = str(folder / "checkpoint_3.pkl")  # a name as the original's
    before = contents(folder)
    with pytest.raises(UserError, match=r"newer checkpoints than 3 \(6, 7\): .* --rewind drops"):
        run_of(tmp_path, resumed(older))
    assert contents(folder) == before

    run_of(tmp_path, resumed(older, run_name="branch"))
    assert updates_of(tmp_path / "branch") == [3, 6, 7]
    assert_same_run(folder, tmp_path / "branch", 7)
    assert updates_of(folder) == [3, 6, 7]

    run_of(tmp_path, resumed(older, rewind=True), total_timesteps=5 * 64)
    assert updates_of(folder) == [3, 5]
    assert [row["update"] for row in rows_of(folder)] == [3, 5]
    assert not (folder / "params_7.npz").exists()


@pytest.mark.parametrize(
    ("moved", "options", "changes", "run"),
    [
        (None, {"resume_run": "mine"}, {}, "mine"),
        (None, {"resume": "mine", "output_dir": Path("there")}, {}, "there"),
        (
            None,
            {"resume": "mine", "run_name": "mine"},
            {"checkpoint_dir": Path("other")},
            "other/mine",
        ),
        (("mine", "checkpoints/1"), {"resume": "checkpoints/1"}, {}, "checkpoints/1"),
        (("mine/checkpoints/7", "copy"), {"resume": "copy", "run_name": "new"}, {}, "new"),
    ],
)
def test_a_run_goes_on_where_that_is_asked_for(
    moved: tuple[str, str] | None,
    options: dict[str, Any],
    changes: dict[str, Any],
    run: str,
    mine: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(mine.parent)
    if moved is not None:
        os.renames(*moved)
    outcome = run_of(Path(), TrainOptions(**options), total_timesteps=9 * 64, **changes)
    assert (outcome.run.resolve(), outcome.updates) == (mine.parent / run, 9)
    assert updates_of(Path(run))[-1] == 9
    if moved is None and run != "mine":
        assert updates_of(mine) == [7]


@pytest.mark.slow
def test_with_other_games_the_params_go_on_and_the_optimizer_is_warned_of(mine: Path) -> None:
    changes = {"num_envs": 16, "total_timesteps": 7 * 64 + 5 * 128}
    steps = 4 * 4  # of the optimizer in an update
    output = io.StringIO()
    run = run_of(mine.parent, resumed(mine, run_name="more"), output=output, **changes).run
    text = output.getvalue()
    assert "changed since: num_envs 8 -> 16\n" in text
    assert "the games are others and start anew\n" in text
    assert "warning: the optimizer's state is poorly calibrated" in text
    assert text.index("--reset-optimizer") < text.index("compiled in")  # before anything runs
    arrays, facts = load_checkpoint(run / "checkpoints" / "12")
    assert arrays["games.episode_length"].shape == (16,)
    assert facts.timesteps == 7 * 64 + 5 * 128
    assert [row["timesteps"] for row in rows_of(run)] == [192, 384, 448, 704, 1088]
    assert arrays["opt_state.1.count"] == 12 * steps

    options, output = resumed(mine, run_name="reset", reset_optimizer=True), io.StringIO()
    run = run_of(mine.parent, options, output=output, **changes).run
    assert "the optimizer starts afresh\n" in output.getvalue()
    assert "poorly" not in output.getvalue()
    assert load_checkpoint(run / "checkpoints" / "12")[0]["opt_state.1.count"] == 5 * steps


def test_the_learning_rate_of_a_resumed_run_goes_by_its_timesteps(tmp_path: Path) -> None:
    linear = {"lr": 0.1, "lr_schedule": "linear", "log_interval": 1}
    folder, output = run_of(tmp_path, **linear).run, io.StringIO()
    start = find_start(resumed(folder), tmp_path)

    def learning(**changes: Any) -> Any:
        return resolve(changes, None, start.settings)[0].learning

    assert start.course(learning(num_steps=16, total_timesteps=704)) == (128, 704, 7, 448)
    # One that does not jump by itself is not mentioned.
    for changes in ({}, {"total_timesteps": 704, "lr": 0.2}, {"lr_schedule": "constant"}):
        assert note_on_learning_rate(learning(**changes), start) is None

    run_of(tmp_path, resumed(folder), output=output, total_timesteps=704)
    said = (
        "learning rate: 0.0143 before, 0.0364 from here on, as the schedule linear now spans 704 "
        "steps, not 448; --lr-schedule constant --lr 0.0143 keeps it"
    )
    assert said in " ".join(output.getvalue().split())
    rates = [row["train/learning_rate"] for row in rows_of(folder)]
    assert rates[:7] == pytest.approx([0.1 * (1 - update / 7) for update in range(7)])
    assert rates[7:] == pytest.approx([0.1 * (1 - update / 11) for update in range(7, 11)])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_dim": 16}, "hidden_dim was 8 in the checkpoint and is 16 now"),
        ({"num_layers": 2}, "num_layers was 1 in the checkpoint and is 2 now"),
        ({"activation": "tanh"}, "activation was relu in the checkpoint and is tanh now"),
        ({"observation": "classic"}, "observation was full in the checkpoint and is classic now"),
        ({"normalize_observations": True}, "--normalize-observations was off .* and is on now"),
        ({"num_envs": 9, "num_steps": 3}, "--num-minibatches 4 must divide|3 devices"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_changes(
    mine: Path, changes: dict[str, Any], message: str
) -> None:
    before = contents(mine)
    for options in (resumed(mine), resumed(mine, run_name="other")):
        with pytest.raises(UserError, match=message):
            run_of(mine.parent, options, **changes)
    assert contents(mine) == before
    assert [path.name for path in mine.parent.iterdir()] == ["mine"]


@pytest.mark.thorough
def test_exported_params_start_a_new_run(mine: Path) -> None:
    folder, output = mine.parent, io.StringIO()
    options = resumed(mine / "final_params.npz", run_name="warm")
    outcome = run_of(folder, options, output=output, total_timesteps=64)
    assert "optimizer, normalisation, games and counters start afresh\n" in output.getvalue()
    assert outcome.updates == 1
    begun, _ = load_checkpoint(folder / "warm" / "checkpoints" / "0")
    exported = dict(named_leaves({"params": load_policy(mine).params}))
    assert exported.keys() == {name for name in begun if name.startswith("params.")}
    for name, array in exported.items():
        np.testing.assert_array_equal(begun[name], array, err_msg=name)
    for changes, message in (
        ({"hidden_dim": 16}, r"Dense_0.bias is \[8\], .* wants \[16\]"),
        ({"activation": "tanh"}, "was trained with --activation relu"),
        ({"normalize_observations": True}, "exported params read observations as they are"),
    ):
        with pytest.raises(UserError, match=message):
            run_of(folder, resumed(mine / "final_params.npz", run_name="other"), **changes)
    assert not (folder / "other").exists()


@pytest.mark.thorough
@pytest.mark.parametrize(("source", "begun"), [("checkpoints/7", 7), ("final_params.npz", 0)])
def test_a_run_in_a_new_folder_keeps_what_it_began_with(
    source: str, begun: int, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = mine.with_name("new")
    with monkeypatch.context() as patch:
        stop_at_once(patch)
        options = resumed(mine / source, run_name="new")
        outcome = run_of(mine.parent, options, total_timesteps=9 * 64)
    assert (outcome.end, outcome.updates) == (End.SIGNAL, begun)
    assert updates_of(new) == [begun]
    jax.tree.map(np.testing.assert_array_equal, *(load_policy(run).params for run in (mine, new)))
    run_of(mine.parent, resumed(new))
    assert updates_of(new) == [begun, 9]


@pytest.mark.thorough
def test_what_a_resumed_run_was_last_asked_for_outlives_a_kill(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> TrainState:
        raise SystemExit  # stands for a kill after the folder was prepared

    output = io.StringIO()
    changes = {"total_timesteps": 9 * 64, "normalize_rewards": False}
    with monkeypatch.context() as patch:
        patch.setattr(Chunks, "advance", killed)
        with pytest.raises(SystemExit):
            run_of(mine.parent, resumed(mine), output=output, **changes)
    assert "values were learned in other units" in output.getvalue()
    assert run_of(mine.parent, resumed(mine)).updates == 9
    assert rows_of(mine)[-2]["train/reward_scale"] != 1  # of update 7
    assert rows_of(mine)[-1]["train/reward_scale"] == 1


@pytest.mark.thorough
def test_each_file_of_a_checkpoint_is_hashed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, _ = scored(1.0, 3.0, 5.0, 0.0)
    run = run_of(tmp_path, make_evaluate=make, eval_interval=2).run
    folder = run / "checkpoints"
    copy = Path(shutil.copytree(folder / "4", tmp_path / "copy"))
    hashed: list[Path] = []
    digest = hashlib.file_digest

    def counted(file: Any, name: str) -> Any:
        hashed.append(Path(file.name))
        return digest(file, name)

    monkeypatch.setattr("hackmatrix.core.files.hashlib.file_digest", counted)
    for path, options in (
        (copy, resumed(copy, run_name="other")),
        (folder / "4", resumed(folder / "4", rewind=True)),
    ):
        hashed.clear()
        run_of(tmp_path, options, eval_interval=None, total_timesteps=5 * 64)
        expected = [p for p in path.rglob("*") if p.is_file() and p.name != "manifest.json"]
        assert len(expected) > 3
        assert sorted(p for p in hashed if p.is_relative_to(path)) == sorted(expected)
        assert len(hashed) == len(set(hashed))
    # The run has gone back: update 4 is the best again.
    best, of_update = (load_policy(run / f"{name}.npz") for name in ("best_params", "params_4"))
    assert best.about["update"] == 4
    jax.tree.map(np.testing.assert_array_equal, best.params, of_update.params)


@pytest.mark.thorough
def test_a_checkpoint_of_a_version_that_knew_of_one_agent_is_resumed(mine: Path) -> None:
    file = mine / "checkpoints" / "7" / "facts.json"
    facts = json.loads(file.read_text())
    assert facts["format"] == 1
    del facts["config"]["num_seeds"]
    file.write_text(json.dumps(facts))
    write_manifest(file.parent)
    with pytest.raises(UserError, match="holds 1 agents, --num-seeds asks for 2"):
        run_of(mine.parent, resumed(mine), num_seeds=2)
    assert run_of(mine.parent, resumed(mine), total_timesteps=9 * 64).updates == 9


def test_a_damaged_checkpoint_is_refused_and_the_one_before_it_offered(tmp_path: Path) -> None:
    folder = run_of(tmp_path, save_interval=3).run
    for update, before in ((7, 6), (6, 3), (3, None)):
        facts = folder / "checkpoints" / str(update) / "facts.json"
        facts.write_text(facts.read_text().replace("Grid", "grid") + " ")
        hint = "there is no whole checkpoint before it"
        if before is not None:
            hint = f"--resume {folder / 'checkpoints' / str(before)} --rewind"
        with pytest.raises(UserError, match=f"{update} is damaged: the file facts.json .*{hint}"):
            run_of(tmp_path, resumed(facts.parent, rewind=True))
    with pytest.raises(UserError, match="7 is damaged: "):
        run_of(tmp_path, resumed(folder))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"resume": "nowhere"}, "--resume nowhere: there is no such file or folder"),
        ({"resume": "mine/checkpoint_4.pkl"}, "has no checkpoint 4; there are 7"),
        ({"resume": "mine/checkpoints/4"}, "there is no such file or folder"),
        ({"resume": "mine/config.yaml"}, "is neither a run's folder, nor a checkpoint, nor a file"),
        ({"resume": "empty"}, "empty has no checkpoint"),
        ({"resume": "mine/params_9.npz"}, "mine has no params of update 9; there are 7"),
        ({"resume_run": "yours"}, "--resume-run yours: there is no run"),
    ],
)
def test_what_can_not_be_resumed_is_said(
    options: dict[str, str], message: str, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(mine.parent)
    Path("empty").mkdir()
    with pytest.raises(UserError, match=message):
        run_of(Path(), TrainOptions(**options, run_name="other"))


@pytest.mark.parametrize("name", ["checkpoint.pkl", "checkpoint_7.pt", "checkpoint_7.pkl", ""])
def test_names_of_old_are_understood(whole: Path, name: str) -> None:
    for folder in (whole, whole / "checkpoints"):
        start = find_start(resumed(folder / name), whole.parent)
        assert start.checkpoint is not None
        assert start.checkpoint.path == whole / "checkpoints" / "7"


@pytest.mark.thorough
def test_a_run_that_was_killed_before_its_first_checkpoint_begins_again(
    mine: Path, whole: Path
) -> None:
    shutil.rmtree(mine / "checkpoints")
    for path in mine.glob("*params*"):
        path.unlink()
    output = io.StringIO()
    run_of(mine.parent, resumed(mine), output=output)
    assert f"{mine} has no checkpoint yet: it starts from its beginning" in output.getvalue()
    assert_same_run(whole, mine, 7)


def test_params_of_a_run_without_checkpoints_are_offered(mine: Path) -> None:
    shutil.rmtree(mine / "checkpoints")
    for params in ("final_params.npz", "params_7.npz"):
        with pytest.raises(UserError, match=f"no checkpoint; .*: --resume .*{params}"):
            run_of(mine.parent, resumed(mine, run_name="other"))
        (mine / params).unlink()


def test_an_existing_run_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.yaml").touch()
    with pytest.raises(UserError, match="exists: choose another --run-name"):
        run_of(tmp_path)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["config.yaml"]


# --- checkpoints and evaluations -----------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("interval", "updates"),
    [
        ({"save_interval_timesteps": 100}, [2, 4, 6, 7]),
        ({"save_interval_minutes": 1e-9, "keep_checkpoints": 100}, [1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_checkpoints_come_by_timesteps_or_by_the_clock(
    interval: dict[str, Any], updates: list[int], tmp_path: Path
) -> None:
    run_of(tmp_path, **interval)
    assert updates_of(tmp_path / "mine") == updates


def test_a_disk_that_is_full_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: Any, **__: Any) -> None:
        raise ValueError("RESOURCE_EXHAUSTED: Error writing ...: No space left on device")

    monkeypatch.setattr(ocp.Checkpointer, "save", no_space)
    output = io.StringIO()
    outcome = run_of(tmp_path, output=output, save_interval=3)
    assert (outcome.updates, outcome.saved) == (7, False)
    reason = "can't be written: No space left"
    for update in (3, 6, 7):
        assert output.getvalue().count(f"the checkpoint of update {update} {reason}") == 1
    assert [path for path in outcome.run.rglob("*") if ".saving-" in path.name] == []


def test_a_disk_that_is_full_at_the_very_end_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("hackmatrix.runs.exports.write_pair", no_space)
    output = io.StringIO()
    outcome = run_of(tmp_path, output=output)
    assert (outcome.end, outcome.saved) == (End.FINISHED, False)
    assert outcome.params == outcome.run / "params_7.npz"
    assert "warning: final_params can't be written: No space left" in output.getvalue()


def scored(*scores: float) -> tuple[MakeEvaluate, list[Any]]:
    """Evaluations with these scores one after the other, and the params that they see."""
    seen: list[Any] = []

    def evaluate(params: Any) -> dict[str, float]:
        seen.append(params)
        return {"mean_return": scores[len(seen) - 1]}

    return lambda *_: evaluate, seen


def test_the_best_checkpoint_is_the_one_that_was_evaluated(whole: Path, tmp_path: Path) -> None:
    make, seen = scored(1.0, 3.0, 2.0, 0.0)
    output = io.StringIO()
    outcome = run_of(
        tmp_path, output=output, make_evaluate=make, eval_interval=2, keep_checkpoints=1
    )
    run = tmp_path / "mine"
    assert updates_of(run) == [4, 7]
    assert outcome.best == run / "checkpoints" / "4"
    arrays, facts = load_checkpoint(run / "checkpoints" / "4")
    assert facts.evaluation == {"mean_return": 3.0}
    kernel = arrays["params.params.Dense_0.kernel"]
    np.testing.assert_array_equal(kernel, seen[1]["params"]["Dense_0"]["kernel"])
    best = load_policy(run / "best_params.npz")
    np.testing.assert_array_equal(best.params["params"]["Dense_0"]["kernel"], kernel)
    assert best.about["evaluation"] == {"mean_return": 3.0}
    rows = rows_of(run)
    evaluated = {row["update"]: row["eval/mean_return"] for row in rows if len(row) == 3}
    assert evaluated == {2: 1.0, 4: 3.0, 6: 2.0, 7: 0.0}
    assert "evaluation: update 4: mean_return 3, the best\n" in output.getvalue()
    # It changes nothing.
    trained = [row for row in rows if "train/entropy" in row]
    assert without_speed(trained) == without_speed(rows_of(whole))


def test_an_evaluation_that_is_not_finite_is_never_the_best(tmp_path: Path) -> None:
    make, _ = scored(float("nan"), 1.0, float("nan"), 0.0)
    outcome = run_of(tmp_path, make_evaluate=make, eval_interval=2)
    assert outcome.best == outcome.run / "checkpoints" / "4"


# --- what goes wrong in learning -----------------------------------------------------------------


def poisoned(part: str) -> Callable[[TrainState], TrainState]:
    """Makes NaN of the floats in a part of a state."""

    def replaced(tree: Any) -> Any:
        nan = jax.tree.map(
            lambda x: x * jnp.nan if x.dtype == jnp.float32 else x, getattr(tree, part)
        )
        return tree.replace(**{part: nan})

    def poison(state: TrainState) -> TrainState:
        if hasattr(state.learner, part):
            return dataclasses.replace(state, learner=replaced(state.learner))
        changed: TrainState = replaced(state)
        return changed

    return poison


def test_nan_params_are_told_and_never_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_update(monkeypatch, 4, poisoned("params"))
    output = io.StringIO()
    outcome = run_of(tmp_path, output=output, save_interval=2)
    assert (outcome.end, outcome.updates) == (End.ANOMALY, 6)
    assert updates_of(outcome.run) == [2, 4]
    assert not outcome.saved
    assert outcome.params == outcome.run / "params_4.npz"
    assert "params are not finite at update 6: not saved" in output.getvalue()
    assert "no params are finite at update 6: the run ends" in output.getvalue()
    assert rows_of(outcome.run)[1]["train/total_loss"] is None
    assert "not_finite" in rows_of(outcome.run)[1]["alarms"]
    assert output.getvalue().count("not finite: the run is broken") == 1

    outcome = run_of(tmp_path / "stop", on_unhealthy="stop")
    assert (outcome.end, outcome.updates) == (End.UNHEALTHY, 6)


RASH = {"lr": 1.0}  # of which alarms come


@pytest.mark.thorough
def test_a_run_that_was_stopped_as_unhealthy_stops_again(tmp_path: Path) -> None:
    output = io.StringIO()
    changes = RASH | {"total_timesteps": 60 * 64, "on_unhealthy": "stop"}
    first = run_of(tmp_path, output=output, **changes)
    assert "stopped by --on-unhealthy stop\n" in output.getvalue()
    assert updates_of(first.run) == [first.updates]  # what there is can be looked at
    again = run_of(tmp_path, resumed(first.run))
    assert first.end is again.end is End.UNHEALTHY
    assert first.updates <= again.updates < 60


@pytest.mark.thorough
def test_alarms_are_told_once_also_after_resuming(tmp_path: Path) -> None:
    run = run_of(tmp_path, **RASH, total_timesteps=12 * 64).run
    run_of(tmp_path, resumed(run), total_timesteps=24 * 64)
    fired = [name for row in rows_of(run) for name in row.get("alarms", [])]
    assert "kl_too_high" in fired
    assert len(fired) == len(set(fired))


class AlwaysOne(probes.Probe):
    """One step, reward 1 whatever is done: from the first update on, the return is flat."""

    reward_threshold = 1.0

    def advance(self, key: Any, position: Any, action: Any) -> tuple[Any, Any, Any]:
        return 0, 1.0, True


@pytest.mark.thorough
def test_a_run_that_solved_its_environment_raises_no_alarm(tmp_path: Path) -> None:
    run_of(tmp_path, env=AlwaysOne(), log_interval=1, total_timesteps=40 * 64)
    rows = without_speed(rows_of(tmp_path / "mine"))
    assert [row["train/mean_episode_return"] for row in rows] == [1.0] * 40
    assert [name for row in rows for name in row.get("alarms", [])] == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("part", "found"),
    [
        ("params", "params before the update, params.Dense_0.bias; update 5, before the first"),
        ("opt_state", "params after the step, params.Dense_0.bias; update 5, epoch 1, minibatch 1"),
        ("games", "pg_loss; update 5, epoch 1, minibatch 1 of 4"),
    ],
)
def test_an_anomaly_is_found_where_it_began(
    part: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_update(monkeypatch, 4, poisoned(part))
    output = io.StringIO()
    options = TrainOptions(run_name="mine", detect_anomaly=True)
    outcome = run_of(tmp_path, options, output=output, save_interval=2)
    assert (outcome.end, outcome.updates) == (End.ANOMALY, 5)
    assert updates_of(outcome.run) == [2, 4]
    (line,) = [line for line in output.getvalue().splitlines() if "not finite" in line]
    assert found in line


@pytest.mark.thorough
def test_looking_for_anomalies_changes_nothing(whole: Path, tmp_path: Path) -> None:
    run_of(tmp_path, TrainOptions(run_name="mine", detect_anomaly=True))
    assert_same_run(whole, tmp_path / "mine", 7)


# --- what is told --------------------------------------------------------------------------------


def test_an_output_that_fails_ends_neither_the_run_nor_its_log(whole: Path, tmp_path: Path) -> None:
    class Pipe(io.StringIO):
        def write(self, text: str) -> int:
            if text.startswith("update 3/"):
                raise BrokenPipeError
            return super().write(text)

    run = run_of(tmp_path, output=Pipe()).run
    assert "update 3/7" in (run / "log.txt").read_text()
    assert "checkpoint: update 7 saved" in (run / "log.txt").read_text()
    assert_same_run(whole, run, 7)


@pytest.mark.thorough
def test_a_profile_of_the_wanted_update_is_left(tmp_path: Path) -> None:
    output = io.StringIO()
    options = TrainOptions(run_name="mine", profile=True, profile_step=4)
    outcome = run_of(tmp_path, options, output=output)
    (trace,) = (outcome.run / "profiles").rglob("*.xplane.pb")
    assert trace.relative_to(outcome.run / "profiles").parts[:2] == ("plugins", "profile")
    assert trace.stat().st_size > 1000
    assert "profile of update 4: tensorboard --logdir" in output.getvalue()


def test_debug_tells_every_call_and_an_update_that_never_comes_is_not_profiled(
    tmp_path: Path,
) -> None:
    output = io.StringIO()
    options = TrainOptions(run_name="mine", debug=True, profile=True, profile_step=8)
    run_of(tmp_path, options, output=output)
    assert output.getvalue().count("call of 1 to update ") == 7
    assert output.getvalue().startswith("devices: ")
    assert "there is no update 8: nothing will be profiled" in output.getvalue()


@pytest.mark.thorough
def test_a_run_of_a_folder_has_its_events_and_its_log_in_logs(tmp_path: Path) -> None:
    run = tmp_path / "mine"
    run_of(tmp_path, TrainOptions(output_dir=run), tensorboard=True, total_timesteps=4 * 64)
    run_of(tmp_path, resumed(run), total_timesteps=7 * 64)
    assert "update 7/7" in (run / "logs" / "training.log").read_text()
    events = EventAccumulator(str(run / "logs"), {"scalars": 0}).Reload()
    steps = [point.step for point in events.Scalars("train/entropy")]
    assert steps == [row["update"] for row in rows_of(run)]
    assert not {"events", "log.txt"} & {path.name for path in run.iterdir()}


@pytest.mark.thorough
def test_trackers_are_told_metrics_alarms_and_evaluations(tmp_path: Path) -> None:
    make, _ = scored(1.0, 3.0, 0.0)
    run = run_of(tmp_path, make_evaluate=make, tensorboard=True, eval_interval=3, **RASH).run
    events = EventAccumulator(str(run / "events"), {"scalars": 0}).Reload()
    rows = rows_of(run)
    for name in ("train/entropy", "eval/mean_return"):
        points = [(point.step, point.value) for point in events.Scalars(name)]
        assert points == [(row["update"], pytest.approx(row[name])) for row in rows if name in row]
    fired = [name for row in rows for name in row.get("alarms", [])]
    assert fired
    assert {f"alarm/{name}/text_summary" for name in fired} <= set(events.Tags()["tensors"])


def test_trackers_start_when_the_first_update_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    updates: list[int] = []
    before_start: list[int] = []
    run = Trainer.run

    def counted(self: Trainer, state: TrainState, count: int) -> TrainState:
        updates.append(count)
        return run(self, state, count)

    monkeypatch.setattr(Trainer, "run", counted)
    monkeypatch.setattr(Trackers, "start", lambda _: before_start.append(sum(updates)))
    run_of(tmp_path, tensorboard=True)
    assert before_start[0] == 1
