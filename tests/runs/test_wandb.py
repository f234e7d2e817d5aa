"""Weights & Biases: what its own client writes and sends, and that it never stands in the way.

Written files are read back. What is sent goes to a stand-in for W&B's server, so these tests can't
show what the real one does with it.
"""

import json
import math
import os
import pty
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from wandb_server import WandbServer

from hackmatrix.core.errors import UserError
from hackmatrix.runs.trackers import TrackedRun, Trackers, download_run, tracker, weights_and_biases

KEY = "0123456789abcdef" * 3
ONLINE_ONLY = {"_timestamp", "_runtime", "timesteps"}


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keeps W&B from the home folder, the network, and what a test before this one has set."""
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    for name in ("CONFIG_DIR", "CACHE_DIR", "DATA_DIR"):
        monkeypatch.setenv(f"WANDB_{name}", str(tmp_path / "wandb-home" / name))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{closed_port()}")
    monkeypatch.setattr(tracker, "QUIET_SECONDS", 60)  # a busy machine takes its time
    yield
    teardown = getattr(sys.modules.get("wandb"), "teardown", None)
    if teardown is not None:
        teardown()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WandbServer]:
    with WandbServer() as server:
        monkeypatch.setenv("WANDB_BASE_URL", server.url)
        monkeypatch.setenv("WANDB_API_KEY", KEY)
        yield server


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def track(
    run: Path,
    rows: Mapping[int, Mapping[str, Any]],
    update: int = 0,
    *,
    rewind: bool = False,
) -> list[str]:
    said: list[str] = []
    run.mkdir(exist_ok=True)
    with open_wandb(run, said.append, update, rewind, lr=0.5, device="cpu") as trackers:
        for number, row in rows.items():
            trackers.log(number, number * 32, row)
    return said


def open_wandb(
    run: Path,
    say: Callable[[str], None],
    update: int = 0,
    rewind: bool = False,
    **config: Any,
) -> Trackers:
    """W&B alone."""
    config = {"tensorboard": False, "project": "games", **config}
    return Trackers.open(TrackedRun(run, config, update, rewind), say)


def make_checkpoint(run: Path, update: int) -> Path:
    folder = run / "checkpoints" / str(update)
    folder.mkdir(parents=True)
    (folder / "facts.json").write_text(f'{{"update": {update}}}')
    return folder


def read_wandb(path: Path) -> list[Any]:
    """The records of a .wandb file: LevelDB's log format, with a header of 7 bytes."""
    from wandb.proto.wandb_internal_pb2 import Record

    content, records, parts, at = path.read_bytes(), [], b"", 7
    assert content[:4] == b":W&B"
    while at + 7 <= len(content):
        if at % 32768 > 32768 - 7:  # a header does not cross blocks
            at += 32768 - at % 32768
        _, size, kind = struct.unpack_from("<IHB", content, at)
        parts += content[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last part
            records.append(Record.FromString(parts))
            parts = b""
    return records


def offline_records(run: Path) -> list[Any]:
    """Those of all its offline sessions."""
    import wandb

    wandb.teardown()  # waits until all is written, as the end of a process does
    files = sorted((run / "wandb").glob("offline-run-*/*.wandb"))
    return [record for file in files for record in read_wandb(file)]


def offline_rows(run: Path) -> list[dict[str, Any]]:
    return [
        {"_step": record.history.step.num}
        | {
            item.key or item.nested_key[0]: json.loads(item.value_json)
            for item in record.history.item
            if not (item.key or item.nested_key[0]).startswith("_")
        }
        for record in offline_records(run)
        if record.WhichOneof("record_type") == "history"
    ]


def sent_rows(server: WandbServer, run: str) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in row.items() if name not in ONLINE_ONLY}
        for row in server.runs[run]["rows"]
    ]


def rows_of(*updates: int) -> dict[int, dict[str, Any]]:
    return {update: {"train/entropy": update / 16} for update in updates}


def expected(*updates: int) -> list[dict[str, Any]]:
    return [{"_step": update, "train/entropy": update / 16} for update in updates]


# Without the network


