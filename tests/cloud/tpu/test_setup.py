"""The set-up script, run in a folder with real git and bash, and stand-ins for the rest."""

import os
import subprocess
import time
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

from hackmatrix.cloud.tpu import preparation
from hackmatrix.cloud.tpu.description import Description
from hackmatrix.cloud.tpu.hosts import HOST_FOLDER, look_command, setup_script
from hackmatrix.core.errors import UserError

pytestmark = pytest.mark.thorough

PYTHON = """#!/bin/sh
echo "python $*" >>"$CALLS"
case $1 in
    -) cat >/dev/null; echo 'jax[tpu]' ;;
    -c) echo "$SITE" ;;
esac
"""
UV = """#!/bin/sh
echo "uv $*" >>"$CALLS"
case $1 in
    venv) mkdir -p "$VENV/bin"; cp "$STANDINS/python" "$STANDINS/pip" "$VENV/bin" ;;
    pip) ls "$(dirname "$VENV")"/wheels/*/*.whl >/dev/null 2>&1 ;;
esac
"""
PIP = """#!/bin/sh
echo "pip $*" >>"$CALLS"
touch "$4/jax.whl"
"""
GCLOUD = """#!/bin/sh
echo "gcloud $*" >>"$CALLS"
[ "$2$READ_ONLY" != cp1 ] || exit 1
object() { echo "$BUCKET/$(echo "$1" | tr / _)"; }
case "$2 $3" in
    "cat "*) cat "$(object "$3")" ;;
    "cp --if-generation-match=0") [ ! -e "$(object "$5")" ] && cp "$4" "$(object "$5")" ;;
    "cp "*) cp "$3" "$(object "$4")" ;;
    "rsync gs://"*/wheels/*) [ -z "$CACHED" ] || touch "$4/jax.whl" ;;
esac
"""
# Two looks; what happens meanwhile does so before the first.
SLEEP = """#!/bin/sh
name=${CALLS%.txt}
echo >>"$name.looks"
if mv "$name.meanwhile" "$name.begun" 2>/dev/null; then bash "$name.begun"; fi
[ "$(wc -l <"$name.looks")" -le 2 ]
"""


class Host:
    """A machine that is a folder."""

    def __init__(self, folder: Path, tpu: Description, commit: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.bucket = folder.parent / "bucket"
        self.bucket.mkdir(exist_ok=True)
        self.place = folder / "place"
        self.calls = folder / "calls.txt"
        standins = folder / "standins"
        standins.mkdir()
        for name, text in {
            "python": PYTHON,
            "pip": PIP,
            "gcloud": GCLOUD,
            "tmux": "#!/bin/sh\n",
            "hostname": "#!/bin/sh\necho t-w-1\n",  # which leaves no watch behind
        }.items():
            (standins / name).write_text(text)
            (standins / name).chmod(0o755)
        uv = self.place / "tools" / "bin" / "uv"
        uv.parent.mkdir(parents=True)
        uv.write_text(UV)
        uv.chmod(0o755)
        (folder / "site").mkdir()
        self.script = setup_script(tpu, commit).replace(HOST_FOLDER, str(self.place))
        self.environment = {
            **os.environ,
            "PATH": f"{standins}{os.pathsep}{os.environ['PATH']}",
            "CALLS": str(self.calls),
            "STANDINS": str(standins),
            "VENV": str(self.place / "venv"),
            "SITE": str(folder / "site"),
            "GIT_CONFIG_SYSTEM": str(folder / "gitconfig"),
            "BUCKET": str(self.bucket),
            "CACHED": "",
            "READ_ONLY": "",
        }

    def set_up(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-s", *words],
            input=self.script,
            env=self.environment,
            capture_output=True,
            text=True,
        )

    @property
    def ready(self) -> str:
        """The commit for which it is set up."""
        return (self.place / "ready").read_text().strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "origin"
    folder.mkdir()
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    (folder / "requirements.lock").write_text((ROOT / "requirements.lock").read_text())
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder)
    return folder


