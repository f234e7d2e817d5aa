"""Weights & Biases: what its own client writes and sends, and that it never stands in the way.

What is sent goes to a stand-in for W&B's server, so these tests can't show what the real one does
with it.
"""

import json
import math
import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from wandb_server import WandbServer

from hackmatrix.core.errors import UserError
from hackmatrix.runs.trackers import TrackedRun, Trackers, download_run, tracker, weights_and_biases

pytestmark = pytest.mark.thorough

KEY = "0123456789abcdef" * 3
NOT_LOGGED_IN = (
    "W&B: not logged in: `wandb login`, or an API key in WANDB_API_KEY, does it; "
    "said once on this machine"
)


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keeps W&B from the home folder, the network, and what a test before this one has set."""
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    for name in ("CONFIG_DIR", "CACHE_DIR", "DATA_DIR"):
        monkeypatch.setenv(f"WANDB_{name}", str(tmp_path / "wandb-home" / name))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")  # where nobody answers
    monkeypatch.setattr(tracker, "QUIET_SECONDS", 120)  # a busy machine takes its time
    yield
    tear_down()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WandbServer]:
    with WandbServer() as server:
        monkeypatch.setenv("WANDB_BASE_URL", server.url)
        monkeypatch.setenv("WANDB_API_KEY", KEY)
        yield server


def tear_down() -> None:
    """Ends W&B in this process, which waits until all is written."""
    if teardown := getattr(sys.modules.get("wandb"), "teardown", None):
        teardown()


def track(
    run: Path, rows: Mapping[int, Mapping[str, Any]], update: int = 0, *, rewind: bool = False
) -> list[str]:
    said: list[str] = []
    run.mkdir(exist_ok=True)
    with open_wandb(run, said, update, rewind) as trackers:
        for number, row in rows.items():
            trackers.log(number, number * 32, row)
    return said


def open_wandb(
    run: Path, said: list[str], update: int = 0, rewind: bool = False, **config: Any
) -> Trackers:
    """W&B alone."""
    config = {"tensorboard": False, "project": "games", "lr": 0.5, **config}
    return Trackers.open(TrackedRun(run, config, update, rewind), said.append)


def make_checkpoint(run: Path, update: int) -> Path:
    folder = run / "checkpoints" / str(update)
    folder.mkdir(parents=True)
    (folder / "facts.json").write_text(f'{{"update": {update}}}')
    return folder


def rows_of(*updates: int) -> dict[int, dict[str, Any]]:
    return {update: {"train/entropy": update / 16} for update in updates}


def sent_rows(server: WandbServer, run: str) -> list[dict[str, Any]]:
    online_only = {"_timestamp", "_runtime"}
    return [
        {name: value for name, value in row.items() if name not in online_only}
        for row in server.runs[run]["rows"]
    ]


def expected(*updates: int) -> list[dict[str, Any]]:
    return [
        {"_step": update, "timesteps": update * 32, "train/entropy": update / 16}
        for update in updates
    ]


@pytest.mark.slow
def test_what_is_kept_offline_is_uploaded_later(
    tmp_path: Path, server: WandbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    run = tmp_path / "my-run"
    paths = [make_checkpoint(run, update) for update in (5, 10)]
    (run / "params_10.npz").write_bytes(b"params")
    said: list[str] = []
    with open_wandb(run, said) as trackers:
        trackers.log(10, 320, {"train/entropy": 0.625, "actions/program/SIPH+": 0.5, "none": None})
        trackers.log(11, 352, {"bad": math.nan, "big": math.inf, "alarms": ["kl_high"]})
        trackers.log(20, 640, {"train/entropy": 1.25})
        trackers.alarm(5, "kl_high", "too fast")
        trackers.artifact(5, [paths[0]])
        trackers.artifact(10, [paths[1], run / "params_10.npz"])
    (folder,) = (run / "wandb").glob("offline-run-*")
    uploads = f"`wandb sync {folder}` uploads the run later"
    assert said == [f"W&B: offline, as WANDB_MODE says; {uploads}"]
    run = run.rename(tmp_path / "moved")
    time.sleep(1.1)  # the sessions' folders are named by the second
    (line,) = track(run, rows_of(20, 40), update=15, rewind=True)
    assert line.endswith("uploads the run later and cuts its history back to update 15")
    tear_down()
    assert not server.runs
    assert not (tmp_path / "home").exists()
    first, _ = sorted((run / "wandb").glob("offline-run-*/*.wandb"))
    kept = first.read_bytes()  # of checkpoints only the last one
    assert [name in kept for name in (b"checkpoints/10/facts.json", b"params_10.npz")] == [True] * 2
    assert b"checkpoints/5/" not in kept

    monkeypatch.delenv("WANDB_MODE")
    folders = sorted(map(str, (run / "wandb").glob("offline-run-*")))
    output_of([sys.executable, "-m", "wandb", "sync", *folders])
    assert list(server.runs) == ["my-run"]
    first, odd, *others = sent_rows(server, "my-run")
    assert [first, *others] == [expected(10)[0] | {"actions/program/SIPH+": 0.5}, *expected(20, 40)]
    assert math.isnan(odd.pop("bad"))
    assert odd == {"_step": 11, "timesteps": 352, "big": math.inf}
    assert server.alerts == [("kl_high", "update 5: too fast")]
    (sent,) = server.artifacts
    assert json.loads(sent["metadata"]) == {"update": 10}


# Whether it can be used


def test_without_access_one_line_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    assert track(run, rows_of(1)) == [NOT_LOGGED_IN]
    assert track(run, rows_of(1)) == []
    monkeypatch.setenv("WANDB_API_KEY", "short")
    (line,) = track(run, rows_of(1))
    assert line.startswith("W&B: WANDB_API_KEY invalid: ")
    assert line.endswith("; it is off for the rest of this run")
    tear_down()
    leaves_out = "--no-wandb leaves out this line"
    monkeypatch.setenv("WANDB_MODE", "disabled")
    assert track(run, rows_of(1)) == [f"W&B: off, as WANDB_MODE says; {leaves_out}"]
    tear_down()
    brings = "pip install 'hackmatrix[wandb]' brings it"
    for module in (None, SimpleNamespace()):  # the second is a folder of this name
        monkeypatch.setitem(sys.modules, "wandb", module)
        assert track(run, rows_of(1)) == [f"W&B: not installed: {brings}; {leaves_out}"]
    assert list(run.iterdir()) == []


SCRIPT = """
import sys, time
from pathlib import Path
from hackmatrix.runs.trackers import TrackedRun, Trackers, tracker

