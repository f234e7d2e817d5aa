"""Checkpoints on disk: what is saved is restored, whole or not at all; and which are kept."""

import json
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orbax.checkpoint as ocp
import pytest

from hackmatrix.core.errors import UserError
from hackmatrix.core.files import DamagedError, write_manifest
from hackmatrix.runs import checkpoints
from hackmatrix.runs.checkpoints import (
    Facts,
    best_checkpoint,
    checkpoints_of,
    is_whole,
    load_checkpoint,
    read_facts,
    remove_partial,
    save_checkpoint,
)

ARRAYS = {
    "params.Dense_0.kernel": np.arange(12, dtype=np.float32).reshape(3, 4),
    "update": np.array(7, np.int32),
    "mask": np.array([True, False]),
    "words": np.array([2**32 - 1, 0], np.uint32),
    "bytes": np.arange(250, 256, dtype=np.uint8),
    "nothing": np.zeros((0, 3), np.float32),
    "nan": np.array([np.nan, np.inf, -0.0], np.float32),
}


def facts_of(update: int, score: float | None = None, num_agents: int = 1) -> Facts:
    evaluation = None
    if score is not None:
        evaluation = {"mean_return": score, "agents": [{"mean_return": score}] * num_agents}
    config = {"seed": 0, "num_seeds": num_agents}
    return Facts(update, 64 * update, update, "Grid", "0.1", config, evaluation)


def updates_of(run: Path) -> list[int]:
    return [checkpoint.update for checkpoint in checkpoints_of(run)]


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_arrays_come_back_bit_for_bit_with_their_facts(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, ARRAYS, facts_of(7, score=2.0))
    assert path == tmp_path / "checkpoints" / "7"
    arrays, facts = load_checkpoint(path)
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        assert arrays[name].tobytes() == array.tobytes()
    assert facts == facts_of(7, score=2.0)
    assert is_whole(path)
    written = json.loads((path / "facts.json").read_text(encoding="utf-8"))
    assert written["arrays"]["params.Dense_0.kernel"] == ["float32", 3, 4]


