"""Runs under schedules of faults: whatever happens, they end as the run that nothing met."""

from collections import Counter
from pathlib import Path

import pytest
from fault_rig import EVALUATED, RUN, SETTINGS, UPDATES, Lost, endure, process_of
from grid_processes import rows_of

from hackmatrix.agents.networks.policy import load_policy
from hackmatrix.runs.checkpoints import checkpoints_of, load_checkpoint
from hackmatrix.runs.metrics_file import read_metrics

MANY = 200
MANY_EVALUATED = 100  # 5, 8, 9 and 17 lost the best agent once
SCORE = "eval/mean_return"


def trained(folder: Path, settings: list[str]) -> Path:
    process = process_of(folder, settings)
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
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("evaluated", [False, True])
def test_many_schedules_lose_nothing(
    evaluated: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "undisturbed").mkdir()
    undisturbed = trained(tmp_path / "undisturbed", EVALUATED if evaluated else SETTINGS)
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
