"""Groups of runs: equal settings but for the seed, or as the user names them."""

from pathlib import Path

import pytest
from made_runs import make_run

from hackmatrix.core.errors import UserError
from hackmatrix.research.comparison.groups import groups_of, read_groups

RETURN = "train/mean_episode_return"


def grouped(*words: object) -> dict[str, list[tuple[str, int]]]:
    """Environment and seed of each agent, by group."""
    runs, named = read_groups([str(word) for word in words])
    return {group.name: group.pairs() for group in groups_of(runs, named, RETURN)}


def test_the_seed_devices_and_logging_do_not_set_runs_apart(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path / "a", float, seeds=[3]),
        make_run(tmp_path / "b", float, seeds=[1, 2], num_devices=2, log_interval=7),
    ]
    assert grouped(*runs) == {"a and 1 more": [("HackMatrix", s) for s in (1, 2, 3)]}


def test_groups_are_named_by_what_sets_them_apart_if_that_is_short(tmp_path: Path) -> None:
    one = make_run(tmp_path / "one", float, lr=0.001, gamma=0.9)
    other = make_run(tmp_path / "other", float, lr=0.002, gamma=0.99)
    assert list(grouped(one, other)) == ["lr 0.001, gamma 0.9", "lr 0.002, gamma 0.99"]
    far = make_run(
        tmp_path / "far", float, lr=0.002, gamma=0.9, gae_lambda=0.5, clip_eps=0.1, vf_coef=1.0
    )
    assert list(grouped(one, far)) == ["one", "far"]


def test_a_seed_that_would_count_twice_is_refused(tmp_path: Path) -> None:
    a, b = (make_run(tmp_path / name, float, seeds=[0]) for name in "ab")
    with pytest.raises(UserError, match="the same settings and the seed 0"):
        grouped(a, b)
    found = grouped(f"old={a}", f"new={b}")
    assert found == {name: [("HackMatrix", 0)] for name in ("old", "new")}


def test_named_groups_hold_the_same_environments(tmp_path: Path) -> None:
    a = make_run(tmp_path / "a", float)
    b = make_run(tmp_path / "b", float, env="Acrobot-v1")
    with pytest.raises(UserError, match="new is of Acrobot-v1, old of HackMatrix"):
        grouped(f"old={a}", f"new={b}")
    both = grouped(f"old={a},{b}")
    assert both == {"old": [("Acrobot-v1", 0), ("HackMatrix", 0)]}


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ("{a} {a}", "is given twice"),
        ("x={a} {b}", "give all runs as NAME=RUN,RUN or none"),
        ("x={a} x={b}", "a group is given once"),
        ("={a}", "a group is given once"),
        ("x={a} y={a}", "is given twice"),
    ],
)
def test_command_lines_that_name_groups_wrongly(tmp_path: Path, form: str, problem: str) -> None:
    a, b = (make_run(tmp_path / name, float) for name in "ab")
    with pytest.raises(UserError, match=problem):
        grouped(*form.format(a=a, b=b).split())
