"""Trials of a study: which of them count, and which are made again."""

from pathlib import Path

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState

from hackmatrix.research.tuning import study as studies
from hackmatrix.research.tuning.plan import SearchPlan, TuneOptions, plan_of


@pytest.fixture
def search(tmp_path: Path) -> tuple[TuneOptions, SearchPlan]:
    options = TuneOptions(output_dir=tmp_path / "search", seed=1)
    plan = plan_of(options)
    plan.write()
    return options, plan


def test_failed_trials_count_and_those_that_were_given_up_do_not() -> None:
    study = optuna.create_study()
    study.enqueue_trial({"x": 0.5})
    assert [studies.counts(trial) for trial in study.trials] == [False]  # it waits
    failed = study.ask({"x": FloatDistribution(0, 1)})
    failed.set_user_attr(studies.REASON, "no memory")
    study.tell(failed, state=TrialState.FAIL)
    given_up = study.ask({"x": FloatDistribution(0, 1)})
    studies.give_up(study, given_up.number, given_up.params)
    assert [studies.counts(trial) for trial in study.trials] == [True, False, False]
    assert study.ask({"x": FloatDistribution(0, 1)}).params == given_up.params  # made later


def test_trials_whose_worker_is_gone_are_taken_over(search: tuple[TuneOptions, SearchPlan]) -> None:
    options, plan = search
    study = studies.open_study(options, plan, "tpe")
    gone, alive, elsewhere = (studies.ask(study, plan, "tpe", 9) for _ in range(3))
    assert gone is not None and alive is not None and elsewhere is not None  # noqa: PT018
    for trial in (gone, alive):
        trial.set_user_attr(studies.PLACE, studies.worker_address(plan))
    elsewhere.set_user_attr(studies.PLACE, "another-machine:/search")
    with studies.lock_of(plan, "tpe", alive.number):
        assert studies.take_over(study, plan, "tpe") == 1
    states = [trial.state for trial in study.trials[:3]]
    assert states == [TrialState.FAIL, TrialState.RUNNING, TrialState.RUNNING]
    assert study.trials[3].state == TrialState.WAITING


def test_there_is_no_next_trial_after_the_last_one(search: tuple[TuneOptions, SearchPlan]) -> None:
    options, plan = search
    study = studies.open_study(options, plan, "random")
    assert studies.ask(study, plan, "random", 1) is not None
    assert studies.ask(study, plan, "random", 1) is None


def test_equal_seeds_ask_for_equal_settings_and_workers_for_others(tmp_path: Path) -> None:
    def first(folder: str, worker: int) -> dict[str, object]:
        options = TuneOptions(output_dir=tmp_path / folder, seed=1)
        plan = plan_of(options)
        plan.write()
        trial = studies.ask(studies.open_study(options, plan, "random", worker), plan, "random", 1)
        assert trial is not None
        return trial.params

    assert first("a", 0) == first("b", 0) != first("c", 1)


def test_what_a_full_disk_left_of_a_line_is_dropped(search: tuple[TuneOptions, SearchPlan]) -> None:
    options, plan = search
    study = studies.open_study(options, plan, "tpe")
    studies.ask(study, plan, "tpe", 9)
    journal = next(plan.folder.glob("*.log"))
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"op_code": 4, "wor')
    again = studies.open_study(options, plan, "tpe")
    assert len(again.trials) == 1
    studies.ask(again, plan, "tpe", 9)
    assert journal.read_bytes().startswith(whole)
    assert b'"wor{' not in journal.read_bytes()
