"""The script on a host: with a session that is a file, and commands that stand in for others."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hackmatrix.cloud.tpu import worker
from hackmatrix.cloud.tpu.description import Description
from hackmatrix.cloud.tpu.hosts import HOST_FOLDER, look_command
from hackmatrix.cloud.tpu.probe import (
    Hosts,
    combine,
    log_of,
    reports_of_hosts,
    run_in_bucket,
    run_on_hosts,
)

JOB = "12345678"
TMUX = """#!/bin/sh
case $1 in
    has-session) test -e "$SESSION" ;;
    kill-session) rm "$SESSION" ;;
    new-session) echo "$5" >"$SESSION" ;;
esac
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a host that is set up; `python -m hackmatrix` is a stand-in."""
    binaries = tmp_path / "bin"
    binaries.mkdir()
    script(binaries / "tmux", TMUX)
    script(binaries / "gcloud", f'#!/bin/sh\necho "$@" >>{tmp_path}/gcloud.txt\n')
    monkeypatch.setenv("PATH", f"{binaries}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SESSION", str(tmp_path / "session"))
    monkeypatch.setenv("HOME", str(tmp_path))
    package = tmp_path / "repo" / "hackmatrix"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (tmp_path / "runs").mkdir()
    caught = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {number: signal.getsignal(number) for number in caught}
    yield tmp_path
    for number, handler in handlers.items():
        signal.signal(number, handler)


def script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def program(place: Path, text: str) -> None:
    """A stand-in for `python -m hackmatrix`."""
    (place / "repo" / "hackmatrix" / "__main__.py").write_text(text)


def look(place: Path, after: int = 0) -> dict[str, object]:
    return worker.look(place, JOB, "run", after)


def train(place: Path, marker: str = "", *, again: bool = False) -> int:
    return worker.start(place, JOB, marker, ["train", "--lr", "1"], again=again)


def test_training_starts_in_a_session_once(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert look(place)["state"] == "idle"
    assert train(place) == 0
    assert (place / "session").read_text().endswith("-- train --lr 1\n")
    assert look(place)["state"] == "training"
    assert worker.look(place, "87654321", "run", 0)["state"] == "busy"
    assert train(place) == 3
    assert "training is under way already" in capfd.readouterr().err
    assert train(place, again=True) == 0
    (place / "session").unlink()  # training that is gone without a word
    assert look(place)["state"] == "vanished"
    assert worker.look(place, "87654321", "run", 0)["state"] == "idle"
    (place / "training.json").write_text('{"job": "1234')  # half written
    assert look(place)["state"] == "idle"


@pytest.mark.parametrize("code", [0, 2])
def test_output_and_exit_code_are_kept(
    code: int, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program(place, f"print('one'); print('two'); raise SystemExit({code})")
    (place / worker.SECRETS).write_text("# mine\nWANDB_API_KEY='secret'\n")
    train(place)
    assert worker.work(place, JOB, "gs://bucket/finished", ["train", "--lr", "1"]) == code
    assert "one\ntwo\n" in capfd.readouterr().out
    told = look(place)
    assert (told["state"], told["code"]) == ("ended", code)
    assert told["lines"] == ["$ hackmatrix train --lr 1", "one", "two"]
    assert told["words"] == told["lines"]
    assert look(place, after=2)["lines"] == ["two"]
    written = (place / "gcloud.txt").exists()
    assert written == (code == 0)
    assert (place / worker.SECRETS).stat().st_mode & 0o077 == 0
    assert train(place, again=True) == 0
    assert look(place)["state"] == "training"


def test_training_gets_secrets_and_is_marked_on_disk_where_there_is_no_bucket(place: Path) -> None:
    program(place, "import os; print(len(os.environ['WANDB_API_KEY']))")
    (place / worker.SECRETS).write_text("export WANDB_API_KEY=secret\n")
    train(place)
    marker = place / "runs" / "run" / "tpu" / "finished"
    assert worker.work(place, JOB, str(marker), ["train"]) == 0
    assert json.loads(marker.read_text()) == {"job": JOB, "code": 0}
    assert look(place)["lines"] == ["$ hackmatrix train", "6"]
    assert "WANDB_API_KEY" not in os.environ
    (place / worker.SECRETS).unlink()
    assert worker.work(place, JOB, "", ["train"]) == 1  # the program misses them


def test_a_signal_reaches_training_which_may_save(place: Path) -> None:
    program(
        place,
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n",
    )
    train(place)
    words = ["work", "--job", JOB, "--", "train"]
    code = f"""if True:
        from pathlib import Path
        from hackmatrix.cloud.tpu import worker
        raise SystemExit(worker.main({words}, Path({str(place)!r})))"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=60) == 143
    assert look(place)["code"] == 143


