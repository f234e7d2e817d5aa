"""Model cards: what is known of params, and nothing that is not."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from hackmatrix.cli.main import main
from hackmatrix.environments.interface.report import Column
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.research.evaluation.report import Report
from hackmatrix.research.evaluation.statistics import estimate
from hackmatrix.research.exchange.model_card import model_card
from hackmatrix.runs.params import Exported, save_params

PARAMS = {"params": {"Dense_0": {"kernel": np.ones((2, 3)), "bias": np.zeros(3)}}}
TRAINED = {
    "update": 3,
    "timesteps": 4096,
    "environment": "CartPole-v1",
    "version": "0.0.9",
    "config": TrainConfig.of(seed=8, lr=0.25, eval_episodes=100).as_dict(),
    "evaluation": {"mean_return": 41.5, "win_rate": 0.25},
}


def card(about: dict[str, Any], path: Path = Path("nowhere.npz"), **how: Any) -> str:
    return model_card("mine.onnx", Exported(path, PARAMS, about), **how)


def row(text: str, name: str) -> list[str]:
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_it_tells_settings_training_and_the_recorded_evaluation(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "seed_8").mkdir(parents=True)
    starts = [
        {"update": 0, "commit": "old"},
        {"update": 1, "commit": "abc", "versions": {"jax": "9"}},
    ]
    (run / "starts.jsonl").write_text("".join(json.dumps(each) + "\n" for each in starts))
    text = card(TRAINED, run / "seed_8" / "final_params.npz")
    told = {
        "environment": "CartPole-v1",
        "params": "9 in 2 arrays",
        "trained": "4,096 steps, 3 updates",
        "hackmatrix": "0.0.9",
        "commit": "abc",
        "versions": "jax 9",
    }
    assert {name: row(text, name) for name in told} == {name: [it] for name, it in told.items()}
    assert row(text, "mean_return") == ["41.5", "-"]
    wilson = estimate(np.arange(100) < 25)
    assert row(text, "win_rate") == ["0.25", f"{wilson.low:.4g} to {wilson.high:.4g}"]
    assert "It learned by playing" in text
    settings = yaml.safe_load(text.partition("```yaml")[2].partition("```")[0])
    assert settings == {"seed": 8, "lr": 0.25, "eval_episodes": 100}


def test_games_that_were_played_for_it_have_intervals() -> None:
    values = np.array([1.0, 2.0, 6.0])
    column = Column("return", "mean_return", values)
    report = Report(3, [column], [estimate(values)], np.array([True, True, False]), [])
    text = card(TRAINED, report=report)
    found = estimate(values)
    assert row(text, "return") == ["3", f"{found.low:.4g} to {found.high:.4g}"]
    assert "3 games of seed 0, at most 2,000 actions each, 1 cut off" in text
    assert "win_rate" not in text


@pytest.mark.parametrize(
    ("about", "origin"),
    [
        ({}, "It is not recorded what it learned from."),
        ({"cloned": {"data": "d"}}, "It learned from recorded games of a player: d."),
        ({**TRAINED, "config": {"init_from": "y.npz"}}, "beginning with the params of y.npz"),
    ],
)
def test_it_says_no_more_than_is_recorded(about: dict[str, Any], origin: str) -> None:
    text = card(about)
    assert origin in text
    assert "None" not in text.replace("None is recorded", "")
    assert ("## Settings" in text) == bool(about.get("config"))


def test_facts_of_a_strange_file_stay_in_their_cell() -> None:
    text = card({"environment": "a | b\n# Title\n" + "x" * 999, "version": {"n": [1]}})
    assert "\n# Title" not in text
    assert r"a \| b # Title x" in text
    assert max(map(len, text.splitlines())) < 400


def test_converting_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "a.npz", tmp_path / "b.safetensors"
    save_params(source, PARAMS, {"environment": "CartPole-v1"})
    (tmp_path / "b.safetensors.md").write_text("mine")
    assert main(["checkpoint", "convert", str(source), str(target)]) == 2
    assert "b.safetensors.md: exists already: choose another name" in capsys.readouterr().err
    assert (tmp_path / "b.safetensors.md").read_text() == "mine"
    assert not target.exists()
    (tmp_path / "b.safetensors.md").unlink()
    assert main(["checkpoint", "convert", str(source), str(target)]) == 0
    assert row((tmp_path / "b.safetensors.md").read_text(), "environment") == ["CartPole-v1"]
