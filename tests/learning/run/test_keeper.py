"""A run's best agent and files, when something goes wrong."""

import io
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from small_runs import run_of, updates_of

from hackmatrix.learning.settings.config import TrainOptions
from hackmatrix.runs.params import load_params, update_of_params
from hackmatrix.runs.saver import Saver

pytestmark = [pytest.mark.usefixtures("shared_programs"), pytest.mark.thorough]

SCORES = [1.0, 5.0, 3.0, 2.0]  # after updates 2, 4, 6 and 7: the second is the best


def evaluation_of(scores: list[float]) -> Any:
    """An evaluation that gives these scores in turn."""
    left = iter(scores)
    return lambda *_: lambda _: {"mean_return": next(left)}


def params_in(run: Path) -> dict[str, Any]:
    """The arrays of all files of params, by the place of the file."""
    files = run.rglob("*params*.npz")
    return {str(path.relative_to(run)): load_params(path).params for path in files}


def leftovers(run: Path) -> list[Path]:
    return [path for path in run.rglob("*") if ".saving-" in path.name]


@pytest.mark.parametrize("num_seeds", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_best_params_that_are_missing_are_made_from_the_best_checkpoint(
    num_seeds: int, tmp_path: Path
) -> None:
    each = [score for score in SCORES for _ in range(num_seeds)]
    settings: dict[str, Any] = {"eval_interval": 2, "normalize_observations": True}
    evaluation = evaluation_of(each)
    run = run_of(
        tmp_path, make_evaluate=evaluation, num_seeds=num_seeds, save_interval=7, **settings
    ).run
    expected = params_in(run)
    facts = {path: path.read_bytes() for path in run.rglob("*params*.json")}
    for path in run.rglob("*params*"):  # but those of updates whose checkpoints are gone
        if path.stem in ("best_params", "params_4", "params_7", "final_params"):
            path.unlink()
    assert params_in(run).keys() < expected.keys()
    outcome = run_of(tmp_path, TrainOptions(resume=str(run)))
    assert outcome.saved
    assert {path: path.read_bytes() for path in run.rglob("*params*.json")} == facts
    close = partial(np.testing.assert_allclose, rtol=1e-6)  # several are folded together
    assert params_in(run).keys() == expected.keys()
    jax.tree.map(
        np.testing.assert_array_equal if num_seeds == 1 else close, params_in(run), expected
    )


def test_a_run_that_cant_keep_its_best_says_so_and_the_next_one_does(tmp_path: Path) -> None:
    run, output = tmp_path / "mine", io.StringIO()
    evaluate = evaluation_of(SCORES)()

    def make(*_: Any) -> Any:
        (run / "best_params.npz" / "in the way").mkdir(parents=True)
        return evaluate

    outcome = run_of(tmp_path, output=output, make_evaluate=make, eval_interval=2, save_interval=1)
    assert not outcome.saved
    told = [line for line in output.getvalue().splitlines() if "best_params" in line]
    assert len(told) == 1
    assert told[0].startswith("warning: best_params can't be written: ")
    assert "warning: the best params could not be kept; --resume" in output.getvalue()
    assert 4 in updates_of(run)
    assert updates_of(run)[-1] == 7

    (run / "best_params.npz" / "in the way").rmdir()
    (run / "best_params.npz").rmdir()
    outcome = run_of(tmp_path, TrainOptions(resume=str(run)), eval_interval=None)
    assert outcome.saved
    assert update_of_params(run, "best_params") == 4


def test_a_best_checkpoint_that_is_damaged_can_not_give_its_params(tmp_path: Path) -> None:
    evaluation = evaluation_of(SCORES)
    run = run_of(tmp_path, make_evaluate=evaluation, eval_interval=2, save_interval=7).run
    for path in (*run.glob("best_params*"), *run.glob("params_4*")):
        path.unlink()
    (run / "checkpoints" / "4" / "foreign").touch()
    output = io.StringIO()
    outcome = run_of(tmp_path, TrainOptions(resume=str(run)), output=output)
    assert not outcome.saved
    assert "warning: the best params can't be made again: " in output.getvalue()
    assert "the file foreign does not belong there" in output.getvalue()


def test_what_a_kill_before_old_checkpoints_are_removed_leaves_goes_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_: Saver) -> None:
        raise SystemExit  # stands for a kill: nothing of the process comes after it

    settings = {"save_interval": 1, "keep_checkpoints": 2}
    run = run_of(tmp_path, total_timesteps=6 * 64, **settings).run
    with monkeypatch.context() as patched:
        patched.setattr(Saver, "remove_old", killed)
        with pytest.raises(SystemExit):
            run_of(tmp_path, TrainOptions(resume=str(run)), total_timesteps=7 * 64)
    doomed = run / "checkpoints" / ".saving-doomed-4-1"  # it was about to be removed
    (doomed / "arrays").mkdir(parents=True)
    for name in (".saving-probe-1", ".saving-.saving-probe-1-1", ".saving-config.yaml-1"):
        (run / name).touch()
    run_of(tmp_path, TrainOptions(resume=str(run)), total_timesteps=7 * 64)
    assert updates_of(run) == [6, 7]
    assert leftovers(run) == []


def test_a_checkpoint_whose_files_cant_be_removed_at_once_is_gone_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The removal of the last old checkpoint is cut short, as by a file that is in use."""
    monkeypatch.setattr("hackmatrix.runs.saver.remove_checkpoint", cut_short)
    run = run_of(tmp_path, save_interval=1, keep_checkpoints=2).run
    assert updates_of(run) == [6, 7]
    assert leftovers(run) == []


def cut_short(checkpoint: Any) -> None:
    path: Path = checkpoint.path
    path.rename(path.with_name(f".saving-doomed-{checkpoint.update}-1"))
