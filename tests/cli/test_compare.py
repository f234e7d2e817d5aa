"""The command `hackmatrix compare`: groups, equal steps and seconds, pairs, refusals."""

import json
import math
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
    said = compared(capsys, *runs)
    assert [group["name"] for group in said["groups"]] == ["lr 0.001", "lr 0.0003"]
    assert said["metric"] == "train/mean_episode_return"
    assert said["steps"]["at"] == [2.5 * BATCH, 5 * BATCH, 7.5 * BATCH, 10 * BATCH]
    assert iqms(said, "steps", "lr 0.001") == [3.0, 5.5, 8.0, 10.5]  # between rows on the line
    (difference,) = said["steps"]["differences"]
    assert difference["paired_by"] == "seeds"
    assert difference["values"][-1] == {"iqm": 0.0, "low": 0.0, "high": 0.0}


def test_at_equal_seconds_the_faster_run_is_further(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = make_run(tmp_path / "slow", lambda steps: steps / BATCH, speed=BATCH)
    fast = make_run(tmp_path / "fast", lambda steps: steps / BATCH, speed=2 * BATCH)
    said = compared(capsys, f"slow={slow}", f"fast={fast}")
    assert iqms(said, "steps", "slow") == iqms(said, "steps", "fast")
    assert said["seconds"]["at"] == [1.25, 2.5, 3.75, 5.0]  # the fast one ends after 5 s
    assert iqms(said, "seconds", "slow")[-1] == 5.0
    assert iqms(said, "seconds", "fast")[-1] == 10.0
    assert said["seconds"]["shortest"] == str(fast)
    assert said["seconds"]["groups"]["fast"][0]["low"] is None  # one seed has no interval
    assert main(["compare", f"slow={slow}", f"fast={fast}"]) == 0
    assert "1.25 s  2.5 s  3.75 s  5 s" in capsys.readouterr().out


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


def test_equal_seeds_are_paired_by_their_evaluation_games(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metric = "eval/mean_return"
    for name, gain in (("a", 0.0), ("b", 3.0)):
        for seed in (0, 100):
            run = tmp_path / f"{name}{seed}"
            make_run(run, lambda _, gain=gain: gain, metric=metric, seeds=[seed])
    groups = [f"{name}={tmp_path}/{name}0,{tmp_path}/{name}100" for name in "ab"]
    (difference,) = compared(capsys, *groups)["steps"]["differences"]
    assert difference["paired_by"] == "seeds and evaluation games"
    assert difference["values"][-1] == {"iqm": 3.0, "low": 3.0, "high": 3.0}
    text_code = main(["compare", *groups])
    text = capsys.readouterr().out
    assert text_code == 0
    assert "b less a, paired by seeds and evaluation games" in text
    assert "+3 [+3, +3]" in text


def test_three_seeds_have_the_interval_of_student(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path / "a", lambda steps: steps / BATCH, seeds=range(3))
    make_run(tmp_path / "b", lambda steps: 2 * steps / BATCH, seeds=range(3, 6))
    said = compared(capsys, f"a={tmp_path}/a", f"b={tmp_path}/b")
    last = said["steps"]["groups"]["a"][-1]
    reach = 4.302653 / 3**0.5  # times the standard deviation, 1
    assert last == pytest.approx({"iqm": 11, "low": 11 - reach, "high": 11 + reach})
    (difference,) = said["steps"]["differences"]
    assert difference["improvement"][-1]["probability"] == 1.0
    assert said["steps"]["agents"]["a"] == [[x + s for x in (2.5, 5, 7.5, 10)] for s in range(3)]
    assert said["steps"]["profiles"]["groups"]["b"][0]["share"] == 1.0
    assert main(["compare", f"a={tmp_path}/a", f"b={tmp_path}/b"]) == 0
    assert "probability of b above a" in capsys.readouterr().out


def test_the_reference_is_named_or_a_scale(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, gain in (("a", 1.0), ("b", 3.0)):
        make_run(tmp_path / name, lambda _, gain=gain: gain, env="CartPole-v1")
    groups = [f"{name}={tmp_path}/{name}" for name in "ab"]
    said = compared(capsys, *groups, "--reference", "b")
    assert said["reference"] == "b"
    assert said["steps"]["differences"][0]["values"][-1]["iqm"] == -2.0
    said = compared(capsys, *groups, "--reference", "CartPole-v1=1,5")
    assert said["scales"] == {"CartPole-v1": [1, 5]}
    assert iqms(said, "steps", "b")[-1] == 0.5


def test_several_environments_are_strata_of_one_scale(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, gain in (("worse", 0.0), ("better", 1.0)):
        for env, size in (("CartPole-v1", 100.0), ("Acrobot-v1", 1.0)):
            make_run(
                tmp_path / f"{name}-{env}",
                lambda steps, gain=gain, size=size: size * (gain if steps > BATCH else -1),
                env=env,
                seeds=[0],
            )
    groups = [
        f"{name}={tmp_path}/{name}-CartPole-v1,{tmp_path}/{name}-Acrobot-v1"
        for name in ("worse", "better")
    ]
    said = compared(capsys, *groups)
    assert iqms(said, "steps", "worse")[-1] == 1.0  # the most that the first group had
    assert iqms(said, "steps", "better")[-1] == 2.0
    assert said["scales"] == {"Acrobot-v1": [-1, 0], "CartPole-v1": [-100, 0]}


def test_the_plot_has_panels_for_steps_for_seconds_and_of_profiles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [
        make_run(tmp_path / f"r{seed}", lambda steps: steps, seeds=[seed], lr=lr)
        for seed, lr in ((0, 0.1), (1, 0.1), (2, 0.2), (3, 0.2))
    ]
    compared(capsys, *runs, "--plot", tmp_path / "plot.svg")
    text = (tmp_path / "plot.svg").read_text()
    ElementTree.fromstring(text)
    assert text.count("stroke-opacity: 0.45") == 2 * 4  # a thin line for each agent
    assert text.count('id="FillBetweenPolyCollection') == 2 * 2 + 2  # of groups, and profiles
    assert ">lr 0.1<" in text
    assert "nan" not in text


def test_settings_that_a_file_lacks_have_their_defaults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [make_run(tmp_path / name, lambda steps: steps, seeds=[0]) for name in "ab"]
    (runs[0] / "config.yaml").write_text("training: {seed: 1}\n")  # as an earlier version wrote
    (group,) = compared(capsys, *runs)["groups"]
    assert [agent["seed"] for agent in group["agents"]] == [0, 1]
    (runs[0] / "config.yaml").write_text("")
    assert main(["compare", f"x={runs[0]}", f"y={runs[1]}"]) == 0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["nowhere"], "nowhere: is no folder of a run"),
        (["a", "a"], "is given twice"),
        (["x=a", "a"], "give all runs as NAME=RUN,RUN or none"),
        (["x=a", "x=b"], "a group is given once"),
        (["a", "--metric", "eval/nothing"], "has no metric eval/nothing; it has train/"),
        (["a", "empty"], "has no metrics yet"),
        (["a", "short"], "seed 0 has only one value"),
        (["a", "cart"], "groups of several environments are given as NAME=RUN,RUN"),
        (["a", "late"], "there are no equal steps"),
        (["a", "--reference", "b"], "--reference b: is one of the groups a, or ENV=LOW,HIGH"),
        (["a", "--reference", "HackMatrix=1,x"], "must be ENV=LOW,HIGH"),
        (["a", "--plot", "nowhere/plot.svg"], "there is no folder nowhere"),
        (["a", "--plot", "a/config.yaml"], "--plot a/config.yaml: must end in .svg"),
        (["a", "b"], "a and b: have the same settings and the seed 0"),
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
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    make_run(Path("a"), lambda steps: steps)
    make_run(Path("b"), lambda steps: steps)
    make_run(Path("cart"), lambda steps: steps, env="CartPole-v1")
    make_run(Path("short"), lambda steps: steps, updates=1)
    make_run(Path("empty"), lambda steps: steps, updates=0)
    make_run(Path("late"), lambda steps: steps, num_envs=256 * 16)
    make_run(Path("nan"), lambda _: math.nan, seeds=[1])
    make_run(Path("half"), lambda steps: steps, seeds=[0, 1])
    change_rows(Path("half"), lambda row: row["agents"][1].pop("train/mean_episode_return"))
    make_run(Path("alarmed"), lambda steps: steps)
    change_rows(Path("alarmed"), lambda row: row.update(alarms=["entropy"]))
    make_run(Path("untimed"), lambda steps: steps)
    change_rows(Path("untimed"), lambda row: row.pop("timesteps"))
    assert main(["compare", *argv]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