def test_every_damaged_file_is_found_and_named(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, ARRAYS, facts_of(3))
    files = files_of(path)
    assert len(files) > 5
    for file in files:
        content = file.read_bytes()
        flipped = bytearray(content)
        flipped[len(flipped) // 2] ^= 0x10
        for damaged in (bytes(flipped), content[:-1], None):
            if damaged is None:
                file.unlink()
            else:
                file.write_bytes(damaged)
            # A changed checksum of another file speaks for that file.
            name = "is damaged" if file.parent == path and damaged else file.name
            with pytest.raises(DamagedError, match=name):
                load_checkpoint(path)
        file.write_bytes(content)
    (path / "arrays" / "foreign").touch()
    with pytest.raises(DamagedError, match="arrays/foreign does not belong there"):
        load_checkpoint(path)
    (path / "arrays" / "foreign").unlink()
    load_checkpoint(path)


@pytest.mark.parametrize("shape", [(100_000, 100_000), (4,)])
def test_arrays_of_shapes_not_in_the_facts_are_damaged(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    path = save_checkpoint(tmp_path, {"a": np.ones(3, np.float32)}, facts_of(7))
    facts = json.loads((path / "facts.json").read_text())
    facts["arrays"]["a"] = ["float32", *shape]
    (path / "facts.json").write_text(json.dumps(facts))
    write_manifest(path)
    with pytest.raises(DamagedError, match="a is \\['float32', 3\\], not"):
        load_checkpoint(path)


def test_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "FORMAT", 99)
    path = save_checkpoint(tmp_path, ARRAYS, facts_of(3))
    monkeypatch.undo()
    with pytest.raises(UserError, match="has the format 99; this version reads format 1"):
        read_facts(path)


def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Orbax says it in its own way."""

    def no_space(*_: Any, **__: Any) -> None:
        raise ValueError("RESOURCE_EXHAUSTED: Error writing ...: No space left on device\n" * 100)

    monkeypatch.setattr(ocp.Checkpointer, "save", no_space)


def test_a_failed_save_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_checkpoint(tmp_path, {"a": np.ones(2)}, facts_of(3))
    with pytest.raises(OSError, match="not empty"):
        save_checkpoint(tmp_path, {"a": np.zeros(2)}, facts_of(3))
    full_disk(monkeypatch)
    with pytest.raises(OSError, match=r"^\[Errno 5\] No space left on device$"):
        save_checkpoint(tmp_path, {"a": np.zeros(2)}, facts_of(4))
    assert load_checkpoint(tmp_path / "checkpoints" / "3")[0]["a"].tolist() == [1, 1]
    assert os.listdir(tmp_path / "checkpoints") == ["3"]


def test_what_a_failed_save_writes_later_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late: list[threading.Thread] = []

    def write(path: Path, _: Any) -> None:  # as TensorStore does when the folder is moved away
        def go_on() -> None:
            path.mkdir(parents=True)
            (path / "manifest.ocdbt").touch()

        late.append(threading.Timer(0.2, go_on))
        late[0].start()
        raise OSError(5, "NOT_FOUND")

    monkeypatch.setattr(checkpoints, "write_arrays", write)
    run = tmp_path / "run"
    run.mkdir()
    with pytest.raises(OSError, match="NOT_FOUND"):
        save_checkpoint(run, {"a": np.zeros(2)}, facts_of(4))
    late[0].join()
    assert not run.exists()  # an empty one goes, as it may have been made anew


def test_what_a_killed_save_left_is_no_checkpoint_and_goes(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, ARRAYS, facts_of(3))
    left = tmp_path / "checkpoints" / ".saving-4-123"
    left.mkdir()
    (left / "facts.json").touch()
    assert updates_of(tmp_path) == [3]
    remove_partial(tmp_path)
    assert os.listdir(tmp_path / "checkpoints") == ["3"]


# As versions before `--num-seeds` wrote it; `arrays` and `format` are the checkpoint's.
WRITTEN = """{"format": 1, "update": 7, "environment": "HackMatrix-v1", "version": "0.1.0",
"timesteps": 448, "last_logged": 6, "evaluation": {"mean_return": 3, "win_rate": 0.5},
"config": {"seed": 5, "lr": 0.1}, "arrays": {"update": ["int32"]}}"""


def test_facts_of_an_older_version_are_read() -> None:
    facts = Facts.from_json(json.loads(WRITTEN), "facts.json")
    assert (facts.update, facts.timesteps, facts.last_logged) == (7, 448, 6)
    assert (facts.environment, facts.version) == ("HackMatrix-v1", "0.1.0")
    assert facts.config == {"seed": 5, "lr": 0.1}
    assert facts.num_agents == 1
    assert facts.score == 3.0
    assert facts.of_agent(0) == facts
    assert Facts.from_json(json.loads(json.dumps(facts.as_json())), "") == facts
    assert replace(facts, evaluation=None).score is None


def test_one_of_many_agents_has_a_configuration_and_an_evaluation_of_its_own() -> None:
    evaluation = {"mean_return": 2.0, "agents": [{"mean_return": 1.0}, {"mean_return": 3.0}]}
    facts = Facts(7, 448, 6, "Grid", "0.1.0", {"seed": 5, "num_seeds": 2}, evaluation)
    assert facts.num_agents == 2
    assert facts.score == 2.0
    second = facts.of_agent(1)
    assert second.config == {"seed": 6, "num_seeds": 1}
    assert second.evaluation == {"mean_return": 3.0}
    assert facts.config == {"seed": 5, "num_seeds": 2}


def test_every_agent_must_have_its_score() -> None:
    facts = json.loads(WRITTEN)
    facts["config"] = {"seed": 5, "num_seeds": 2}
    facts["evaluation"] = {"mean_return": 2.0, "agents": [{"mean_return": 1.0}, {"wins": 3.0}]}
    with pytest.raises(UserError, match=r"^facts.json: each of agents must have a number as"):
        Facts.from_json(facts, "facts.json")
    facts["evaluation"]["agents"][1] = {"mean_return": 3.0}
    assert Facts.from_json(facts, "facts.json").num_agents == 2


def test_the_best_has_the_highest_score_and_is_the_oldest_of_equals(tmp_path: Path) -> None:
    assert best_checkpoint(tmp_path) is None
    for update, score in ((1, None), (2, 0.5), (3, 2.0), (4, 2.0), (5, None)):
        save_checkpoint(tmp_path, ARRAYS, facts_of(update, score))
    best = best_checkpoint(tmp_path)
    assert best is not None
    assert best.update == 3


def test_a_fact_that_is_missing_is_named() -> None:
    for name in json.loads(WRITTEN).keys() - {"format", "arrays"}:
        facts = json.loads(WRITTEN)
        del facts[name]
        message = f"^facts.json: holds no {name}; another version of hackmatrix wrote it$"
        with pytest.raises(UserError, match=message):
            Facts.from_json(facts, "facts.json")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("update", "7", "update must be a whole number, got '7'"),
        ("timesteps", 1.5, "timesteps must be a whole number, got 1.5"),
        ("environment", 3, "environment must be a text, got 3"),
        ("config", "lr", "config must be an object, got 'lr'"),
        ("evaluation", 3.0, "evaluation must be null or have a number as mean_return"),
        ("evaluation", {"win_rate": 1}, "evaluation must be null or have a number as mean_return"),
    ],
)
def test_a_fact_of_the_wrong_kind_is_named(name: str, value: Any, message: str) -> None:
    with pytest.raises(UserError, match=f"^facts.json: {message}$"):
        Facts.from_json(json.loads(WRITTEN) | {name: value}, "facts.json")
