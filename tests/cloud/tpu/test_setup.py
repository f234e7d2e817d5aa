"""The set-up script, run in a folder with real git and bash, and stand-ins for the rest."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from paths import ROOT

from hackmatrix.cloud.tpu.description import Description
from hackmatrix.cloud.tpu.hosts import PLACE, look_command, setup_script, write_setup_script

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
case $3 in
    gs://*) [ -z "$CACHED" ] || touch "$4/jax.whl" ;;
esac
"""


class Host:
    """A machine that is a folder."""

    def __init__(self, folder: Path, tpu: Description) -> None:
        self.place = folder / "place"
        self.calls = folder / "calls.txt"
        standins = folder / "standins"
        standins.mkdir()
        for name, text in {
            "python": PYTHON,
            "pip": PIP,
            "gcloud": GCLOUD,
            "tmux": "#!/bin/sh\n",
        }.items():
            (standins / name).write_text(text)
            (standins / name).chmod(0o755)
        uv = self.place / "tools" / "bin" / "uv"
        uv.parent.mkdir(parents=True)
        uv.write_text(UV)
        uv.chmod(0o755)
        (folder / "site").mkdir()
        self.script = setup_script(tpu).replace(PLACE, str(self.place))
        self.environment = {
            **os.environ,
            "PATH": f"{standins}{os.pathsep}{os.environ['PATH']}",
            "CALLS": str(self.calls),
            "STANDINS": str(standins),
            "VENV": str(self.place / "venv"),
            "SITE": str(folder / "site"),
            "GIT_CONFIG_SYSTEM": str(folder / "gitconfig"),
            "CACHED": "",
        }

    def set_up(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash"], input=self.script, env=self.environment, capture_output=True, text=True
        )


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
    return Host(tmp_path, make(repo=f"file://{repo}"))


def test_a_bare_machine_is_set_up_and_its_packages_are_kept_in_the_bucket(
    host: Host, repo: Path
) -> None:
    done = host.set_up()
    assert done.returncode == 0, done.stderr
    head = git(repo, "rev-parse", "HEAD")
    assert done.stdout.strip().endswith(f"ready: {head}")
    assert (host.place / "ready").read_text().strip() == head
    calls = host.calls.read_text()
    assert "pip wheel" in calls
    copies = [line for line in calls.splitlines() if line.startswith("gcloud storage rsync")]
    assert len(copies) == 2
    assert copies[1].split()[-1].startswith("gs://my-bucket/hackmatrix/wheels/")
    locked = (host.place / "locked.txt").read_text()
    assert "\njax==" in locked
    assert "--hash" not in locked
    assert "\\" not in locked
    assert (host.place.parent / "site" / "hackmatrix.pth").read_text() == f"{host.place}/repo\n"


def test_packages_in_the_bucket_are_taken_from_there(host: Host) -> None:
    host.environment["CACHED"] = "1"
    assert host.set_up().returncode == 0
    calls = host.calls.read_text()
    assert "pip wheel" not in calls
    assert calls.count("gcloud storage rsync") == 1


def test_again_it_does_nothing_until_there_is_new_code(host: Host, repo: Path) -> None:
    host.set_up()
    host.calls.unlink()
    assert host.set_up().returncode == 0
    assert not host.calls.exists()
    new = commit(repo)
    assert host.set_up().returncode == 0
    assert (host.place / "ready").read_text().strip() == new
    assert "uv venv" not in host.calls.read_text()


def test_what_fails_says_so_and_is_not_ready(
    tmp_path: Path, repo: Path, make: Callable[..., Description]
) -> None:
    host = Host(tmp_path, make(repo=f"file://{repo}", branch="nope"))
    done = host.set_up()
    assert done.returncode == 128
    assert "Remote branch nope not found" in done.stderr
    assert not (host.place / "ready").exists()


def test_values_are_quoted(make: Callable[..., Description]) -> None:
    text = setup_script(make(branch="a+b"))
    assert "branch=a+b\n" in text
    assert "VALUES" not in text
    assert subprocess.run(["bash", "-n"], input=text, text=True).returncode == 0


def test_a_machine_that_is_not_set_up_says_so(
    make: Callable[..., Description], tmp_path: Path
) -> None:
    text = look_command(make(), 0).replace(PLACE, str(tmp_path))
    done = subprocess.run(["sh", "-c", text], capture_output=True, text=True)
    assert done.stdout == 'hackmatrix-tpu: {"state": "bare"}\n'


def test_the_script_is_a_file_for_gcloud(
    make: Callable[..., Description], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = write_setup_script(make())
    assert path.read_text() == setup_script(make())
