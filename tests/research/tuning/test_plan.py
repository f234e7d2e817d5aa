"""The plan of a search: settings of trials, of fresh seeds, and the same search again."""

from pathlib import Path

import pytest

from hackmatrix.core.errors import UserError
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.learning.settings.resolve import resolve
from hackmatrix.research.tuning.plan import PLAN, SearchPlan, TuneOptions, best_yaml, plan_of

SETTINGS = "training:\n  seed: 4\n  lr: 5.0e-3\n  total_timesteps: 80000\n  num_minibatches: 8\n"


def planned(folder: Path, **options: object) -> SearchPlan:
    file = folder / "base.yaml"
    file.write_text(SETTINGS)
    return plan_of(TuneOptions(config=file, output_dir=folder / "search", **options))  # type: ignore[arg-type]


def test_a_trial_has_the_files_settings_but_for_its_own(tmp_path: Path) -> None:
    plan = planned(tmp_path, num_seeds=2)
    trial = plan.of_trial({"training.gamma": 0.9})
    learning = trial.learning
    assert (learning.lr, learning.gamma, learning.num_minibatches) == (5e-3, 0.9, 8)
    assert list(trial.run.seeds) == [4, 5]
    assert not trial.report.tensorboard
    assert not trial.report.wandb


def test_a_search_without_a_file_is_around_the_quick_settings_of_the_game(tmp_path: Path) -> None:
    plan = plan_of(TuneOptions(output_dir=tmp_path))
    assert plan.base == read_config(Path("quick"))
    other = plan_of(TuneOptions(output_dir=tmp_path, env="CartPole-v1"))
    assert other.base == {"env": "CartPole-v1"}


def test_fresh_seeds_are_those_that_no_trial_has(tmp_path: Path) -> None:
    plan = planned(tmp_path, num_seeds=1024, fresh_seeds=1024)
    assert not {*plan.of_trial({}).run.seeds} & {*plan.of_fresh({}).run.seeds}


def test_a_batch_size_that_is_searched_replaces_the_files_minibatches(tmp_path: Path) -> None:
    config = planned(tmp_path).config({"training.batch_size": 4096})
    assert config.learning.batch_size // config.learning.num_minibatches == 4096


def test_a_trial_has_some_forty_rows_however_long_it_is(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    for updates in (1, 40, 4_000):
        config = plan.of_trial({"training.total_timesteps": updates * 256 * 128})
        rows = config.learning.course.num_updates // config.report.log_interval
        assert min(updates, 40) <= rows < 80


def test_the_measure_is_the_return_of_evaluations_where_the_file_has_them(tmp_path: Path) -> None:
    assert planned(tmp_path).metric == "train/mean_episode_return"
    assert planned(tmp_path, metric="train/entropy").metric == "train/entropy"
    (tmp_path / "evaluated.yaml").write_text("logging:\n  eval_interval: 5\n")
    evaluated = plan_of(TuneOptions(config=tmp_path / "evaluated.yaml"))
    assert evaluated.metric == "eval/mean_return"


def test_another_search_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    planned(tmp_path).write()
    written = (tmp_path / "search" / PLAN).read_bytes()
    planned(tmp_path, fresh_seeds=7, sampler="random").write()  # not what it is about
    with pytest.raises(UserError, match="holds a search with other settings"):
        planned(tmp_path, num_seeds=9).write()
    assert (tmp_path / "search" / PLAN).read_bytes() == written


def test_the_best_settings_are_those_a_user_trains_with(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    file = tmp_path / "best.yaml"
    file.write_text(best_yaml(plan, {"training.lr": 1e-3}, "Trial 3"))
    assert file.read_text().startswith("# Trial 3\n")
    assert resolve({}, read_config(file))[0] == plan.config({"training.lr": 1e-3})
