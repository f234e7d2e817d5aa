"""Params in a run's folder: those of each update, of the best checkpoint and of the end."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hackmatrix.runs.checkpoints import Facts
from hackmatrix.runs.exports import (
    export_best,
    export_final,
    export_params,
    is_exported,
    later_exports,
    newest_export,
    remove_export,
    remove_later_exports,
)
from hackmatrix.runs.params import load_params, update_of_params


def facts_of(update: int, score: float | None = None, agents: int = 1) -> Facts:
    evaluation: dict[str, Any] | None = None
    if score is not None:
        each = [{"mean_return": score + k} for k in range(agents)]
        evaluation = {"mean_return": score} | ({"agents": each} if agents > 1 else {})
    config = {"seed": 4, "num_seeds": agents}
    return Facts(update, 64 * update, update, "Grid", "0.1.0", config, evaluation)


def params_of(update: int) -> dict[str, Any]:
    return {"params": {"a": np.full(2, update, np.float32)}}


def made(run: Path, facts: Facts) -> None:
    """A checkpoint, as far as its facts go, and its params."""
    folder = run / "checkpoints" / str(facts.update)
    folder.mkdir(parents=True)
    (folder / "facts.json").write_text(json.dumps({"format": 1, **facts.as_json()}))
    export_params(run, facts, [params_of(facts.update)] * facts.num_agents)


def names_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*params*"))


def test_each_of_many_agents_has_a_folder_and_one_that_is_lost_has_no_file(tmp_path: Path) -> None:
    export_params(tmp_path, facts_of(7, 1.0, agents=3), [params_of(1), None, params_of(3)])
    assert {path.name: names_of(path) for path in tmp_path.iterdir()} == {
        "seed_4": ["params_7.json", "params_7.npz"],
        "seed_6": ["params_7.json", "params_7.npz"],
    }
    exported = load_params(tmp_path / "seed_6")
    about = exported.about
    assert exported.params["params"]["a"].tolist() == [3, 3]
    assert about["config"] == {"seed": 6, "num_seeds": 1}
    assert about["evaluation"] == {"mean_return": 3.0}
    assert newest_export(tmp_path) == tmp_path
    facts = facts_of(7, score=2.0)
    alone = export_params(tmp_path, facts, [params_of(7)])
    assert alone == [tmp_path / "params_7.npz", tmp_path / "params_7.json"]
    assert Facts.from_json(load_params(alone[0]).about, "") == facts
    assert is_exported(tmp_path, 7)
    assert not is_exported(tmp_path, 6)


@pytest.mark.parametrize("agents", [1, 2])
def test_best_and_final_params_are_those_of_their_update(agents: int, tmp_path: Path) -> None:
    for update, score in ((2, 1.0), (4, 5.0), (6, 3.0)):
        made(tmp_path, facts_of(update, score, agents))
    export_best(tmp_path)
    export_final(tmp_path, 6)
    for folder in [tmp_path] if agents == 1 else [tmp_path / "seed_4", tmp_path / "seed_5"]:
        for suffix in (".npz", ".json"):
            for name, update in (("best_params", 4), ("final_params", 6)):
                copy, original = folder / f"{name}{suffix}", folder / f"params_{update}{suffix}"
                assert copy.read_bytes() == original.read_bytes()


def test_best_params_go_back_with_the_run(tmp_path: Path) -> None:
    for update, score in ((2, 1.0), (4, 5.0)):
        made(tmp_path, facts_of(update, score))
    export_best(tmp_path)
    export_final(tmp_path, 4)
    (tmp_path / "checkpoints" / "4").rename(tmp_path / "gone")
    remove_later_exports(tmp_path, 2)
    export_best(tmp_path)
    assert {name.partition(".")[0] for name in names_of(tmp_path)} == {"best_params", "params_2"}
    assert update_of_params(tmp_path, "best_params") == 2
    (tmp_path / "checkpoints" / "2").rename(tmp_path / "gone too")
    export_best(tmp_path)
    assert update_of_params(tmp_path, "best_params") == 2


def test_best_params_that_nothing_can_replace_go_when_the_run_goes_back(tmp_path: Path) -> None:
    for update, score in ((2, 1.0), (4, 5.0)):
        made(tmp_path, facts_of(update, score))
    export_best(tmp_path)
    (tmp_path / "checkpoints" / "4").rename(tmp_path / "gone")
    remove_later_exports(tmp_path, 2)
    remove_export(tmp_path, 2)
    export_best(tmp_path)
    assert names_of(tmp_path) == []


@pytest.mark.parametrize("agents", [1, 2])
def test_best_params_outlive_their_checkpoint(agents: int, tmp_path: Path) -> None:
    for update, score in ((2, 1.0), (4, 5.0)):
        made(tmp_path, facts_of(update, score, agents))
    export_best(tmp_path)
    (tmp_path / "checkpoints" / "4").rename(tmp_path / "gone")
    folder = tmp_path if agents == 1 else tmp_path / "seed_5"
    for update, score, best in ((6, 3.0, 4), (8, 6.0, 8)):
        made(tmp_path, facts_of(update, score, agents))
        export_best(tmp_path)
        assert update_of_params(folder, "best_params") == best


@pytest.mark.parametrize("agents", [1, 2])
def test_params_of_later_updates_are_found(agents: int, tmp_path: Path) -> None:
    for update in (2, 4):
        made(tmp_path, facts_of(update, 1.0 * update, agents))
    export_best(tmp_path)
    export_final(tmp_path, 4)
    folder = tmp_path if agents == 1 else tmp_path / "seed_5"
    for name in ("params_4", "best_params", "final_params"):
        assert name in later_exports(tmp_path, 2)
        assert later_exports(tmp_path, 4) == []
        (folder / f"{name}.json").unlink()  # as a kill leaves it
        assert name in later_exports(tmp_path, 2)
        assert later_exports(tmp_path, 4) == []


@pytest.mark.parametrize("agents", [1, 2])
def test_a_run_that_was_moved_away_is_not_made_anew(agents: int, tmp_path: Path) -> None:
    run = tmp_path / "moved"
    with pytest.raises(FileNotFoundError):
        export_params(run, facts_of(7, 1.0, agents), [params_of(7)] * agents)
    assert not run.exists()