def test_a_look_is_a_line_of_json(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = place / "runs" / "run" / "checkpoints" / "40"
    folder.mkdir(parents=True)
    (folder / "manifest.json").touch()
    assert worker.main(["look", "--job", JOB, "--run", "run"], place) == 0
    lines = [capsys.readouterr().out]
    lines += [worker.PREFIX + json.dumps({"host": f"t-w-{host}"}) for host in (1, 0)]
    told = reports_of_hosts("\n".join(["SSH: connecting", *lines, worker.PREFIX + "{half"]))
    assert [one["host"] for one in told if one["host"].startswith("t-w")] == ["t-w-0", "t-w-1"]
    (mine,) = (one for one in told if one.get("state") == "idle")
    assert run_on_hosts([mine]) == (True, 40, False)
    of_a_new_machine = [{"state": "training", "lines": [], "next": 3}]
    assert log_of(of_a_new_machine, 100).next == 0  # followed from its first line


@pytest.mark.parametrize(
    ("states", "hosts", "code"),
    [
        (["training"] * 4, Hosts.TRAINING, 0),
        (["training"] * 3, Hosts.UNREACHABLE, 0),
        (["training", "bare", "idle", "training"], Hosts.BARE, 0),
        (["training", "busy", "training", "training"], Hosts.BUSY, 0),
        (["training", "vanished", "training", "training"], Hosts.MIXED, 0),
        (["training", 75, 75, 75], Hosts.MIXED, 0),
        (["training", 1, 75, 75], Hosts.ENDED, 1),  # the others only miss the host that failed
        ([75] * 4, Hosts.ENDED, 75),
        ([0] * 4, Hosts.ENDED, 0),
        (["training", 0, 0, 0], Hosts.TRAINING, 0),  # it writes the last checkpoint
        ([0, 0, 0, 143], Hosts.ENDED, 143),
        (["idle"] * 4, Hosts.IDLE, 0),
        (["vanished"] * 4, Hosts.VANISHED, 0),
        (["new state"] * 4, Hosts.BARE, 0),
    ],
)
def test_the_state_of_all_hosts(states: list[str | int], hosts: Hosts, code: int) -> None:
    told = [
        {"state": state} if isinstance(state, str) else {"state": "ended", "code": state}
        for state in states
    ]
    assert combine(told, 4)[:2] == (hosts, code)


@pytest.mark.parametrize(
    ("listing", "expected"),
    [
        ("", (False, None, False)),
        ("gs://b/runs/r/checkpoints/8/facts.json\n", (True, None, False)),
        (
            "gs://b/r/checkpoints/8/manifest.json\ngs://b/r/checkpoints/40/manifest.json",
            (True, 40, False),
        ),
        (f"gs://b/r/config.yaml\ngs://b/r/tpu/finished-{JOB}", (True, None, True)),
        ("gs://b/r/tpu/finished-87654321", (False, None, False)),
    ],
)
def test_the_run_in_the_bucket(listing: str, expected: tuple[object, ...]) -> None:
    assert run_in_bucket(listing, JOB) == expected


def test_a_folder_of_the_same_name_is_not_taken_for_the_package(
    tmp_path: Path, make: Callable[..., Description]
) -> None:
    (tmp_path / "hackmatrix").mkdir()
    (tmp_path / "hackmatrix" / "__init__.py").touch()
    (tmp_path / "ready").touch()
    text = look_command(make(), 0).replace(f"{HOST_FOLDER}/venv/bin/python", sys.executable)
    command = ["sh", "-c", text.replace(HOST_FOLDER, str(tmp_path))]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert len(reports_of_hosts(done.stdout)) == 1, done.stderr


def test_it_needs_the_standard_library_alone() -> None:
    code = "import sys, hackmatrix.cloud.tpu.worker; print({'yaml', 'jax'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"
