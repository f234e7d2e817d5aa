"""The command `hackmatrix compare`: what it says and draws of groups of runs, and refusals."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from made_runs import BATCH, make_run

from hackmatrix.cli.main import main


def compared(capsys: pytest.CaptureFixture[str], *argv: object) -> dict[str, Any]:
    assert main(["compare", *map(str, argv), "--json"]) == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    return said


def change_rows(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes each row of metrics of a run."""
    file = run / "metrics.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows:
        change(row)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def iqms(said: dict[str, Any], axis: str, name: str) -> list[float]:
    return [each["iqm"] for each in said[axis]["groups"][name]]


def test_runs_that_differ_in_their_seed_alone_are_a_group_named_by_its_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [
        make_run(tmp_path / f"{lr}-{seed}", lambda steps: steps / BATCH, lr=lr, seeds=[seed])
        for lr in (0.001, 0.0003)
        for seed in (0, 1)
    ]
    plot = tmp_path / "plot.svg"
    said = compared(capsys, *runs, "--plot", plot)
    assert [group["name"] for group in said["groups"]] == ["lr 0.001", "lr 0.0003"]
    assert said["metric"] == "train/mean_episode_return"
    assert said["steps"]["at"] == [2.5 * BATCH, 5 * BATCH, 7.5 * BATCH, 10 * BATCH]
    assert iqms(said, "steps", "lr 0.001") == [3.0, 5.5, 8.0, 10.5]  # between rows on the line
    assert said["steps"]["agents"]["lr 0.001"] == [
        [x + s for x in (2.5, 5, 7.5, 10)] for s in (0, 1)
    ]
    (difference,) = said["steps"]["differences"]
    assert difference["paired_by"] == "seeds"
    assert difference["values"][-1] == {"iqm": 0.0, "low": 0.0, "high": 0.0}
    text = plot.read_text()  # panels for steps, for seconds and of profiles
    ElementTree.fromstring(text)
    assert text.count("stroke-opacity: 0.45") == 2 * 4  # a thin line for each agent
    assert text.count('id="FillBetweenPolyCollection') == 2 * 2 + 2  # of groups, and profiles
    assert ">lr 0.001<" in text
    assert "nan" not in text


def test_each_of_many_agents_has_its_share_of_the_seconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Four agents make four times the steps a second of one, so each is as fast as the one.
    alone = make_run(tmp_path / "alone", lambda steps: steps, speed=1000.0)
    many = make_run(tmp_path / "many", lambda steps: steps, speed=1000.0, seeds=range(4))
    said = compared(capsys, f"alone={alone}", f"many={many}")
    assert iqms(said, "seconds", "many")[-1] == iqms(said, "seconds", "alone")[-1] + 1.5
    assert [agent["seed"] for agent in said["groups"][1]["agents"]] == [0, 1, 2, 3]
    assert said["steps"]["differences"][0]["paired_by"] is None


def test_the_text_has_each_budget_and_how_agents_are_paired(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, gain in (("a", 0.0), ("b", 3.0)):
        for seed in (0, 100):
            run = tmp_path / f"{name}{seed}"
            value = {"metric": "eval/mean_return", "speed": BATCH * (1 + gain)}
            make_run(run, lambda _, gain=gain: gain, seeds=[seed], env="CartPole-v1", **value)
    groups = [f"{name}={tmp_path}/{name}0,{tmp_path}/{name}100" for name in "ab"]
    assert main(["compare", *groups]) == 0
    text = capsys.readouterr().out
    assert re.search(r"at equal seconds +seeds +1\.25 s +1\.88 s +2\.5 s", text)  # the fast one's
    assert "b less a, paired by seeds and evaluation games" in text
    assert "+3 [+3, +3]" in text
    assert "probability of b above a" in text
    assert compared(capsys, *groups, "--reference", "b")["reference"] == "b"
    assert (
        iqms(compared(capsys, *groups, "--reference", "CartPole-v1=3,103"), "steps", "b")[-1] == 0.5
    )


def test_settings_that_a_file_lacks_have_their_defaults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [make_run(tmp_path / name, lambda steps: steps, seeds=[0]) for name in "ab"]
    (runs[0] / "config.yaml").write_text("training: {seed: 1}\n")  # as an earlier version wrote
    (group,) = compared(capsys, *runs)["groups"]
    assert [agent["seed"] for agent in group["agents"]] == [0, 1]
    (runs[0] / "config.yaml").write_text("")
    assert main(["compare", f"x={runs[0]}", f"y={runs[1]}"]) == 0


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs that go with no others."""
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "a", lambda steps: steps)
    make_run(folder / "empty", lambda steps: steps, updates=0)
    make_run(folder / "short", lambda steps: steps, updates=1)
    make_run(folder / "nan", lambda _: math.nan, seeds=[1])
    make_run(folder / "half", lambda steps: steps, seeds=[0, 1])
    change_rows(folder / "half", lambda row: row["agents"][1].pop("train/mean_episode_return"))
    make_run(folder / "alarmed", lambda steps: steps)
    change_rows(folder / "alarmed", lambda row: row.update(alarms=["entropy"]))
    make_run(folder / "untimed", lambda steps: steps)
    change_rows(folder / "untimed", lambda row: row.pop("timesteps"))
    return folder


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["nowhere"], "nowhere: is no folder of a run"),
        (["a", "--metric", "eval/nothing"], "has no metric eval/nothing; it has train/"),
        (["a", "empty"], "has no metrics yet"),
        (["a", "short"], "seed 0 has only one value"),
        (["a", "--reference", "b"], "--reference b: is one of the groups a, or ENV=LOW,HIGH"),
        (["a", "--plot", "a/config.yaml"], "--plot a/config.yaml: must end in .svg"),
        (["x=a", "y=b,"], "y=b,: a group is given once"),
        (["a", "nan"], "nan: seed 1 has no finite value"),
        (["a", "half"], "half: seed 1 has no finite value"),
        (["alarmed", "--metric", "alarms"], "alarmed: has no metric alarms"),
        (["untimed"], "untimed: has no metrics yet"),
    ],
)
def test_what_can_not_be_compared_is_refused_in_one_line(
    argv: list[str],
    message: str,
    runs: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(runs)
    assert main(["compare", *argv]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
