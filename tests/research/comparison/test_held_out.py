"""Groups of agents on the same held-out games: seeds and games are both samples."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hackmatrix.cli.main import main
from hackmatrix.research.comparison.held_out import difference, mean


def drawn(seed: int, agents: int, games: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    own, luck = rng.normal(size=(agents, 1)), rng.normal(size=games)
    return np.asarray(own + luck + rng.normal(size=(agents, games)))


def test_of_one_agent_it_is_the_interval_of_student_over_games() -> None:
    ours, theirs = drawn(0, 1, 40), drawn(1, 1, 40)
    expected = stats.ttest_1samp(ours[0], 0).confidence_interval(0.95)
    assert mean(ours) == pytest.approx((ours.mean(), *expected))
    expected = stats.ttest_rel(ours[0], theirs[0]).confidence_interval(0.95)
    assert difference(ours, theirs)[1:] == pytest.approx(expected)


def test_agents_that_differ_alone_have_the_interval_of_student_over_agents() -> None:
    values = np.repeat([[1.0], [2.0], [4.0]], 30, axis=1)  # in all games alike
    expected = stats.ttest_1samp([1, 2, 4], 0).confidence_interval(0.95)
    assert mean(values)[1:] == pytest.approx(expected)
    other = np.repeat([[0.0], [3.0], [5.0], [9.0]], 30, axis=1)
    expected = stats.ttest_ind([1, 2, 4], [0, 3, 5, 9], equal_var=False).confidence_interval(0.95)
    width = difference(values, other).high - difference(values, other).low
    assert width >= expected.high - expected.low  # whose degrees of freedom are not rounded down
    assert width == pytest.approx(expected.high - expected.low, rel=0.15)


def test_the_variance_is_that_of_an_analysis_of_variance() -> None:
    values = drawn(2, 4, 25)
    agents, games = values.shape
    square = {  # means of squares, each by its sum over all cells
        "agents": games * ((values.mean(1) - values.mean()) ** 2).sum() / (agents - 1),
        "games": agents * ((values.mean(0) - values.mean()) ** 2).sum() / (games - 1),
    }
    cells = sum(
        (values[i, j] - values[i].mean() - values[:, j].mean() + values.mean()) ** 2
        for i in range(agents)
        for j in range(games)
    )
    rest = cells / ((agents - 1) * (games - 1))
    variance = (square["agents"] + square["games"] - rest) / (agents * games)
    parts = [square["agents"] / (agents * games), square["games"] / (agents * games)]
    freedom = int(variance**2 / (parts[0] ** 2 / (agents - 1) + parts[1] ** 2 / (games - 1)))
    found = mean(values)
    assert found.high - found.mean == pytest.approx(stats.t.ppf(0.975, freedom) * variance**0.5)


def test_games_that_both_groups_find_hard_do_not_widen_their_difference() -> None:
    luck = 100 * np.random.default_rng(3).normal(size=50)
    ours, theirs = (np.random.default_rng(seed).normal(size=(3, 50)) + luck for seed in (4, 5))
    assert mean(ours).high - mean(ours).low > 40
    assert difference(ours, theirs).high - difference(ours, theirs).low < 3


def written(path: Path, agents: dict[str, list[float]], *, first: int = 0) -> str:
    lines = ["agent,game,seed,won,score"]
    for name, values in agents.items():
        lines += [f"{name},{first + i},0,1,{value}" for i, value in enumerate(values)]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_the_command_groups_agents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = written(tmp_path / "1.csv", {"runs/a/seed_0": [1, 2, 3], "runs/a/seed_1": [2, 3, 4]})
    two = written(tmp_path / "2.csv", {"runs/b": [5, 6, 9], "scripted": [0, 0, 0]})
    flags = ["--metric", "score", "--games", one, two]
    groups = ["old=runs/a", "new=runs/b", "scripted"]
    assert main(["compare", *groups, *flags, "--reference", "scripted", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [group["name"] for group in said["groups"]] == ["scripted", "old", "new"]
    assert said["groups"][1]["agents"] == ["runs/a/seed_0", "runs/a/seed_1"]
    assert said["games"] == 3
    assert [each["mean"] for each in said["differences"]] == [2.5, pytest.approx(20 / 3)]
    assert main(["compare", "runs/b", "runs/a", *flags]) == 0
    text = capsys.readouterr().out
    assert "runs/a less runs/b" in text
    assert "runs/b: one agent, so intervals say nothing of other training seeds" in text


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["x"], "x: has no games; there are a, b, late"),
        (["n="], "(nothing): has no games"),
        (["n=a,a"], "a,a: names an agent twice"),
        (["n=a", "n=b"], "n=b: a group is given once"),
        (["a", "late", "--metric", "won"], "late: has played other games than a"),
        (["a", "--metric", "colour"], "--metric colour: the games have agent, game, seed, won, sc"),
        (["b", "--metric", "score"], "--metric score: not all games have a number of it"),
        (["a", "--metric", "won", "--reference", "b"], "--reference b: is one of a"),
        (["a", "--games", "other.csv"], "--games other.csv: is no file of `hackmatrix evaluate"),
        (["a", "--games", "games.csv"], "--games games.csv: a has game 0 twice"),
        (["a", "--games", "none.csv"], "--games none.csv: No such file"),
        (["a", "--games", "bytes.csv"], "--games bytes.csv: "),
        (["a", "--plot", "x.svg"], "--plot draws curves of runs"),
    ],
)
def test_what_can_not_be_compared_is_refused_in_one_line(
    argv: list[str], message: str, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    written(Path("games.csv"), {"a": [1, 2], "b": [1, "x"]})  # type: ignore[list-item]
    written(Path("late.csv"), {"late": [1, 2]}, first=7)
    Path("other.csv").write_text("a,b\n1,2\n")
    Path("bytes.csv").write_bytes(b"\xff\xfe")
    assert main(["compare", *argv, "--games", "games.csv", "late.csv"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
