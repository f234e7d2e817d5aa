"""Runs as a training leaves them, here and in the fake bucket, without any training."""

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from fake_bucket import BUCKET, FakeBucket

from hackmatrix.core.files import write_manifest
from hackmatrix.runs.bucket import Address

RUN = Address(BUCKET, "runs/mine")
PREFIX = "runs/mine/"


class Held:
    """A lease that is held as long as a test wants."""

    error: Exception | None = None
    renewals = 0

    def check(self) -> None:
        if self.error is not None:
            raise self.error

    def renew(self) -> None:
        self.renewals += 1
        self.check()


def add_checkpoint(run: Path, update: int, content: bytes | None = None) -> Path:
    """A checkpoint as far as its files and its manifest go."""
    partial = run / "checkpoints" / f".saving-{update}"
    (partial / "arrays").mkdir(parents=True)
    data = b"arrays of %d" % update if content is None else content
    (partial / "arrays" / "d").write_bytes(data)
    facts = {"update": update, "timesteps": update, "last_logged": update, "environment": "Grid"}
    facts |= {"version": "0.1", "config": {"seed": 0}, "evaluation": None, "arrays": {}}
    (partial / "facts.json").write_text(json.dumps({"format": 1, **facts}))
    write_manifest(partial)
    path = run / "checkpoints" / str(update)
    partial.rename(path)
    return path


def add_params(run: Path, name: str, update: int) -> None:
    """Params and their facts, as far as their names go."""
    (run / f"{name}.npz").write_bytes(b"params of %d" % update)
    (run / f"{name}.json").write_text(json.dumps({"format": 1, "update": update}))


def add_rows(run: Path, *updates: int) -> None:
    with (run / "metrics.jsonl").open("ab") as file:
        for update in updates:
            file.write(json.dumps({"update": update, "timesteps": update}).encode() + b"\n")


def make_run(run: Path, *updates: int) -> Path:
    """A run with checkpoints and params of these updates."""
    run.mkdir(parents=True, exist_ok=True)  # its mirror may have made it
    (run / ".lock").touch()
    (run / "config.yaml").write_text("training: {seed: 0}\n")
    (run / "log.txt").write_text("it began\n")
    for update in updates:
        add_rows(run, update)
        add_checkpoint(run, update)
        add_params(run, f"params_{update}", update)
    return run


def go_on(run: Path, process: str, *updates: int) -> Path:
    """The run as another process goes on with it: its start, rows and checkpoints are its own."""
    newest = max((int(path.name) for path in (run / "checkpoints").glob("[0-9]*")), default=0)
    with (run / "starts.jsonl").open("a") as file:
        file.write(json.dumps({"update": newest, "time": process}) + "\n")
    for update in updates:
        row = {"update": update, "timesteps": update, "train/steps_per_second": len(process) + 0.5}
        with (run / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        add_checkpoint(run, update, f"arrays of {process}, {update}".encode())
        add_params(run, f"params_{update}", update)
    return run


def remove_checkpoints(run: Path, *updates: int) -> None:
    """Removes checkpoints and their params, as a run that keeps only the newest."""
    for update in updates:
        shutil.rmtree(run / "checkpoints" / str(update))
        for suffix in ("json", "npz"):
            (run / f"params_{update}.{suffix}").unlink()


def put_run(fake: FakeBucket, run: Path, prefix: str = PREFIX) -> None:
    """Puts all files of a run into the bucket."""
    for path in run.rglob("*"):
        name = path.relative_to(run).as_posix()
        if path.is_file() and not name.startswith("."):
            fake.put(prefix + name, path.read_bytes())


def contents(folder: Path) -> dict[str, bytes]:
    """A run folder's files, without what belongs to this machine."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in (".lock", "bucket.json")
    }


def stored(fake: FakeBucket, prefix: str = PREFIX) -> dict[str, bytes]:
    """A run's objects in the bucket, without the lease."""
    names = fake.names(prefix)
    found = {name.removeprefix(prefix): fake.objects[name].content for name in names}
    return {name: content for name, content in found.items() if name != "lease.json"}


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, "it does not happen"
        time.sleep(0.01)