said = []
tracker.QUIET_SECONDS = float(sys.argv[3])

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


def command(run: Path, seconds: int, quiet: int = 60) -> list[str]:
    """A run that lasts until a tracker has said something, or for so long."""
    return [sys.executable, "-c", SCRIPT, str(run), str(seconds), str(quiet)]


def output_of(arguments: list[str]) -> str:
    """What a process shows on a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(arguments, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # so ends a terminal on Linux
        while part := os.read(ours, 4096):
            shown += part
    os.close(ours)
    assert process.wait(60) == 0
    return shown.decode()


@pytest.mark.slow
def test_on_a_terminal_wandb_itself_prints_nothing(tmp_path: Path, server: WandbServer) -> None:
    server.refused = {"UpsertBucket"}
    (line,) = output_of(command(tmp_path, 60)).splitlines()
    assert "UpsertBucket is not for you" in line
    assert "uploads the run later" in line


@pytest.mark.slow
def test_a_silent_server_does_not_keep_the_process(tmp_path: Path, server: WandbServer) -> None:
    server.silent = True
    began = time.monotonic()
    first, second = output_of(command(tmp_path, 1, quiet=2)).splitlines()
    assert first == "W&B: takes what is left, for 40 s at most"
    assert "uploads the run later" in second
    assert time.monotonic() - began < 60  # measured: 24; W&B itself would wait for 90


# With the stand-in for the server


def test_a_run_is_sent_and_goes_on(
    tmp_path: Path, server: WandbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = commit_in(tmp_path)
    monkeypatch.chdir(tmp_path)
    login = f"machine {server.url.removeprefix('http://')}\n login user\n password {KEY}\n"
    (tmp_path / "netrc").write_text(login)
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.delenv("WANDB_API_KEY")
    address = f"{server.url}/me/games/runs/run"

    run = tmp_path / "run"
    assert track(run, rows_of(10, 20)) == [f"W&B: {address}"]
    sent = server.runs["run"]
    assert sent_rows(server, "run") == expected(10, 20)
    assert (sent["displayName"], sent["project"], sent["exitcode"]) == ("run", "games", 0)
    assert json.loads(sent["config"])["lr"] == {"value": 0.5}
    assert sent["commit"] == head
    assert json.loads((run / "wandb.json").read_text()) == {"id": "run", "url": address}

    run = run.rename(tmp_path / "moved")
    has_rows = "W&B: has rows up to update {}, which stay as they are; --rewind cuts them off"
    assert track(run, rows_of(20, 30), update=15)[1:] == [has_rows.format(20)]
    assert track(run, rows_of(20, 40), update=15, rewind=True) == [f"W&B: {address}"]
    assert sent_rows(server, "run") == expected(10, 20, 40)

    server.refused = {"RewindRun"}
    why, _, kept = track(run, rows_of(20, 50), update=15, rewind=True)
    assert why.startswith("W&B: can't cut its history back to update 15: ")
    assert kept == has_rows.format(40)
    assert sent_rows(server, "run") == expected(10, 20, 40, 50)
    assert list(server.runs) == ["run"]


def commit_in(folder: Path) -> str:
    git = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@x"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    return subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()


def test_alarms_and_checkpoints_are_sent(tmp_path: Path, server: WandbServer) -> None:
    name = "two words+" + "x" * 60
    said: list[str] = []
    for machine, upload in (("there", True), ("here", False)):
        run = tmp_path / machine / name
        path = make_checkpoint(run, 10)
        with open_wandb(run, said, artifact=upload) as trackers:
            trackers.alarm(5, "kl_high", f"too fast {machine}")
            trackers.artifact(10, [path])
            trackers.artifact(20, [run / "gone"])
            trackers.log(30, 30, {"a": 1.0})
    assert server.alerts == [
        ("kl_high", "update 5: too fast there"),
        ("kl_high", "update 5: too fast here"),
    ]
    # W&B takes 64 characters; a name that another machine has used gets an id of its own.
    first, second = server.runs
    assert first == "two-words-" + "x" * 54
    assert second[:-6] == "two-words-" + "x" * 47 + "-"
    (sent,) = server.artifacts
    assert sent["artifactTypeName"] == "checkpoint"
    assert sent["artifactCollectionName"] == f"checkpoint-{first}"
    assert {each["alias"] for each in sent["aliases"]} == {"latest", "update-10"}
    _, missing, _ = said  # between the addresses of the runs
    assert missing.startswith("W&B: the checkpoint of update 20 is not uploaded: ")
    for run_id in (first, second):
        assert server.runs[run_id]["displayName"] == name
        assert [row["_step"] for row in server.runs[run_id]["rows"]] == [30]


def test_a_server_that_does_not_answer_means_offline(
    tmp_path: Path, server: WandbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights_and_biases, "INIT_SECONDS", 1.0)
    server.silent = True
    (line,) = track(tmp_path / "run", rows_of(10, 20))
    assert line.startswith("W&B: ")
    assert "uploads the run later" in line
    tear_down()
    (file,) = (tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb")
    assert file.read_bytes().count(b"train/entropy") >= 2


def test_a_network_that_is_lost_ends_in_time(
    tmp_path: Path, server: WandbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights_and_biases, "FINISH_SECONDS", 1.0)
    said: list[str] = []
    with open_wandb(tmp_path, said) as trackers:
        trackers.start()
        deadline = time.monotonic() + 60
        while not said and time.monotonic() < deadline:
            time.sleep(0.01)
        server.silent = True
        trackers.log(1, 1, {"a": 1.0})
    (folder,) = (tmp_path / "wandb").glob("run-*")
    assert said[1:] == [f"W&B: not all was sent in time; `wandb sync {folder}` uploads what it has"]


# Fetching a run. The module `wandb` is a stand-in of a few lines here, made after wandb 0.31: what
# it can't show is whether the real one behaves as it does.


def artifact(version: int, update: int, **changes: str) -> SimpleNamespace:
    def download(root: str, skip_cache: bool) -> None:
        assert skip_cache
        Path(root).mkdir(parents=True)
        if update < 0:
            raise OSError("the connection was lost")
        if update:
            make_checkpoint(Path(root), update)

    facts = {"version": f"v{version}", "state": "COMMITTED", "type": "checkpoint"}
    name = f"checkpoint-run:v{version}"
    return SimpleNamespace(**{**facts, **changes}, name=name, download=download)


class FakeWandb:
    """As much of the module as fetching a run uses."""

    def __init__(self) -> None:
        self.artifacts: list[SimpleNamespace] = []
        self.logged_in = True
        self.mode = "online"
        self.asked: list[str] = []

    def login(self, *, prompt: bool, verify: bool) -> bool:
        assert not prompt
        assert not verify
        return self.logged_in

    def teardown(self) -> None:
        pass

    def setup(self, timeout: int = 0) -> Any:
        return self

    Api = setup

    @property
    def settings(self) -> Any:
        return self

    def run(self, path: str) -> Any:
        self.asked.append(path)
        if not path.endswith("/run"):
            raise ValueError(f"Could not find run <Run {path} (not found)>")
        return self

    def logged_artifacts(self) -> list[SimpleNamespace]:
        return self.artifacts


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeWandb:
    fake = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    return fake


def test_the_newest_checkpoint_makes_a_run(tmp_path: Path, fake: FakeWandb) -> None:
    fake.artifacts = [
        artifact(2, 30),
        artifact(10, 20),  # uploaded after the run was rewound
        artifact(11, 40, state="PENDING"),
        artifact(12, 50, type="wandb-history"),
    ]
    folder = download_run("run", tmp_path / "run", project="games", entity="team")
    assert folder == tmp_path / "run"
    assert [path.name for path in (folder / "checkpoints").iterdir()] == ["20"]
    assert json.loads((folder / "wandb.json").read_text()) == {"id": "run"}
    assert fake.asked == ["team/games/run"]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(
    ("run", "artifacts", "access", "message"),
    [
        ("other", [], {}, r"W&B does not give games/other: Could not find run"),
        ("run", [], {}, "W&B has no checkpoint of games/run"),
        ("run", [artifact(1, 0)], {}, "checkpoint-run:v1 of games/run holds no checkpoint"),
        ("run", [artifact(1, -1)], {}, "W&B does not give games/run: the connection was lost"),
        ("run", [], {"mode": "offline"}, "W&B is not asked, as WANDB_MODE is offline"),
        ("run", [], {"logged_in": False}, "W&B is not logged in: `wandb login`"),
    ],
)
def test_what_can_not_be_fetched_is_said_and_leaves_nothing(
    tmp_path: Path,
    fake: FakeWandb,
    run: str,
    artifacts: list[SimpleNamespace],
    access: dict[str, Any],
    message: str,
) -> None:
    vars(fake).update(access, artifacts=artifacts)
    with pytest.raises(UserError, match=f"--resume-run {run}: there is no run .*{message}"):
        download_run(run, tmp_path / run, project="games", entity=None)
    assert list(tmp_path.iterdir()) == []


def test_without_wandb_nothing_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(UserError, match="W&B is not installed: pip install"):
        download_run("run", tmp_path / "run", project="games", entity=None)