@pytest.mark.thorough
def test_an_offline_run_holds_every_row_at_its_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    run = tmp_path / "my-run"
    rows: dict[int, dict[str, Any]] = {
        10: {"train/entropy": 1.25, "actions/program/SIPH+": 0.5, "none": None},
        20: {"train/entropy": 1.125, "alarms": ["kl_high"]},
        30: {"bad": math.nan, "big": math.inf},
    }
    (line,) = track(run, rows)
    (folder,) = (run / "wandb").glob("offline-run-*")
    assert line == (
        f"W&B: offline, as WANDB_MODE says; `wandb sync {folder}` uploads the run later"
    )
    first, second, third = offline_rows(run)
    assert first == {
        "_step": 10,
        "timesteps": 320,
        "train/entropy": 1.25,
        "actions/program/SIPH+": 0.5,
    }
    assert second == {"_step": 20, "timesteps": 640, "train/entropy": 1.125}
    assert math.isnan(third["bad"])
    assert third["big"] == math.inf
    (begun,) = (r.run for r in offline_records(run) if r.WhichOneof("record_type") == "run")
    assert (begun.run_id, begun.display_name, begun.project) == ("my-run", "my-run", "games")
    config = {item.key: json.loads(item.value_json) for item in begun.config.update}
    assert config.items() >= {"lr": 0.5, "device": "cpu"}.items()
    assert not (tmp_path / "home").exists()


@pytest.mark.thorough
def test_the_rows_of_a_long_run_are_all_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    updates = range(1, 800)
    track(tmp_path / "run", {u: {f"metric/{i}": u + i for i in range(20)} for u in updates})
    rows = offline_rows(tmp_path / "run")
    assert [row["_step"] for row in rows] == list(updates)
    assert rows[-1]["metric/19"] == 799 + 19


@pytest.mark.thorough
def test_offline_an_alarm_and_the_last_checkpoint_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    paths = [make_checkpoint(tmp_path, update) for update in (5, 10)]
    (tmp_path / "params_10.npz").write_bytes(b"params")
    said: list[str] = []
    with open_wandb(tmp_path, said.append) as trackers:
        trackers.alarm(5, "kl_high", "too fast")
        trackers.artifact(5, [paths[0]])
        trackers.artifact(10, [paths[1], tmp_path / "params_10.npz"])
    records = offline_records(tmp_path)
    (alert,) = (r.alert for r in records if r.WhichOneof("record_type") == "alert")
    assert (alert.title, alert.text, alert.level) == ("kl_high", "update 5: too fast", "WARN")
    (artifact,) = (
        r.request.log_artifact.artifact if r.HasField("request") else r.artifact
        for r in records
        if r.WhichOneof("record_type") == "artifact"
        or (r.HasField("request") and r.request.WhichOneof("request_type") == "log_artifact")
    )
    assert artifact.type == "checkpoint"
    assert json.loads(artifact.metadata) == {"update": 10}
    assert {entry.path for entry in artifact.manifest.contents} == {
        "checkpoints/10/facts.json",
        "params_10.npz",
    }
    assert len(said) == 1


@pytest.mark.thorough
def test_a_run_that_goes_on_offline_is_the_same_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    run = tmp_path / "run"
    track(run, rows_of(10, 20))
    run = run.rename(tmp_path / "moved")
    time.sleep(1.1)  # the sessions' folders are named by the second
    track(run, rows_of(20, 30), update=15)
    assert [row["_step"] for row in offline_rows(run)] == [10, 20, 20, 30]
    begun = [r.run.run_id for r in offline_records(run) if r.WhichOneof("record_type") == "run"]
    assert begun == ["run", "run"]


def test_without_wandb_one_line_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = (
        "W&B: not installed: pip install 'hackmatrix[wandb]' brings it; "
        "--no-wandb leaves out this line"
    )
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert track(tmp_path / "run", rows_of(1)) == [line]
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace())  # a folder of this name
    assert track(tmp_path / "run", rows_of(1)) == [line]
    assert list((tmp_path / "run").iterdir()) == []


def test_without_a_login_one_line_says_once_how_to_do_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert track(tmp_path / "run", rows_of(1)) == [
        "W&B: not logged in: `wandb login`, or an API key in WANDB_API_KEY, does it; "
        "said once on this machine"
    ]
    assert track(tmp_path / "run", rows_of(1)) == []
    assert list((tmp_path / "run").iterdir()) == []


def test_switched_off_by_its_own_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "disabled")
    assert track(tmp_path / "run", rows_of(1)) == [
        "W&B: off, as WANDB_MODE says; --no-wandb leaves out this line"
    ]


def test_a_key_that_is_none_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "short")
    (line,) = track(tmp_path / "run", rows_of(1))
    assert line.startswith("W&B: WANDB_API_KEY invalid: ")
    assert line.endswith("; it is off for the rest of this run")


@pytest.mark.thorough
def test_a_host_that_refuses_means_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights_and_biases, "INIT_SECONDS", 2.0)
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    (line,) = track(tmp_path / "run", rows_of(10))
    (folder,) = (tmp_path / "run" / "wandb").glob("offline-run-*")
    assert "connection refused" in line
    assert f"; `wandb sync {folder}` uploads the run later" in line
    assert [row["_step"] for row in offline_rows(tmp_path / "run")] == [10]


