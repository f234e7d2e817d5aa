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
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import probe_environments as probes
import pytest
import yaml
from sharing_trainer import SharingTrainer
from small_runs import (
    MINE,
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
from hackmatrix.core.manifest import write_manifest
from hackmatrix.learning.reporting.console import Console
from hackmatrix.learning.run.loop import End, train
from hackmatrix.learning.run.schedule import Chunks
from hackmatrix.learning.run.snapshots import named_leaves
from hackmatrix.learning.run.start import find_start
from hackmatrix.learning.settings.config import TrainOptions
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.learning.settings.resolve import resolve
from hackmatrix.learning.trainer.trainer import Trainer, TrainState
from hackmatrix.runs.checkpoints import load_checkpoint
from hackmatrix.runs.trackers import Trackers

pytestmark = pytest.mark.usefixtures("shared_programs")


def test_a_run_leaves_a_folder_that_explains_itself(tmp_path: Path) -> None:
    output = io.StringIO()
    outcome = run_of(tmp_path, output=output)
    run = tmp_path / "mine"
    assert outcome.end is End.FINISHED
    assert (outcome.run, outcome.updates) == (run, 7)
    assert outcome.params == run / "final_params.npz"
    assert outcome.checkpoint == run / "checkpoints" / "7"
    assert sorted(path.name for path in run.iterdir()) == [
        ".lock",
        "checkpoints",
        "config.yaml",
        "final_params.json",
        "final_params.npz",
        "log.txt",
        "metrics.jsonl",
        "params_7.json",
        "params_7.npz",
        "starts.jsonl",
    ]
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


@pytest.mark.parametrize("ahead", first_quickly([1, 5]))
def test_the_length_of_calls_changes_neither_metrics_nor_params(
    ahead: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_of(tmp_path / "plain", save_interval=4)
    monkeypatch.setattr("hackmatrix.learning.run.schedule.updates_per_call", lambda *_: ahead)
    run_of(tmp_path / "changed", save_interval=4)
    assert updates_of(tmp_path / "changed" / "mine") == [4, 7]
    for update in (4, 7):
        assert_same_run(tmp_path / "plain" / "mine", tmp_path / "changed" / "mine", update)


@pytest.mark.parametrize("number", first_quickly([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
def test_a_signal_ends_the_run_between_updates_and_what_follows_is_as_if_it_had_not(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_of(tmp_path / "whole")
    run = Trainer.run

    def interrupted(self: Trainer, state: TrainState, count: int) -> TrainState:
        if count and int(state.update) == 4:
            os.kill(os.getpid(), number)
        return run(self, state, count)

    output = io.StringIO()
    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "run", interrupted)
        outcome = run_of(tmp_path / "stopped", output=output)
    folder = tmp_path / "stopped" / "mine"
    assert (outcome.end, outcome.signal, outcome.updates) == (End.SIGNAL, number, 5)
    assert outcome.params == folder / "params_5.npz"
    assert updates_of(folder) == [5]
    assert "stopping after this update" in output.getvalue()

    outcome = run_of(tmp_path / "stopped", TrainOptions(resume=str(folder)))
    assert outcome.end is End.FINISHED
    assert_same_run(tmp_path / "whole" / "mine", folder, 7)


def test_a_signal_before_the_first_update_leaves_nothing_to_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Trainer.run

    def interrupted(self: Trainer, state: TrainState, count: int) -> TrainState:
        os.kill(os.getpid(), signal.SIGTERM)
        return run(self, state, count)

    monkeypatch.setattr(Trainer, "run", interrupted)
    outcome = run_of(tmp_path)
    assert (outcome.end, outcome.updates, outcome.params) == (End.SIGNAL, 0, None)
    assert updates_of(tmp_path / "mine") == []


@pytest.mark.parametrize("ahead", first_quickly([2, 1]))
def test_a_resumed_run_is_the_run_that_was_never_stopped(
    ahead: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a kill after update 8 leaves: the checkpoint of update 5, rows and a file beyond it.
    settings = {
        "total_timesteps": 12 * 64,
        "save_interval": 5,
        "normalize_observations": True,
        "params_average": 0.2,
    }
    run_of(tmp_path / "whole", **settings)
    folder = tmp_path / "killed" / "mine"
    run_of(tmp_path / "killed", **settings)
    for update in (10, 12):
        os.rename(folder / "checkpoints" / str(update), tmp_path / str(update))
    for path in (*folder.glob("params_1*"), *folder.glob("final_params.*")):
        path.unlink()
    (folder / "checkpoints" / ".saving-10-1").mkdir()
    with (folder / "metrics.jsonl").open("a") as metrics:
        metrics.write('{"update": 12, "train/ent')

    monkeypatch.setattr("hackmatrix.learning.run.schedule.updates_per_call", lambda *_: ahead)
    outcome = run_of(tmp_path / "killed", TrainOptions(resume=str(folder)))
    assert outcome.updates == 12
    assert updates_of(folder) == [5, 10, 12]
    assert_same_run(tmp_path / "whole" / "mine", folder, 12)
    assert not (folder / "checkpoints" / ".saving-10-1").exists()


@pytest.mark.thorough
def test_a_resumed_run_can_begin_to_average_its_params(tmp_path: Path) -> None:
    run_of(tmp_path)
    folder, output = tmp_path / "mine", io.StringIO()
    options = TrainOptions(resume=str(folder))
    run_of(tmp_path, options, total_timesteps=9 * 64, params_average=1.0, output=output)
    assert "changed since: params_average None -> 1.0" in output.getvalue()
    before, _ = load_checkpoint(folder / "checkpoints" / "7")
    after, _ = load_checkpoint(folder / "checkpoints" / "9")
    assert not any(name.startswith("averages.") for name in before)
    for name, exported in named_leaves(load_policy(folder / "final_params.npz").params):
        np.testing.assert_array_equal(exported, after[f"averages.{name}"])
        change = np.abs(exported - before[f"params.{name}"]).sum()
        whole_change = np.abs(after[f"params.{name}"] - before[f"params.{name}"]).sum()
        assert 0 < change < 0.3 * whole_change  # two of nine updates


@pytest.mark.thorough
def test_more_timesteps_go_on_where_the_run_ended(tmp_path: Path) -> None:
    run_of(tmp_path / "whole", total_timesteps=12 * 64)
    run_of(tmp_path / "longer", total_timesteps=6 * 64)
    folder = tmp_path / "longer" / "mine"
    run_of(tmp_path / "longer", TrainOptions(resume=str(folder)), total_timesteps=12 * 64)
    assert_same_run(tmp_path / "whole" / "mine", folder, 12)


def test_every_start_of_a_run_is_recorded(tmp_path: Path) -> None:
    run_of(tmp_path)
    run_of(tmp_path, TrainOptions(resume=str(tmp_path / "mine")), total_timesteps=9 * 64)
    lines = (tmp_path / "mine" / "starts.jsonl").read_text().splitlines()
    first, second = map(json.loads, lines)
    assert (first["update"], second["update"]) == (0, 7)
    assert first["command"] == sys.argv
    assert first["devices"] == 1
    assert first["device"] == jax.devices()[0].device_kind
    assert first["versions"]["jax"] == jax.__version__
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    assert first["commit"] is None or first["commit"].rstrip("+") == commit.strip()


def test_a_finished_run_that_is_resumed_stays_as_it_is(tmp_path: Path) -> None:
    run_of(tmp_path)
    folder = tmp_path / "mine"
    before = (folder / "metrics.jsonl").read_bytes()
    output = io.StringIO()
    outcome = run_of(tmp_path, TrainOptions(resume=str(folder)), output=output)
    assert (outcome.end, outcome.updates) == (End.FINISHED, 7)
    assert outcome.params == folder / "final_params.npz"
    assert outcome.params.exists()
    assert "a higher --total-timesteps goes on" in output.getvalue()
    assert (folder / "metrics.jsonl").read_bytes() == before


@pytest.mark.thorough
def test_an_older_checkpoint_is_resumed_only_where_what_came_after_may_go(tmp_path: Path) -> None:
    run_of(tmp_path, save_interval=3)
    folder = tmp_path / "mine"
    older = str(folder / "checkpoint_3.pkl")  # a name as the original's
    whole = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(UserError, match=r"newer checkpoints than 3 \(6, 7\): .* --rewind drops"):
        run_of(tmp_path, TrainOptions(resume=older))
    assert whole == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    run_of(tmp_path, TrainOptions(resume=older, run_name="branch"))
    assert updates_of(tmp_path / "branch") == [3, 6, 7]
    assert_same_run(folder, tmp_path / "branch", 7)
    assert updates_of(folder) == [3, 6, 7]

    run_of(tmp_path, TrainOptions(resume=older, rewind=True), total_timesteps=5 * 64)
    assert updates_of(folder) == [3, 5]
    assert [row["update"] for row in rows_of(folder)] == [3, 5]
    assert not (folder / "params_7.npz").exists()


def test_a_run_goes_on_in_the_folder_that_is_given(tmp_path: Path) -> None:
    run_of(tmp_path)
    options = TrainOptions(resume=str(tmp_path / "mine"), output_dir=tmp_path / "there")
    outcome = run_of(tmp_path, options, total_timesteps=9 * 64)
    assert outcome.run == tmp_path / "there"
    assert [row["update"] for row in rows_of(outcome.run)] == [3, 6, 7, 9]
    assert updates_of(tmp_path / "mine") == [7]


def test_the_run_of_a_name_is_resumed(tmp_path: Path) -> None:
    run_of(tmp_path)
    run_of(tmp_path, TrainOptions(resume_run="mine"), total_timesteps=9 * 64)
    assert updates_of(tmp_path / "mine") == [7, 9]
    with pytest.raises(UserError, match="--resume-run yours: there is no run"):
        run_of(tmp_path, TrainOptions(resume_run="yours"))


@pytest.mark.slow
def test_with_other_games_the_params_go_on_and_the_optimizer_is_warned_of(tmp_path: Path) -> None:
    run_of(tmp_path)
    folder = tmp_path / "mine"
    output = io.StringIO()
    options = TrainOptions(resume=str(folder), run_name="more")
    run_of(tmp_path, options, output=output, num_envs=16, total_timesteps=7 * 64 + 5 * 128)
    text = output.getvalue()
    assert "changed since: num_envs 8 -> 16\n" in text
    assert "the games are others and start anew\n" in text
    assert "warning: the optimizer's state is poorly calibrated" in text
    assert text.index("--reset-optimizer") < text.index("compiled in")  # before anything runs
    arrays, facts = load_checkpoint(tmp_path / "more" / "checkpoints" / "12")
    assert arrays["games.episode_length"].shape == (16,)
    assert facts.timesteps == 7 * 64 + 5 * 128
    assert [row["timesteps"] for row in rows_of(tmp_path / "more")] == [192, 384, 448, 704, 1088]
    steps = 4 * 4  # of the optimizer in an update
    assert arrays["opt_state.1.count"] == 12 * steps

    options = TrainOptions(resume=str(folder), run_name="reset", reset_optimizer=True)
    output = io.StringIO()
    run_of(tmp_path, options, output=output, num_envs=16, total_timesteps=7 * 64 + 5 * 128)
    assert "the optimizer starts afresh\n" in output.getvalue()
    assert "poorly" not in output.getvalue()
    arrays, _ = load_checkpoint(tmp_path / "reset" / "checkpoints" / "12")
    assert arrays["opt_state.1.count"] == 5 * steps


LINEAR: dict[str, Any] = {"lr": 0.1, "lr_schedule": "linear", "log_interval": 1}


@pytest.mark.thorough
def test_another_length_of_rollouts_counts_on_from_the_timesteps_that_were_made(
    tmp_path: Path,
) -> None:
    run_of(tmp_path, **LINEAR)
    options = TrainOptions(resume=str(tmp_path / "mine"))
    outcome = run_of(tmp_path, options, num_steps=16, total_timesteps=11 * 64)
    assert (outcome.updates, outcome.timesteps) == (9, 7 * 64 + 2 * 128)
    assert rows_of(tmp_path / "mine")[-1]["timesteps"] == 7 * 64 + 2 * 128


def test_the_learning_rate_of_a_resumed_run_goes_by_its_timesteps(tmp_path: Path) -> None:
    run_of(tmp_path, **LINEAR)
    options, output = TrainOptions(resume=str(tmp_path / "mine")), io.StringIO()
    run_of(tmp_path, options, output=output, num_steps=16, total_timesteps=11 * 64)
    said = (
        "learning rate: 0.0143 before, 0.0364 from here on, as the schedule linear now spans 704 "
        "steps, not 448; --lr-schedule constant --lr 0.0143 keeps it"
    )
    assert said in " ".join(output.getvalue().split())
    rates = [row["train/learning_rate"] for row in rows_of(tmp_path / "mine")]
    assert rates[:7] == pytest.approx([0.1 * (1 - update / 7) for update in range(7)])
    assert rates[7:] == pytest.approx([0.1 * (1 - made / 704) for made in (448, 576)])


@pytest.mark.thorough
@pytest.mark.parametrize(
    "changes",
    [{}, {"total_timesteps": 704, "lr": 0.2}, {"total_timesteps": 704, "lr_schedule": "constant"}],
)
def test_a_learning_rate_that_does_not_jump_by_itself_is_not_mentioned(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    run_of(tmp_path, **LINEAR)
    output = io.StringIO()
    run_of(tmp_path, TrainOptions(resume=str(tmp_path / "mine")), output=output, **changes)
    assert "before" not in output.getvalue()


@pytest.mark.thorough
def test_games_of_a_resumed_run_are_not_those_of_its_beginning(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    trainer = Trainer(probes.Grid(), config.learning, config.network)
    first, later = (trainer.init(0, update).games.env_state.position for update in (0, 7))
    assert first.tolist() != later.tolist()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_dim": 16}, "hidden_dim was 8 in the checkpoint and is 16 now"),
        ({"num_layers": 2}, "num_layers was 1 in the checkpoint and is 2 now"),
        ({"activation": "tanh"}, "activation was relu in the checkpoint and is tanh now"),
        ({"observation": "classic"}, "observation was full in the checkpoint and is classic now"),
        ({"normalize_observations": True}, "--normalize-observations was off .* and is on now"),
        ({"num_envs": 9}, "--num-minibatches 4 must divide|3 devices"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_changes(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    run_of(tmp_path)
    folder = tmp_path / "mine"
    if "num_envs" in changes:
        changes |= {"num_steps": 3}
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for options in (
        TrainOptions(resume=str(folder)),
        TrainOptions(resume=str(folder), run_name="other"),
    ):
        with pytest.raises(UserError, match=message):
            run_of(tmp_path, options, **changes)
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.thorough
def test_rewards_that_are_no_longer_normalised_are_taken_as_they_are(tmp_path: Path) -> None:
    run_of(tmp_path)
    options = TrainOptions(resume=str(tmp_path / "mine"))
    output = io.StringIO()
    changes = {"normalize_rewards": False, "total_timesteps": 9 * 64}
    run_of(tmp_path, options, output=output, **changes)
    assert "values were learned in other units" in output.getvalue()
    rows = rows_of(tmp_path / "mine")
    assert rows[-2]["train/reward_scale"] != 1  # of update 7
    assert rows[-1]["train/reward_scale"] == 1


@pytest.mark.thorough
def test_exported_params_start_a_new_run(tmp_path: Path) -> None:
    run_of(tmp_path)
    options = TrainOptions(resume=str(tmp_path / "mine" / "final_params.npz"), run_name="warm")
    output = io.StringIO()
    outcome = run_of(tmp_path, options, output=output, total_timesteps=64)
    assert "optimizer, normalisation, games and counters start afresh\n" in output.getvalue()
    assert outcome.updates == 1
    begun, _ = load_checkpoint(tmp_path / "warm" / "checkpoints" / "0")
    exported = dict(named_leaves({"params": load_policy(tmp_path / "mine").params}))
    assert exported.keys() == {name for name in begun if name.startswith("params.")}
    for name, array in exported.items():
        np.testing.assert_array_equal(begun[name], array, err_msg=name)
    options = dataclasses.replace(options, run_name="wider")
    with pytest.raises(UserError, match=r"Dense_0.bias is \[8\], .* wants \[16\]"):
        run_of(tmp_path, options, hidden_dim=16)
    with pytest.raises(UserError, match="was trained with --activation relu"):
        run_of(tmp_path, options, activation="tanh")
    with pytest.raises(UserError, match="exported params read observations as they are"):
        run_of(tmp_path, options, normalize_observations=True)
    assert not (tmp_path / "wider").exists()


@pytest.mark.thorough
@pytest.mark.parametrize("from_params", [False, True])
def test_a_run_in_a_new_folder_keeps_what_it_began_with(
    from_params: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_of(tmp_path)
    source = tmp_path / "mine" / ("final_params.npz" if from_params else "checkpoints/7")
    run = Trainer.run

    def interrupted(self: Trainer, state: TrainState, count: int) -> TrainState:
        os.kill(os.getpid(), signal.SIGTERM)  # before the first update
        return run(self, state, count)

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "run", interrupted)
        options = TrainOptions(resume=str(source), run_name="new")
        outcome = run_of(tmp_path, options, total_timesteps=9 * 64)
    begun = 0 if from_params else 7
    assert (outcome.end, outcome.updates) == (End.SIGNAL, begun)
    assert updates_of(tmp_path / "new") == [begun]
    kernels = [
        load_policy(path).params["params"]["Dense_0"]["kernel"]
        for path in (tmp_path / "mine", tmp_path / "new")
    ]
    np.testing.assert_array_equal(*kernels)
    run_of(tmp_path, TrainOptions(resume=str(tmp_path / "new")))
    assert updates_of(tmp_path / "new") == [begun, 9]


@pytest.mark.thorough
def test_what_a_resumed_run_was_last_asked_for_outlives_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_of(tmp_path)
    options = TrainOptions(resume=str(tmp_path / "mine"))

    def killed(*_: Any) -> TrainState:
        raise SystemExit  # stands for a kill after the folder was prepared

    with monkeypatch.context() as patched:
        patched.setattr(Chunks, "advance", killed)
        with pytest.raises(SystemExit):
            run_of(tmp_path, options, total_timesteps=9 * 64, normalize_rewards=False)
    outcome = run_of(tmp_path, options)
    assert outcome.updates == 9
    assert rows_of(tmp_path / "mine")[-2]["train/reward_scale"] != 1
    assert rows_of(tmp_path / "mine")[-1]["train/reward_scale"] == 1


def test_a_name_and_a_folder_of_runs_mean_a_new_run(tmp_path: Path) -> None:
    run_of(tmp_path)
    options = TrainOptions(resume=str(tmp_path / "mine"), run_name="mine")
    other = tmp_path / "other"
    outcome = run_of(tmp_path, options, total_timesteps=9 * 64, checkpoint_dir=other)
    assert outcome.run == other / "mine"
    assert updates_of(tmp_path / "mine") == [7]


def test_a_run_may_be_called_by_a_number(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    run_of(folder, TrainOptions(run_name="1"))
    outcome = run_of(folder, TrainOptions(resume=str(folder / "1")), total_timesteps=9 * 64)
    assert (outcome.run, outcome.updates) == (folder / "1", 9)


@pytest.mark.thorough
def test_best_params_belong_to_the_best_checkpoint_that_is_left(tmp_path: Path) -> None:
    make, _ = best_at({2: 1.0, 4: 3.0, 6: 5.0, 7: 0.0})
    config = config_in(tmp_path, eval_interval=2, normalize_observations=True)
    with Console(io.StringIO()) as console:
        train(config, MINE, console, env=probes.Grid(), make_evaluate=make)
    folder = tmp_path / "mine"
    assert load_policy(folder / "best_params.npz").about["update"] == 6
    expected = load_policy(folder / "params_4.npz").params
    options = TrainOptions(resume=str(folder / "checkpoints" / "4"), rewind=True)
    run_of(tmp_path, options, eval_interval=None, total_timesteps=5 * 64)
    best = load_policy(folder / "best_params.npz")
    assert best.about["update"] == 4
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-6), best.params, expected)


@pytest.mark.thorough
def test_each_file_of_a_checkpoint_is_hashed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, _ = best_at({2: 1.0, 4: 3.0, 6: 5.0, 7: 0.0})
    run_of(tmp_path, make_evaluate=make, eval_interval=2)
    folder = tmp_path / "mine" / "checkpoints"
    copy = tmp_path / "copy"
    shutil.copytree(folder / "4", copy)
    hashed: list[Path] = []
    digest = hashlib.file_digest

    def counted(file: Any, name: str) -> Any:
        hashed.append(Path(file.name))
        return digest(file, name)

    monkeypatch.setattr("hackmatrix.core.manifest.hashlib.file_digest", counted)
    for path, options in (
        (copy, TrainOptions(resume=str(copy), run_name="other")),
        # The run goes back: update 4 becomes the best again.
        (folder / "4", TrainOptions(resume=str(folder / "4"), rewind=True)),
    ):
        hashed.clear()
        run_of(tmp_path, options, eval_interval=None, total_timesteps=5 * 64)
        expected = [p for p in path.rglob("*") if p.is_file() and p.name != "manifest.json"]
        assert len(expected) > 3
        assert sorted(p for p in hashed if p.is_relative_to(path)) == sorted(expected)
        assert len(hashed) == len(set(hashed))


@pytest.mark.thorough
def test_params_that_a_kill_has_prevented_are_made_when_the_run_goes_on(tmp_path: Path) -> None:
    make, _ = best_at({6: 1.0, 7: 2.0})
    run_of(tmp_path, make_evaluate=make, eval_interval=6)
    folder = tmp_path / "mine"
    expected = {path.name: path.read_bytes() for path in folder.glob("*params*")}
    assert {"params_7.npz", "best_params.npz", "final_params.json"} < expected.keys()
    for name in ("params_7", "best_params", "final_params"):
        for suffix in (".npz", ".json"):
            (folder / (name + suffix)).unlink()
    run_of(tmp_path, TrainOptions(resume=str(folder)))
    assert {path.name: path.read_bytes() for path in folder.glob("*params*")} == expected


@pytest.mark.thorough
def test_a_checkpoint_of_a_version_that_knew_of_one_agent_is_resumed(tmp_path: Path) -> None:
    run_of(tmp_path / "whole", total_timesteps=9 * 64)
    run_of(tmp_path / "old")
    folder = tmp_path / "old" / "mine"
    file = folder / "checkpoints" / "7" / "facts.json"
    facts = json.loads(file.read_text())
    assert facts["format"] == 1
    del facts["config"]["num_seeds"]
    file.write_text(json.dumps(facts))
    write_manifest(file.parent)
    with pytest.raises(UserError, match="holds 1 agents, --num-seeds asks for 2"):
        run_of(tmp_path / "old", TrainOptions(resume=str(folder)), num_seeds=2)
    run_of(tmp_path / "old", TrainOptions(resume=str(folder)), total_timesteps=9 * 64)
    (held, _), (expected, _) = (
        load_checkpoint(tmp_path / name / "mine" / "checkpoints" / "9") for name in ("old", "whole")
    )
    for name in expected:
        if not name.startswith("sums."):  # rows were logged at other updates
            np.testing.assert_array_equal(held[name], expected[name], err_msg=name)


def test_a_checkpoint_without_a_fact_is_refused_in_one_line(tmp_path: Path) -> None:
    run_of(tmp_path)
    file = tmp_path / "mine" / "checkpoints" / "7" / "facts.json"
    facts = json.loads(file.read_text())
    del facts["timesteps"]
    file.write_text(json.dumps(facts))
    write_manifest(file.parent)
    with pytest.raises(
        UserError, match=r"^\S+7/facts.json: holds no timesteps; another version .*$"
    ):
        run_of(tmp_path, TrainOptions(resume=str(tmp_path / "mine")))


def test_an_evaluation_that_is_not_finite_is_never_the_best(tmp_path: Path) -> None:
    make, _ = best_at({2: float("nan"), 4: 1.0, 6: float("nan"), 7: 0.0})
    outcome = run_of(tmp_path, make_evaluate=make, eval_interval=2)
    assert outcome.best == outcome.run / "checkpoints" / "4"


def test_a_damaged_checkpoint_is_refused_and_the_one_before_it_offered(tmp_path: Path) -> None:
    run_of(tmp_path, save_interval=3)
    folder = tmp_path / "mine"
    for update in (7, 6, 3):
        facts = folder / "checkpoints" / str(update) / "facts.json"
        facts.write_text(facts.read_text().replace("Grid", "grid") + " ")
        before = {3: None, 6: 3, 7: 6}[update]
        hint = "there is no whole checkpoint before it"
        if before is not None:
            hint = f"--resume {folder / 'checkpoints' / str(before)} --rewind"
        path = str(folder / "checkpoints" / str(update))
        with pytest.raises(UserError, match=f"{update} is damaged: the file facts.json .*{hint}"):
            run_of(tmp_path, TrainOptions(resume=path, rewind=True))
    with pytest.raises(UserError, match="7 is damaged: "):
        run_of(tmp_path, TrainOptions(resume=str(folder)))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere", "--resume .*nowhere: there is no such file or folder"),
        ("mine/checkpoint_4.pkl", "has no checkpoint 4; there are 7"),
        ("mine/checkpoints/4", "there is no such file or folder"),
        ("mine/config.yaml", "is neither a run's folder, nor a checkpoint, nor a file of params"),
        ("empty", "empty has no checkpoint"),
        ("mine/params_9.npz", "mine has no params of update 9; there are 7"),
    ],
)
def test_what_can_not_be_resumed_is_said(tmp_path: Path, path: str, message: str) -> None:
    run_of(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=message):
        run_of(tmp_path, TrainOptions(resume=str(tmp_path / path), run_name="other"))


@pytest.mark.parametrize("name", ["checkpoint.pkl", "checkpoint_7.pt", "checkpoint_7.pkl", ""])
def test_names_of_old_are_understood(tmp_path: Path, name: str) -> None:
    run_of(tmp_path)
    for folder in ("mine", "mine/checkpoints"):
        start = find_start(TrainOptions(resume=str(tmp_path / folder / name)), tmp_path)
        assert start.checkpoint is not None
        assert start.checkpoint.path == tmp_path / "mine" / "checkpoints" / "7"


@pytest.mark.thorough
def test_a_checkpoint_that_was_copied_elsewhere_starts_a_new_run(tmp_path: Path) -> None:
    run_of(tmp_path)
    os.rename(tmp_path / "mine" / "checkpoints" / "7", tmp_path / "copy")
    options = TrainOptions(resume=str(tmp_path / "copy"), run_name="new")
    outcome = run_of(tmp_path, options, total_timesteps=9 * 64)
    assert (outcome.run, outcome.updates) == (tmp_path / "new", 9)


@pytest.mark.thorough
def test_a_run_that_was_killed_before_its_first_checkpoint_begins_again(tmp_path: Path) -> None:
    run_of(tmp_path / "whole")
    run_of(tmp_path / "killed")
    folder = tmp_path / "killed" / "mine"
    shutil.rmtree(folder / "checkpoints")
    for path in folder.glob("*params*"):
        path.unlink()
    output = io.StringIO()
    run_of(tmp_path / "killed", TrainOptions(resume=str(folder)), output=output)
    assert f"{folder} has no checkpoint yet: it starts from its beginning" in output.getvalue()
    assert_same_run(tmp_path / "whole" / "mine", folder, 7)


def test_params_of_a_run_without_checkpoints_are_offered(tmp_path: Path) -> None:
    folder = run_of(tmp_path).run
    shutil.rmtree(folder / "checkpoints")
    for params in ("final_params.npz", "params_7.npz"):
        options = TrainOptions(resume=str(folder), run_name="other")
        with pytest.raises(UserError, match=f"no checkpoint; .*: --resume .*{params}"):
            run_of(tmp_path, options)
        (folder / params).unlink()


@pytest.mark.thorough
def test_checkpoints_come_by_the_clock(tmp_path: Path) -> None:
    run_of(tmp_path, save_interval_minutes=1e-9, keep_checkpoints=100)
    assert updates_of(tmp_path / "mine") == [1, 2, 3, 4, 5, 6, 7]


def test_checkpoints_come_by_timesteps(tmp_path: Path) -> None:
    run_of(tmp_path, save_interval_timesteps=100)
    assert updates_of(tmp_path / "mine") == [2, 4, 6, 7]


def test_a_disk_that_is_full_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: Any, **__: Any) -> None:
        raise ValueError("RESOURCE_EXHAUSTED: Error writing ...: No space left on device")

    monkeypatch.setattr(ocp.Checkpointer, "save", no_space)
    output = io.StringIO()
    outcome = run_of(tmp_path, output=output, save_interval=3)
    assert (outcome.updates, outcome.saved) == (7, False)
    assert "the checkpoint of update 3 can't be written: No space left" in output.getvalue()


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


def best_at(scores: dict[int, float]) -> Any:
    """An evaluation that gives these scores in turn, and keeps the params that it saw."""
    seen: list[Any] = []

    def make(*_: Any) -> Any:
        def evaluate(params: Any) -> dict[str, float]:
            seen.append(params)
            return {"mean_return": list(scores.values())[len(seen) - 1]}

        return evaluate

    return make, seen


def test_the_best_checkpoint_is_the_one_that_was_evaluated(tmp_path: Path) -> None:
    make, seen = best_at({2: 1.0, 4: 3.0, 6: 2.0, 7: 0.0})
    config = config_in(tmp_path, eval_interval=2, keep_checkpoints=1)
    output = io.StringIO()
    with Console(output) as console:
        outcome = train(config, MINE, console, env=probes.Grid(), make_evaluate=make)
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
    evaluated = {row["update"]: row["eval/mean_return"] for row in rows_of(run) if len(row) == 3}
    assert evaluated == {2: 1.0, 4: 3.0, 6: 2.0, 7: 0.0}
    assert "evaluation: update 4: mean_return 3, the best\n" in output.getvalue()


@pytest.mark.thorough
def test_evaluations_change_nothing(tmp_path: Path) -> None:
    make, _ = best_at(dict.fromkeys(range(9), 1.0))
    with Console(io.StringIO()) as console:
        config = config_in(tmp_path / "evaluated", eval_interval=2)
        train(config, MINE, console, env=probes.Grid(), make_evaluate=make)
    run_of(tmp_path / "plain")
    plain, evaluated = (rows_of(tmp_path / name / "mine") for name in ("plain", "evaluated"))
    evaluated = [row for row in evaluated if "train/entropy" in row]
    assert without_speed(plain) == without_speed(evaluated)


def test_nan_params_are_told_and_never_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Trainer.run

    def poisoned(self: Trainer, state: TrainState, count: int) -> TrainState:
        if count and int(state.update) == 4:
            params = jax.tree.map(lambda p: p * jnp.nan, state.params)
            state = dataclasses.replace(state, learner=state.learner.replace(params=params))
        return run(self, state, count)

    monkeypatch.setattr(Trainer, "run", poisoned)
    output = io.StringIO()
    outcome = run_of(tmp_path, output=output, save_interval=2)
    assert (outcome.end, outcome.updates) == (End.ANOMALY, 6)
    assert updates_of(outcome.run) == [2, 4]
    assert not outcome.saved
    assert outcome.params == outcome.run / "params_4.npz"
    assert "params are not finite at update 6: not saved" in output.getvalue()
    assert rows_of(outcome.run)[1]["train/total_loss"] is None
    assert "not_finite" in rows_of(outcome.run)[1]["alarms"]
    assert output.getvalue().count("not finite: the run is broken") == 1

    outcome = run_of(tmp_path / "stop", on_unhealthy="stop")
    assert (outcome.end, outcome.updates) == (End.UNHEALTHY, 6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "changes", "alarm"),
    [
        (probes.Grid(), {"lr": 1.0, "hidden_dim": 64}, "kl_too_high"),
        (probes.Grid(), {"lr": 1.0, "hidden_dim": 64}, "clip_too_high"),
        # A policy without any entropy is best.
        (probes.Policy(), {"lr": 0.05, "ent_coef": 0.0, "num_envs": 32}, "entropy_collapse"),
    ],
)
def test_an_unhealthy_run_says_so_once_and_can_be_stopped(
    env: probes.Probe, changes: dict[str, Any], alarm: str, tmp_path: Path
) -> None:
    changes |= {"total_timesteps": 60 * 8 * changes.get("num_envs", 8)}
    output = io.StringIO()
    outcome = run_of(tmp_path, output=output, env=env, **changes)
    assert outcome.end is End.FINISHED
    fired = [name for row in rows_of(outcome.run) for name in row.get("alarms", [])]
    assert fired.count(alarm) == 1
    outcome = run_of(tmp_path / "stop", output=output, env=env, on_unhealthy="stop", **changes)
    assert outcome.end is End.UNHEALTHY
    assert outcome.updates < 60
    assert updates_of(outcome.run) == [outcome.updates]  # what there is can be looked at
    assert "stopped by --on-unhealthy stop\n" in output.getvalue()


@pytest.mark.thorough
def test_a_run_that_was_stopped_as_unhealthy_stops_again(tmp_path: Path) -> None:
    changes = {"lr": 1.0, "hidden_dim": 64, "total_timesteps": 60 * 64, "on_unhealthy": "stop"}
    first = run_of(tmp_path, **changes)
    assert first.end is End.UNHEALTHY
    again = run_of(tmp_path, TrainOptions(resume=str(first.run)))
    assert again.end is End.UNHEALTHY
    assert again.updates < 60


@pytest.mark.thorough
@pytest.mark.parametrize("error", [BrokenPipeError(), ValueError("closed"), RuntimeError("odd")])
def test_an_output_that_fails_ends_neither_the_run_nor_its_log(
    error: Exception, tmp_path: Path
) -> None:
    class Pipe(io.StringIO):
        def write(self, text: str) -> int:
            if text.startswith("update 3/"):
                raise error
            return super().write(text)

    outcome = run_of(tmp_path, output=Pipe())
    assert (outcome.end, outcome.updates) == (End.FINISHED, 7)
    assert "update 3/7" in (outcome.run / "log.txt").read_text()
    assert "checkpoint: update 7 saved" in (outcome.run / "log.txt").read_text()


def test_an_update_that_never_comes_is_not_profiled_and_that_is_said(tmp_path: Path) -> None:
    output = io.StringIO()
    run_of(tmp_path, TrainOptions(run_name="mine", profile=True, profile_step=8), output=output)
    assert "there is no update 8: nothing will be profiled" in output.getvalue()


class AlwaysOne(probes.Probe):
    """One step, reward 1 whatever is done: from the first update on, the return is flat."""

    def advance(self, key: Any, position: Any, action: Any) -> tuple[Any, Any, Any]:
        return 0, 1.0, True


@pytest.mark.thorough
@pytest.mark.parametrize(("solved_at", "alarms"), [(1.0, []), (1.1, ["return_flat"])])
def test_a_run_that_solved_its_environment_raises_no_alarm(
    solved_at: float, alarms: list[str], tmp_path: Path
) -> None:
    env = AlwaysOne()
    env.reward_threshold = solved_at
    run_of(tmp_path, env=env, log_interval=1, total_timesteps=40 * 64)
    rows = without_speed(rows_of(tmp_path / "mine"))
    assert [row["train/mean_episode_return"] for row in rows] == [1.0] * 40
    assert [name for row in rows for name in row.get("alarms", [])] == alarms


@pytest.mark.thorough
def test_alarms_that_were_told_are_not_told_again_after_resuming(tmp_path: Path) -> None:
    changes = {"lr": 1.0, "hidden_dim": 64, "total_timesteps": 12 * 64}
    run_of(tmp_path, **changes)
    options = TrainOptions(resume=str(tmp_path / "mine"))
    run_of(tmp_path, options, total_timesteps=24 * 64)
    fired = [name for row in rows_of(tmp_path / "mine") for name in row.get("alarms", [])]
    assert "kl_too_high" in fired
    assert len(fired) == len(set(fired))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("poison", "found"),
    [
        ("params", "params before the update, params.Dense_0.bias; update 5, before the first"),
        ("opt_state", "params after the step, params.Dense_0.bias; update 5, epoch 1, minibatch 1"),
        ("games", "pg_loss; update 5, epoch 1, minibatch 1 of 4"),
    ],
)
def test_an_anomaly_is_found_where_it_began(
    poison: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Trainer.run

    def poisoned(self: Trainer, state: TrainState, count: int) -> TrainState:
        if count and int(state.update) == 4:
            holder = state.learner if hasattr(state.learner, poison) else state
            part = jax.tree.map(
                lambda x: x * jnp.nan if x.dtype == jnp.float32 else x, getattr(holder, poison)
            )
            holder = holder.replace(**{poison: part})
            state = holder if isinstance(holder, TrainState) else state.replace(learner=holder)
        return run(self, state, count)

    monkeypatch.setattr(Trainer, "run", poisoned)
    options = TrainOptions(run_name="mine", detect_anomaly=True)
    output = io.StringIO()
    outcome = run_of(tmp_path, options, output=output, save_interval=2)
    assert (outcome.end, outcome.updates) == (End.ANOMALY, 5)
    assert updates_of(outcome.run) == [2, 4]
    (line,) = [line for line in output.getvalue().splitlines() if "not finite" in line]
    assert found in line


@pytest.mark.thorough
def test_looking_for_anomalies_changes_nothing(tmp_path: Path) -> None:
    run_of(tmp_path / "plain")
    run_of(tmp_path / "searched", TrainOptions(run_name="mine", detect_anomaly=True))
    assert_same_run(tmp_path / "plain" / "mine", tmp_path / "searched" / "mine", 7)


@pytest.mark.thorough
def test_a_profile_of_the_wanted_update_is_left(tmp_path: Path) -> None:
    output = io.StringIO()
    options = TrainOptions(run_name="mine", profile=True, profile_step=4)
    outcome = run_of(tmp_path, options, output=output)
    traces = list((outcome.run / "profiles").rglob("*.xplane.pb"))
    assert len(traces) == 1
    assert traces[0].relative_to(outcome.run / "profiles").parts[:2] == ("plugins", "profile")
    assert traces[0].stat().st_size > 1000
    assert "profile of update 4: tensorboard --logdir" in output.getvalue()


def test_debug_tells_every_call(tmp_path: Path) -> None:
    output = io.StringIO()
    run_of(tmp_path, TrainOptions(run_name="mine", debug=True), output=output)
    assert output.getvalue().count("call of 1 to update ") == 7
    assert output.getvalue().startswith("devices: ")


def test_an_existing_run_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.yaml").touch()
    with pytest.raises(UserError, match="exists: choose another --run-name"):
        run_of(tmp_path)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["config.yaml"]


@pytest.mark.thorough
def test_a_run_of_a_folder_has_its_events_and_its_log_in_logs(tmp_path: Path) -> None:
    options = TrainOptions(output_dir=tmp_path / "mine")
    config = config_in(tmp_path, tensorboard=True)
    for total in (4, 7):  # also when it goes on
        start = find_start(options, tmp_path)
        with Console(io.StringIO()) as console:
            run = config.but(total_timesteps=total * 64)
            train(run, options, console, start=start, env=probes.Grid())
        options = TrainOptions(resume=str(tmp_path / "mine"))
    logs = tmp_path / "mine" / "logs"
    assert "update 7/7" in (logs / "training.log").read_text()
    events = EventAccumulator(str(logs), {"scalars": 0}).Reload()
    steps = [point.step for point in events.Scalars("train/entropy")]
    assert steps == [row["update"] for row in rows_of(tmp_path / "mine")]
    assert not {"events", "log.txt"} & {path.name for path in (tmp_path / "mine").iterdir()}


@pytest.mark.thorough
def test_trackers_are_told_metrics_alarms_and_evaluations(tmp_path: Path) -> None:
    make, _ = best_at({3: 1.0, 6: 3.0, 7: 0.0})
    config = config_in(tmp_path, tensorboard=True, eval_interval=3, lr=1.0, hidden_dim=64)
    with Console(io.StringIO()) as console:
        train(config, MINE, console, env=probes.Grid(), make_evaluate=make)
    events = EventAccumulator(str(tmp_path / "mine" / "events"), {"scalars": 0}).Reload()
    rows = rows_of(tmp_path / "mine")
    for name in ("train/entropy", "eval/mean_return"):
        points = [(point.step, point.value) for point in events.Scalars(name)]
        assert points == [(row["update"], pytest.approx(row[name])) for row in rows if name in row]
    fired = [name for row in rows for name in row.get("alarms", [])]
    assert fired
    assert {f"alarm/{name}/text_summary" for name in fired} <= set(events.Tags()["tensors"])


def test_trackers_start_when_the_first_update_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    updates, before_start = [], []
    run = Trainer.run

    def counted(self: Trainer, state: TrainState, count: int) -> TrainState:
        updates.append(count)
        return run(self, state, count)

    monkeypatch.setattr(Trainer, "run", counted)
    monkeypatch.setattr(Trackers, "start", lambda _: before_start.append(sum(updates)))
    run_of(tmp_path, tensorboard=True)
    assert before_start[0] == 1


def test_metrics_are_strict_json(tmp_path: Path) -> None:
    run_of(tmp_path)
    for line in (tmp_path / "mine" / "metrics.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(name))
