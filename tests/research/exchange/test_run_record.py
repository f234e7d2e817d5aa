"""Runs read out as frames, and plotted."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from made_runs import make_run

import hackmatrix
from hackmatrix.core.errors import UserError

pytestmark = pytest.mark.thorough

RETURN = "train/mean_episode_return"
KINDS = ("pandas", "polars", "numpy")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two agents with a row that lacks one value, an evaluation, an alarm and a start."""
    path = make_run(tmp_path / "run", float, updates=2, seeds=[4, 5], lr=0.5)
    rows = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    del rows[0]["agents"][1][RETURN]
    rows[0] |= {f"low/{RETURN}": 1.0, "alarms": ["return_flat"]}
    agents = [{"seed": s, "eval/win_rate": s / 10} for s in (4, 5)]
    rows.append({"update": 2, "timesteps": 9, "eval/win_rate": 0.45, "agents": agents})
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (path / "starts.jsonl").write_text('{"update": 0, "commit": "abc"}\n')
    return path


def test_frames_have_a_row_for_each_agent_at_each_time(run: Path) -> None:
    found = hackmatrix.read_run(run, frame="numpy")
    assert found.metrics["update"].tolist() == [1, 1, 2, 2]
    assert found.metrics["seed"].tolist() == [4, 5, 4, 5]
    assert found.metrics["seed"].dtype == np.int64
    steps = found.metrics["timesteps"]
    expected = np.where([1, 0, 1, 1], steps + found.metrics["seed"], np.nan)
    np.testing.assert_array_equal(found.metrics[RETURN], expected)
    assert found.metrics["train/steps_per_second"].tolist() == [1000.0] * 4  # of all together
    assert set(found.metrics) == {"update", "timesteps", "seed", RETURN, "train/steps_per_second"}
    assert found.evaluations["eval/win_rate"].tolist() == [0.4, 0.5]
    assert set(found.evaluations) == {"update", "timesteps", "seed", "eval/win_rate"}
    assert found.alarms == [(1, "return_flat")]
    assert (found.settings["lr"], found.settings["num_seeds"]) == (0.5, 2)
    assert found.starts[0]["commit"] == "abc"


def test_a_single_agent_has_the_seed_of_its_settings(tmp_path: Path) -> None:
    found = hackmatrix.read_run(make_run(tmp_path / "run", float, seeds=[7]), frame="numpy")
    assert found.metrics["seed"].tolist() == [7] * 10
    assert len(found.evaluations["update"]) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_each_library_makes_the_same_frame(kind: str, run: Path) -> None:
    pytest.importorskip(kind)
    expected = hackmatrix.read_run(run, frame="numpy").metrics
    found = hackmatrix.read_run(run, frame=kind).metrics  # type: ignore[arg-type]
    assert list(found.keys() if kind == "numpy" else found.columns) == list(expected)
    for name in expected:
        np.testing.assert_array_equal(np.asarray(found[name]), expected[name])


def test_the_first_library_that_is_installed_is_taken(run: Path, monkeypatch: Any) -> None:
    # Which ones are installed is a matter of the machine, so it is made up here.
    installed, made = [*KINDS], list[str]()
    there = SimpleNamespace(DataFrame=dict)
    module = "hackmatrix.research.exchange.run_record"
    monkeypatch.setattr(f"{module}.find_spec", lambda name: there if name in installed else None)
    monkeypatch.setattr(importlib, "import_module", lambda name: made.append(name) or there)
    for _ in range(3):
        hackmatrix.read_run(run)
        installed.pop(0)
    assert made == ["pandas"] * 2 + ["polars"] * 2  # NumPy's frame needs none
    with pytest.raises(UserError, match="frame must be one of pandas, polars, numpy"):
        hackmatrix.read_run(run, frame="pandas")


def test_a_notebook_shows_plots(run: Path) -> None:
    picture = hackmatrix.read_run(run).plot(RETURN, "eval/win_rate")
    assert picture._repr_svg_() == picture
    ElementTree.fromstring(picture)
    assert picture.count("stroke-opacity: 0.45") == 4  # a line for each agent
    assert picture.count("stroke-width: 2;") == 2  # and the mean
    with pytest.raises(UserError, match=r"the run has no metric nope; it has eval/win_rate, train"):
        hackmatrix.read_run(run).plot("nope")


def test_what_is_no_run_is_told(tmp_path: Path, run: Path) -> None:
    with pytest.raises(UserError, match="is no folder of a run"):
        hackmatrix.read_run(tmp_path)
    (run / "metrics.jsonl").write_text("")
    with pytest.raises(UserError, match="has no metrics yet"):
        hackmatrix.read_run(str(run))


def test_no_jax_is_needed(run: Path) -> None:
    code = (
        "import sys; sys.modules['jax'] = None\n"
        f"import hackmatrix; found = hackmatrix.read_run({str(run)!r})\n"
        "print(len(found.metrics), found.plot()[:4])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "4 <svg\n", result.stderr