def test_a_key_in_netrc_is_a_login(tmp_path: Path, server: WandbServer) -> None:
    host = server.url.removeprefix("http://")
    (tmp_path / "netrc").write_text(f"machine {host}\n login user\n password {KEY}\n")
    (tmp_path / "netrc").chmod(0o600)
    del os.environ["WANDB_API_KEY"]
    assert track(tmp_path / "run", rows_of(10)) == [f"W&B: {server.url}/me/games/runs/run"]


SCRIPT = """
import sys, time
from pathlib import Path
from hackmatrix.runs.trackers import TrackedRun, Trackers

said = []

def say(text):
    said.append(text)
    print(text, flush=True)

config = {"tensorboard": False, "project": "games"}
with Trackers.open(TrackedRun(Path(sys.argv[1]), config), say) as trackers:
    trackers.log(1, 1, {"a": 1.0})
    deadline = time.monotonic() + float(sys.argv[2])
    while not said and time.monotonic() < deadline:
        time.sleep(0.01)
"""


def command(run: Path, seconds: int) -> list[str]:
    """A run that lasts until a tracker has said something, or for so long."""
    return [sys.executable, "-c", SCRIPT, str(run), str(seconds)]


def output_of(arguments: list[str]) -> tuple[str, str]:
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=True)
    return done.stdout, done.stderr


@pytest.mark.thorough
def test_on_a_terminal_nobody_is_asked_for_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command(tmp_path, 60), stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:  # so ends a terminal on Linux
        pass
    assert process.wait(60) == 0
    assert shown.decode().splitlines() == [
        "W&B: not logged in: `wandb login`, or an API key in WANDB_API_KEY, does it; "
        "said once on this machine"
    ]


@pytest.mark.thorough
def test_wandb_itself_prints_nothing(tmp_path: Path, server: WandbServer) -> None:
    out, err = output_of(command(tmp_path, 60))
    assert (out, err) == (f"W&B: {server.url}/me/games/runs/{tmp_path.name}\n", "")


@pytest.mark.thorough
def test_wandb_prints_nothing_where_it_fails(tmp_path: Path, server: WandbServer) -> None:
    server.refused = {"UpsertBucket"}
    out, err = output_of(command(tmp_path, 60))
    (line,) = out.splitlines()
    assert "UpsertBucket is not for you" in line
    assert "uploads the run later" in line
    assert err == ""


@pytest.mark.slow
def test_a_server_that_never_answers_does_not_keep_the_process(
    tmp_path: Path, server: WandbServer
) -> None:
    server.silent = True
    began = time.monotonic()
    out, err = output_of(command(tmp_path, 1))
    first, second = out.splitlines()
    assert first == "W&B: takes what is left, for 40 s at most"
    assert "uploads the run later" in second
    assert err == ""
    assert time.monotonic() - began < 60  # measured: 24; W&B itself would wait for 90


# With the stand-in for the server


def test_an_online_run_sends_every_row_at_its_update(tmp_path: Path, server: WandbServer) -> None:
    assert track(tmp_path / "run", rows_of(10, 20, 30)) == [f"W&B: {server.url}/me/games/runs/run"]
    assert sent_rows(server, "run") == expected(10, 20, 30)
    sent = server.runs["run"]
    assert [row["timesteps"] for row in sent["rows"]] == [320, 640, 960]
    assert (sent["displayName"], sent["project"], sent["exitcode"]) == ("run", "games", 0)
    assert json.loads(sent["config"])["lr"] == {"value": 0.5}
    assert json.loads((tmp_path / "run" / "wandb.json").read_text()) == {
        "id": "run",
        "url": f"{server.url}/me/games/runs/run",
    }