def git(folder: Path, *words: str) -> str:
    own = ["-c", "user.name=me", "-c", "user.email=me@example.com"]
    done = subprocess.run(
        ["git", *own, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(folder: Path) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "A change")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def host(tmp_path: Path, repo: Path, make: Callable[..., Description]) -> Host:
    return Host(tmp_path / "host", make(repo=f"file://{repo}"))


def test_a_bare_machine_is_set_up_and_takes_new_code_when_it_is_to(
    host: Host, repo: Path, tmp_path: Path, make: Callable[..., Description]
) -> None:
    done = host.set_up()
    assert done.returncode == 0, done.stderr
    old = git(repo, "rev-parse", "HEAD")
    assert done.stdout.strip().endswith(f"ready: {old}")
    assert host.ready == old
    calls = host.calls.read_text()
    assert "pip wheel" in calls  # the packages, which are kept in the bucket
    copies = [line for line in calls.splitlines() if line.startswith("gcloud storage rsync")]
    assert [line.split()[3].split("/")[3:5] for line in copies[::2]] == [
        ["hackmatrix", "wheels"],
        ["hackmatrix", "jax-cache"],
    ]
    assert copies[1].split()[-1].startswith("gs://my-bucket/hackmatrix/wheels/")
    locked = (host.place / "locked.txt").read_text()
    assert "\njax==" in locked
    assert "--hash" not in locked
    assert "\\" not in locked
    assert (host.place.parent / "site" / "hackmatrix.pth").read_text() == f"{host.place}/repo\n"

    new = commit(repo)
    host.calls.unlink()
    assert host.set_up().returncode == 0
    assert host.ready == old
    assert "rsync" not in host.calls.read_text()
    # A TPU that is made anew takes the code that the run began with, and packages of the bucket.
    another = Host(tmp_path / "another", make(repo=f"file://{repo}"))
    another.environment["CACHED"] = "1"
    assert another.set_up().returncode == 0
    assert another.ready == old
    calls = another.calls.read_text()
    assert "pip wheel" not in calls
    assert calls.count("gcloud storage rsync") == 2  # packages and compiled programs

    assert host.set_up("update").returncode == 0
    assert host.ready == new
    assert "uv venv" not in host.calls.read_text()
    third = Host(tmp_path / "third", make(repo=f"file://{repo}"))
    assert third.set_up().returncode == 0
    assert third.ready == new


def test_alone_it_takes_the_newest_code(
    tmp_path: Path, repo: Path, make: Callable[..., Description]
) -> None:
    host = Host(tmp_path / "host", make(repo=f"file://{repo}", bucket=None))
    host.set_up()
    new = commit(repo)
    assert host.set_up().returncode == 0
    assert host.ready == new
    assert "gcloud" not in host.calls.read_text()


def test_the_code_of_a_folder_goes_through_the_bucket(
    tmp_path: Path, repo: Path, make: Callable[..., Description], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repo)
    (repo / "uncommitted.txt").touch()
    tpu = make(repo=".")
    head = git(repo, "rev-parse", "HEAD")
    upload, *_ = preparation.set_up(tpu)
    host = Host(tmp_path / "host", tpu, head)
    subprocess.run([host.place.parent / "standins" / "gcloud", *upload[1:]], env=host.environment)
    done = host.set_up()
    assert done.returncode == 0, done.stderr
    assert host.ready == head
    assert (host.place / "repo" / "requirements.lock").exists()
    assert not (host.place / "repo" / "uncommitted.txt").exists()
    # What does not get new code keeps the old.
    host.script = setup_script(tpu, "0123456789").replace(HOST_FOLDER, str(host.place))
    assert host.set_up("update").returncode != 0
    assert host.ready == head
    assert (host.place / "repo" / "requirements.lock").exists()


@pytest.mark.parametrize("pin", [None, ""])
def test_a_commit_that_the_bucket_does_not_keep_is_not_trained(pin: str | None, host: Host) -> None:
    host.environment["READ_ONLY"] = "1"
    if pin is not None:
        name = "gs://my-bucket/hackmatrix/runs/hackmatrix-train/tpu/commit".replace("/", "_")
        (host.bucket / name).write_text(pin)
    assert host.set_up().returncode == 1
    assert not (host.place / "ready").exists()


def test_what_is_no_repository_is_told(tmp_path: Path, make: Callable[..., Description]) -> None:
    with pytest.raises(UserError, match="not a git repository"):
        preparation.set_up(make(repo=str(tmp_path)))
    with pytest.raises(UserError, match="set bucket"):
        make(repo=".", bucket=None)


def test_what_fails_is_not_ready(
    tmp_path: Path, repo: Path, make: Callable[..., Description]
) -> None:
    host = Host(tmp_path / "host", make(repo=f"file://{repo}", branch="nope"))
    done = host.set_up()
    assert done.returncode == 128
    assert "couldn't find remote ref nope" in done.stderr
    assert not (host.place / "ready").exists()


NOW = time.time()
HOUR = 3600


class Watch:
    """A host's watch, of which each set-up is a start; `sleep` lets it look twice."""

    def __init__(self, folder: Path, tpu: Description, hostname: str = "t-v-0123-w-0") -> None:
        self.host = Host(folder, tpu)
        self.tpu = tpu
        (self.host.place / "jax-cache").mkdir()
        (self.host.place / "jax-cache" / "program").touch()
        standins = folder / "standins"
        for name, text in {
            "sleep": SLEEP,
            "hostname": f"#!/bin/sh\necho {hostname}\n",
            "setsid": '#!/bin/sh\nshift\nexec "$@"\n',  # without nohup, as the test waits for it
        }.items():
            (standins / name).write_text(text)
            (standins / name).chmod(0o755)

    def lines(self, end: float | None = None, written: float = NOW) -> str:
        """The part of the set-up that starts it."""
        script = setup_script(self.tpu, end=None if end is None else int(end), written=written)
        text = script.split('mkdir -p "$place"\n')[1].split("exec 9>")[0]
        return f"set -euo pipefail\nplace={self.host.place}\n{text}\nwait\n"

    def calls(self, lines: str, meanwhile: str = "", idle_minutes: int = 0) -> str:
        """The calls of gcloud after a start, and after another one before the first look."""
        used = f"touch --date=@{NOW - 60 * idle_minutes:.0f}"
        lines = lines.replace('touch "$1/used"\n', f'{used} "$1/used"\n', 1)
        self.host.calls.with_suffix(".looks").unlink(missing_ok=True)
        if meanwhile:
            self.host.calls.with_suffix(".meanwhile").write_text(meanwhile)
        subprocess.run(["bash"], input=lines, text=True, env=self.host.environment, check=True)
        return self.host.calls.read_text() if self.host.calls.exists() else ""


@pytest.mark.parametrize(
    ("changes", "minutes", "deletes"),
    [({}, 11 * 60, False), ({}, 12 * 60 + 5, True), ({"bucket": None}, 99 * 60, False)],
)
def test_an_idle_tpu_deletes_itself_if_its_run_is_elsewhere(
    changes: dict[str, Any],
    minutes: int,
    deletes: bool,
    tmp_path: Path,
    make: Callable[..., Description],
) -> None:
    watch = Watch(tmp_path / "host", make(**changes, spot=False))
    calls = watch.calls(watch.lines(), idle_minutes=minutes)
    assert ("queued-resources delete hackmatrix-train" in calls) == deletes
    kept = calls.count("jax-cache gs://my-bucket/hackmatrix/jax-cache/v4-8")
    assert kept == (0 if changes else 1)


def test_after_the_end_date_the_first_host_deletes_the_tpu(
    tmp_path: Path, make: Callable[..., Description]
) -> None:
    for name, deletes in (("t-w-0", True), ("t-v-0123-w0", True), ("t-w-1", False)):
        watch = Watch(tmp_path / name, make(), name)
        assert ("delete" in watch.calls(watch.lines(end=NOW - HOUR))) == deletes


def test_the_end_date_is_a_time_on_the_host(make: Callable[..., Description]) -> None:
    tpu = make(end_date="2026-11-22")
    preparation.create(tpu)  # with the set-up that gcloud gets
    text = (preparation.folder_of(tpu) / "setup.sh").read_text()
    assert "VALUES" not in text
    line = next(line for line in text.splitlines() if line.startswith("end="))
    end = datetime.fromtimestamp(int(line.removeprefix("end=")))
    assert (end.date(), end.hour) == (date(2026, 11, 23), 1)


@pytest.mark.parametrize("later", [True, False])
def test_a_tpu_that_is_set_up_again_deletes_itself_at_its_new_end_date(
    later: bool, tmp_path: Path, make: Callable[..., Description]
) -> None:
    old, new = (NOW - HOUR, NOW + HOUR) if later else (NOW + HOUR, NOW - HOUR)
    watch = Watch(tmp_path / "host", make())
    again = watch.lines(new, written=NOW + 1)
    assert ("delete" in watch.calls(watch.lines(old), meanwhile=again)) == (not later)


def test_a_machine_that_restarts_keeps_the_end_date_of_its_last_set_up(
    tmp_path: Path, make: Callable[..., Description]
) -> None:
    watch = Watch(tmp_path / "host", make())
    assert "delete" not in watch.calls(watch.lines(NOW + HOUR, written=NOW + 1))
    start_up = watch.lines(NOW - HOUR, written=NOW)
    assert "delete" not in watch.calls(start_up)


def test_a_bare_machine_says_so(make: Callable[..., Description], tmp_path: Path) -> None:
    text = look_command(make(), 0).replace(HOST_FOLDER, str(tmp_path))
    done = subprocess.run(["sh", "-c", text], capture_output=True, text=True)
    assert done.stdout == 'hackmatrix-tpu: {"state": "bare"}\n'
