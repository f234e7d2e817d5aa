"""Checkpoints on disk: what is saved is restored, whole or not at all; and which are kept."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import orbax.checkpoint as ocp
import pytest

from hackmatrix.core.errors import UserError
from hackmatrix.core.manifest import DamagedError, write_manifest
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
from hackmatrix.runs.saver import Saver, Snapshot

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


@pytest.mark.parametrize("shape", [(100_000, 100_000), (30_000, 30_000), (2, 2), (4,)])
def test_arrays_of_other_shapes_than_the_facts_say_are_damaged(
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


def test_a_save_that_fails_leaves_what_was_there(
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


def test_what_a_failed_save_still_writes_is_removed_too(
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


def snapshot(update: int, score: float | None = None, num_agents: int = 1) -> Snapshot:
    params = {"params": {"a": np.full(2, update, np.float32)}}
    facts = facts_of(update, score, num_agents)
    return Snapshot({"a": np.full(2, update)}, facts, [params] * num_agents)


def saver(run: Path, keep: int, told: list[Any]) -> Saver:
    return Saver(
        run,
        keep,
        check=lambda: None,
        settle_metrics=lambda: None,
        on_saved=lambda facts, files: told.append((facts.update, files[0].name)),
        on_failed=lambda failure, error: told.append((failure, error.strerror)),
    )


def test_the_newest_and_the_best_are_kept(tmp_path: Path) -> None:
    told: list[Any] = []
    with saver(tmp_path, 2, told) as saving:
        for update, score in enumerate([1.0, 5.0, None, 3.0, None, 2.0, None], start=1):
            saving.save(snapshot(update, score))
    assert updates_of(tmp_path) == [2, 6, 7]
    best = best_checkpoint(tmp_path)
    assert best is not None
    assert best.update == 2
    assert told == [(update, str(update)) for update in range(1, 8)]


@pytest.mark.parametrize("num_agents", [1, 2])
def test_params_go_with_their_checkpoints(num_agents: int, tmp_path: Path) -> None:
    with saver(tmp_path, 2, []) as saving:
        for update, score in enumerate([1.0, 5.0, None, 3.0, None, 2.0, None], start=1):
            saving.save(snapshot(update, score, num_agents))
    folders = [tmp_path] if num_agents == 1 else [tmp_path / "seed_0", tmp_path / "seed_1"]
    for folder in folders:
        for suffix in ("npz", "json"):
            assert {path.stem for path in folder.glob(f"*.{suffix}")} == {
                "best_params",
                "params_2",
                "params_6",
                "params_7",
            }
        assert json.loads((folder / "best_params.json").read_text())["update"] == 2


def test_the_newest_stays_though_another_is_better(tmp_path: Path) -> None:
    with saver(tmp_path, 1, []) as saving:
        for update, score in enumerate([4.0, 3.0, 2.0, 1.0], start=1):
            saving.save(snapshot(update, score))
    assert updates_of(tmp_path) == [1, 4]


def test_training_does_not_wait_for_a_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_write = threading.Event()
    write = checkpoints.write_arrays

    def slow(*args: Any) -> None:
        assert may_write.wait(30)
        write(*args)

    monkeypatch.setattr(checkpoints, "write_arrays", slow)
    with saver(tmp_path, 2, []) as saving:
        saving.save(snapshot(1))  # returns though nothing can be written
        assert updates_of(tmp_path) == []
        may_write.set()
    assert updates_of(tmp_path) == [1]  # leaving waits for the rest


def test_a_save_that_fails_is_told_and_the_next_one_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    with saver(tmp_path, 2, told) as saving:
        saving.save(snapshot(1))
        saving.wait()
        with monkeypatch.context() as full:
            full_disk(full)
            saving.save(snapshot(2))
            saving.wait()
            assert saving.has_failed
        saving.save(snapshot(3))
    refused = "the checkpoint of update 2 can't be written"
    assert told == [(1, "1"), (refused, "No space left on device"), (3, "3")]
    assert not saving.has_failed
    assert updates_of(tmp_path) == [1, 3]


def test_facts_are_readable_json(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, ARRAYS, facts_of(3))
    facts = json.loads((path / "facts.json").read_text(encoding="utf-8"))
    assert facts["arrays"]["params.Dense_0.kernel"] == ["float32", 3, 4]