def test_the_commit_is_that_of_the_folder_one_works_in(
    tmp_path: Path, server: WandbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    head = subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()
    track(tmp_path / "run", {})
    assert server.runs["run"]["commit"] == head


def test_alarms_and_checkpoints_are_sent(tmp_path: Path, server: WandbServer) -> None:
    path = make_checkpoint(tmp_path, 10)
    said: list[str] = []
    (tmp_path / "other").mkdir()
    for run, upload in ((tmp_path, True), (tmp_path / "other", False)):
        with open_wandb(run, said.append, artifact=upload) as trackers:
            trackers.alarm(5, "kl_high", f"too fast {upload}")
            trackers.artifact(10, [path])
            trackers.artifact(20, [tmp_path / "gone"])
            trackers.artifact(30, [tmp_path / "gone"])
            trackers.log(30, 30, {"a": 1.0})
    assert server.alerts == [
        ("kl_high", "update 5: too fast True"),
        ("kl_high", "update 5: too fast False"),
    ]
    (sent,) = server.artifacts
    assert sent["artifactTypeName"] == "checkpoint"
    assert sent["artifactCollectionName"] == f"checkpoint-{tmp_path.name}"
    assert {each["alias"] for each in sent["aliases"]} == {"latest", "update-10"}
    assert json.loads(sent["metadata"]) == {"update": 10}
    _, *missing, _ = said  # between the addresses of the runs
    for update, line in zip((20, 30), missing, strict=True):
        assert line.startswith(f"W&B: the checkpoint of update {update} is not uploaded: ")
    assert [row["_step"] for row in server.runs[tmp_path.name]["rows"]] == [30]


def test_a_run_that_goes_on_is_the_same_run_and_keeps_what_it_had(
    tmp_path: Path, server: WandbServer
) -> None:
    run = tmp_path / "run"
    track(run, rows_of(10, 20))
    track(run, rows_of(30), update=20)
    assert sent_rows(server, "run") == expected(10, 20, 30)
    said = track(run, rows_of(20, 30, 40), update=15)
    assert said[1:] == [
        "W&B: has rows up to update 30, which stay as they are; --rewind cuts them off"
    ]
    assert sent_rows(server, "run") == expected(10, 20, 30, 40)
    assert list(server.runs) == ["run"]


def test_rewind_cuts_the_history(tmp_path: Path, server: WandbServer) -> None:
    run = tmp_path / "run"
    track(run, rows_of(10, 20, 30))
    said = track(run, rows_of(20, 40), update=15, rewind=True)
    assert said == [f"W&B: {server.url}/me/games/runs/run"]
    assert sent_rows(server, "run") == expected(10, 20, 40)


@pytest.mark.thorough
def test_where_the_server_does_not_rewind_the_run_goes_on(
    tmp_path: Path, server: WandbServer
) -> None:
    run = tmp_path / "run"
    track(run, rows_of(10, 20, 30))
    server.refused = {"RewindRun"}
    why, _, kept = track(run, rows_of(20, 40), update=15, rewind=True)
    assert why.startswith("W&B: can't cut its history back to update 15: ")
    assert kept.startswith("W&B: has rows up to update 30")
    assert sent_rows(server, "run") == expected(10, 20, 30, 40)


@pytest.mark.thorough
def test_a_name_that_another_machine_has_used_gets_an_id_of_its_own(
    tmp_path: Path, server: WandbServer
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    track(tmp_path / "there" / "run", rows_of(10))
    track(tmp_path / "here" / "run", rows_of(10))
    first, second = server.runs
    assert first == "run"
    assert second.startswith("run-")
    assert server.runs[second]["displayName"] == "run"
    track(tmp_path / "here" / "run", rows_of(20), update=10)
    assert sent_rows(server, second) == expected(10, 20)
    assert sent_rows(server, first) == expected(10)


def test_a_server_that_does_not_answer_means_offline(
    tmp_path: Path, server: WandbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights_and_biases, "INIT_SECONDS", 1.0)
    server.silent = True
    (line,) = track(tmp_path / "run", rows_of(10, 20))
    assert line.startswith("W&B: ")
    assert "uploads the run later" in line
    assert [row["_step"] for row in offline_rows(tmp_path / "run")] == [10, 20]


def test_a_network_that_is_lost_ends_in_time(
    tmp_path: Path, server: WandbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights_and_biases, "FINISH_SECONDS", 1.0)
    said: list[str] = []
    with open_wandb(tmp_path, said.append) as trackers:
        trackers.start()
        deadline = time.monotonic() + 60
        while not said and time.monotonic() < deadline:
            time.sleep(0.01)
        server.silent = True
        trackers.log(1, 1, {"a": 1.0})
    (folder,) = (tmp_path / "wandb").glob("run-*")
    assert said[1:] == [f"W&B: not all was sent in time; `wandb sync {folder}` uploads what it has"]


@pytest.mark.thorough
def test_sync_uploads_offline_sessions_and_rewinds(
    tmp_path: Path, server: WandbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    monkeypatch.setenv("WANDB_MODE", "offline")
    track(run, rows_of(10, 20, 30))
    time.sleep(1.1)  # the sessions' folders are named by the second
    (line,) = track(run, rows_of(20, 40), update=15, rewind=True)
    assert line.endswith("uploads the run later and cuts its history back to update 15")
    assert not server.runs
    monkeypatch.delenv("WANDB_MODE")
    for folder in sorted((run / "wandb").glob("offline-run-*")):
        output_of([sys.executable, "-m", "wandb", "sync", str(folder)])
    assert sent_rows(server, "run") == expected(10, 20, 40)


@pytest.mark.parametrize(
    ("name", "run_id"),
    [
        ("two words+more", "two-words-more"),
        ("x" * 65, "x" * 64),
    ],
)
def test_the_id_is_the_name_as_far_as_wandb_takes_it(
    tmp_path: Path, server: WandbServer, name: str, run_id: str
) -> None:
    track(tmp_path / name, rows_of(10))
    assert list(server.runs) == [run_id]
    assert server.runs[run_id]["displayName"] == name


# Fetching a run. The module `wandb` is a stand-in of a few lines here, made after wandb 0.31: what
# it can't show is whether the real one behaves as it does.


class FakeArtifact:
    def __init__(
        self, version: int, update: int, state: str = "COMMITTED", kind: str = "checkpoint"
    ):
        self.version, self.state, self.type = f"v{version}", state, kind
        self.name = f"checkpoint-run:v{version}"
        self.update = update

    def download(self, root: str, skip_cache: bool) -> str:
        Path(root).mkdir(parents=True)
        if self.update < 0:
            raise OSError("the connection was lost")
        if self.update:
            make_checkpoint(Path(root), self.update)
        return root


class FakeWandb:
    """As much of the module as fetching a run uses."""

    def __init__(self, artifacts: list[FakeArtifact]) -> None:
        self.artifacts, self.logged_in = artifacts, True
        self.settings = SimpleNamespace(mode="online")
        self.asked: list[str] = []

    def setup(self) -> Any:
        return self

    def login(self, *, prompt: bool, verify: bool) -> bool:
        assert not prompt
        assert not verify
        return self.logged_in

    def teardown(self) -> None:
        pass

    def Api(self, timeout: int) -> Any:  # noqa: N802
        return self

    def run(self, path: str) -> Any:
        self.asked.append(path)
        if not path.endswith("/run"):
            raise ValueError(f"Could not find run <Run {path} (not found)>")
        return self

    def logged_artifacts(self) -> list[FakeArtifact]:
        return self.artifacts


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeWandb:
    fake = FakeWandb([])
    monkeypatch.setitem(sys.modules, "wandb", fake)
    return fake


def test_the_newest_checkpoint_makes_a_run_that_can_be_resumed(
    tmp_path: Path, fake: FakeWandb
) -> None:
    fake.artifacts = [
        FakeArtifact(2, 30),
        FakeArtifact(10, 20),  # uploaded after the run was rewound
        FakeArtifact(11, 40, state="PENDING"),
        FakeArtifact(12, 50, kind="wandb-history"),
    ]
    folder = download_run("run", tmp_path / "run", project="games", entity="team")
    assert folder == tmp_path / "run"
    assert [path.name for path in (folder / "checkpoints").iterdir()] == ["20"]
    assert json.loads((folder / "wandb.json").read_text()) == {"id": "run"}
    assert fake.asked == ["team/games/run"]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(
    ("run", "artifacts", "message"),
    [
        ("other", [], r"W&B does not give games/other: Could not find run"),
        ("run", [], "W&B has no checkpoint of games/run"),
        ("run", [FakeArtifact(1, 0)], "checkpoint-run:v1 of games/run holds no checkpoint"),
        ("run", [FakeArtifact(1, -1)], "W&B does not give games/run: the connection was lost"),
    ],
)
def test_what_can_not_be_fetched_is_said_and_leaves_nothing(
    tmp_path: Path, fake: FakeWandb, run: str, artifacts: list[FakeArtifact], message: str
) -> None:
    fake.artifacts = artifacts
    with pytest.raises(UserError, match=f"--resume-run {run}: there is no run .*{message}"):
        download_run(run, tmp_path / run, project="games", entity=None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_host_that_can_not_be_reached_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    with pytest.raises(UserError, match="W&B does not give games/run: "):
        download_run("run", tmp_path / "run", project="games", entity=None)


def test_without_access_nothing_is_fetched(
    tmp_path: Path, fake: FakeWandb, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(message: str) -> None:
        with pytest.raises(UserError, match=message):
            download_run("run", tmp_path / "run", project="games", entity=None)

    fake.logged_in = False
    refused("W&B is not logged in: `wandb login`")
    fake.logged_in = True
    fake.settings.mode = "offline"
    refused("W&B is not asked, as WANDB_MODE is offline")
    monkeypatch.setitem(sys.modules, "wandb", None)
    refused("W&B is not installed: pip install")
    assert list(tmp_path.iterdir()) == []
