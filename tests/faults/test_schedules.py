"""Runs under schedules of faults: whatever happens, they end as the run that nothing met."""

import random
from collections import Counter
from pathlib import Path

import pytest
from fault_rig import EVALUATED, RUN, SETTINGS, UPDATES, Lost, Rig, advice, endure, process_of
from grid_processes import rows_of
from small_runs import run_of

from hackmatrix.agents.networks.policy import load_policy
from hackmatrix.runs.checkpoints import checkpoints_of, load_checkpoint, remove_checkpoint
from hackmatrix.runs.metrics_file import read_metrics

pytestmark = pytest.mark.thorough

QUICK = (0,)
MANY = 200
QUICK_EVALUATED = (8,)  # 5, 8, 9 and 17 lost the best agent once
MANY_EVALUATED = 100
SCORE = "eval/mean_return"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("undisturbed"), SETTINGS)


@pytest.fixture(scope="module")
def undisturbed_evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("evaluated"), EVALUATED)


def trained(folder: Path, settings: list[str]) -> Path:
    process = process_of(folder, settings, None)
    process.join()
    assert process.exitcode == 0, (folder / "output.txt").read_text()
    return folder / RUN


def assert_nothing_lost(run: Path, undisturbed: Path) -> None:
    held, expected = (
        load_checkpoint(each / "checkpoints" / str(UPDATES))[0] for each in (run, undisturbed)
    )
    assert {name: array.tobytes() for name, array in held.items()} == {
        name: array.tobytes() for name, array in expected.items()
    }
    assert rows_of(run) == rows_of(undisturbed)
    for name in ("final_params.npz", f"params_{UPDATES}.npz"):
        assert (run / name).read_bytes() == (undisturbed / name).read_bytes()
    left = [path for path in run.rglob("*") if ".saving-" in path.name]
    assert left == []


def assert_best_is_kept(run: Path) -> None:
    """The checkpoint, its params and `best_params` of the first of the highest evaluations."""
    scores = {row["update"]: row[SCORE] for row in read_metrics(run) if SCORE in row}
    best = max(scores, key=lambda update: scores[update])
    assert best in [checkpoint.update for checkpoint in checkpoints_of(run)]
    for suffix in (".json", ".npz"):
        copy, original = run / f"best_params{suffix}", run / f"params_{best}{suffix}"
        assert copy.read_bytes() == original.read_bytes()
    assert load_policy(run / "best_params.npz").about["update"] == best


@pytest.mark.slow
@pytest.mark.parametrize("seed", QUICK)
def test_a_run_that_faults_meet_ends_as_the_one_that_nothing_met(
    seed: int, tmp_path: Path, undisturbed: Path
) -> None:
    assert endure(tmp_path, seed)
    assert_nothing_lost(tmp_path / RUN, undisturbed)


@pytest.mark.slow  # test_keeper and test_saver have the quick cases
@pytest.mark.parametrize("seed", QUICK_EVALUATED)
def test_the_best_agent_outlives_file_operations_that_fail(seed: int, tmp_path: Path) -> None:
    endure(tmp_path, seed, evaluated=True)
    assert_best_is_kept(tmp_path / RUN)


def test_the_rig_takes_the_advice_of_the_command(tmp_path: Path) -> None:
    run = run_of(tmp_path / "runs", save_interval=2).run
    rig = Rig(tmp_path, random.Random(0))
    assert advice(rig) == []
    *_, before, newest = checkpoints_of(run)
    (newest.path / "facts.json").write_text("")
    assert advice(rig) == ["--resume", str(before.path), "--rewind"]
    remove_checkpoint(newest)  # its params stay, as if its saving had failed
    assert advice(rig) == ["--rewind"]


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("evaluated", [False, True])
def test_many_schedules_lose_nothing(
    evaluated: bool,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    undisturbed = request.getfixturevalue("undisturbed_evaluated" if evaluated else "undisturbed")
    tried: Counter[str] = Counter()
    lost = []
    for seed in range(MANY_EVALUATED if evaluated else MANY):
        folder = tmp_path / str(seed)
        folder.mkdir()
        try:
            tried.update(endure(folder, seed, evaluated=evaluated))
            assert_nothing_lost(folder / RUN, undisturbed)
            if evaluated:
                assert_best_is_kept(folder / RUN)
        except (Lost, AssertionError) as error:
            lost.append(f"{seed}: {error}")
        with capsys.disabled():
            print(f"{seed + 1} schedules, {tried.total()} faults, {len(lost)} lost", flush=True)
            print(*lost[-1:], flush=True)
    with capsys.disabled():
        print("\n".join(f"{name:<18}{count:>4}" for name, count in tried.most_common()))
    assert lost == []
