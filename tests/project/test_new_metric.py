"""A new metric takes changes of exactly the files that CONTRIBUTING.md names."""

import json
from pathlib import Path

import pytest
from patched_package import files_of_recipe, patched_package, run_patched

EDITS = {
    "environments/hackmatrix/metric_table.py": [
        (
            '    Metric(\n        "stats/programs_owned",',
            '    Metric("stats/up_frac", Over.STEPS, "fraction of actions that go up"),\n',
        )
    ],
    "environments/hackmatrix/env.py": [
        ('        "stats/win_rate": info', '        "stats/up_frac": action == 0,\n')
    ],
}
TINY = (
    *("--num-envs", "4", "--num-steps", "4", "--num-minibatches", "1", "--update-epochs", "1"),
    *("--total-timesteps", "32", "--hidden-dim", "8", "--log-interval", "1", "--no-wandb"),
    *("--no-tensorboard", "--run-name", "run"),
)


def test_the_files_are_those_that_the_table_names() -> None:
    assert files_of_recipe("a metric of HackMatrix") == set(EDITS)


@pytest.mark.slow
def test_it_is_measured_in_training(tmp_path: Path) -> None:
    folder = patched_package(tmp_path, EDITS)
    run_patched(folder, "-m", "hackmatrix", "train", *TINY)
    (metrics,) = folder.glob("**/metrics.jsonl")
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    values = [row["stats/up_frac"] for row in rows if "stats/up_frac" in row]
    assert values
    assert min(values) >= 0
