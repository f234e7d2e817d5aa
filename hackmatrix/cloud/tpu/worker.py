"""Runs on a host of a TPU: starts training in a session, keeps its output, tells how it is.

`python -m hackmatrix.cloud.tpu.worker look|start|work`. It needs the standard library alone.
"""

import argparse
import contextlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from hackmatrix.cloud.tpu.hosts import HOST_FOLDER, SECRETS, SESSION
from hackmatrix.core.processes import python_module

PREFIX = "hackmatrix-tpu: "
LINES = 200  # of the log that one look tells
LAST_WORDS = 20
_LONGEST = 300  # characters of a line
_TRAINING, _EXIT, _LOG = "training.json", "exit.json", "train.log"
_TRAINS = 3  # exit code: another training is under way


def look(folder: Path, job: str, run: str, after: int) -> dict[str, Any]:
    """The state of this host, and lines of the log after the first `after`.

    The state is "idle", "training", "busy" (it trains something else), "ended" (with its exit code)
    or "vanished" (it was started, and neither runs nor has ended).
    """
    log = _lines_of(folder / _LOG)
    report: dict[str, Any] = {"host": socket.gethostname(), **_state(folder, job)}
    if report["state"] == "ended":
        report["words"] = [line for line in log if line.strip()][-LAST_WORDS:]
    report["lines"] = log[after:][-LINES:]
    report["next"] = len(log)
    report["run"] = (folder / "runs" / run).is_dir()
    report["checkpoint"] = _newest_checkpoint(folder / "runs" / run)
    return report


def start(folder: Path, job: str, marker: str, command: list[str], *, again: bool) -> int:
    """Starts training in a session; returns an exit code.

    Args:
        folder: folder of this host.
        job: name of the training.
        marker: file or object of a bucket that tells a finished training.
        command: arguments of `hackmatrix`.
        again: end the session that may be there.
    """
    if _session_lives():
        if not again:
            print("training is under way already", file=sys.stderr)
            return _TRAINS
        subprocess.run(["tmux", "kill-session", "-t", SESSION], check=True)
    (folder / _EXIT).unlink(missing_ok=True)
    (folder / _TRAINING).write_text(json.dumps({"job": job, "command": command}))
    words = python_module("hackmatrix.cloud.tpu.worker", "work", "--job", job)
    session = shlex.join([*words, "--marker", marker, "--", *command])
    return subprocess.run(["tmux", "new-session", "-d", "-s", SESSION, session]).returncode


def work(folder: Path, job: str, marker: str, command: list[str]) -> int:
    """Trains, with its output to the terminal and the log; keeps and returns its exit code."""
    command_line = [sys.executable, "-m", "hackmatrix", *command]  # the clone, where it is started
    environment = {
        "JAX_COMPILATION_CACHE_DIR": str(folder / "jax-cache"),
        "PYTHONUNBUFFERED": "1",
        **_secrets(Path.home() / SECRETS),
    }
    start = subprocess.Popen(
        command_line,
        cwd=folder / "repo",
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # signals come to it from here alone, once
    )
    with start as child, (folder / _LOG).open("a", encoding="utf-8") as log:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda received, _: child.send_signal(received))
        print(f"$ hackmatrix {shlex.join(command)}", file=log, flush=True)
        for line in child.stdout or ():
            log.write(line)
            log.flush()
            _show(line)
        code = child.wait()
    code = 128 - code if code < 0 else code
    (folder / _EXIT).write_text(json.dumps({"job": job, "code": code}))
    if code == 0 and marker.startswith("gs://"):
        with contextlib.suppress(OSError):  # without it the run is only resumed once more
            subprocess.run(["gcloud", "storage", "cp", str(folder / _EXIT), marker])
    elif code == 0 and marker:
        Path(marker).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / _EXIT, marker)
    return code


def main(argv: list[str], folder: Path = Path(HOST_FOLDER)) -> int:
    """Runs a command line."""
    parser = argparse.ArgumentParser(prog="hackmatrix.cloud.tpu.worker")
    parser.add_argument("what", choices=("look", "start", "work"))
    parser.add_argument("--job", required=True)
    parser.add_argument("--run", default="")
    parser.add_argument("--after", type=int, default=0)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--marker", default="")
    at = argv.index("--") if "--" in argv else len(argv)
    own, command = argv[:at], argv[at + 1 :]
    options = parser.parse_args(own)
    if options.what == "look":
        print(PREFIX + json.dumps(look(folder, options.job, options.run, options.after)))
        return 0
    if options.what == "start":
        return start(folder, options.job, options.marker, command, again=options.again)
    return work(folder, options.job, options.marker, command)


def _state(folder: Path, job: str) -> dict[str, Any]:
    started, ended = _read(folder / _TRAINING), _read(folder / _EXIT)
    lives = _session_lives()
    if started.get("job") != job:
        return {"state": "busy" if lives and started else "idle"}
    if ended.get("job") == job:
        return {"state": "ended", "code": ended.get("code")}
    return {"state": "training" if lives else "vanished"}


def _session_lives() -> bool:
    words = ["tmux", "has-session", "-t", SESSION]
    return subprocess.run(words, capture_output=True).returncode == 0


def _newest_checkpoint(run: Path) -> int | None:
    names = [path.parent.name for path in run.glob("checkpoints/*/manifest.json")]
    return max((int(name) for name in names if name.isdigit()), default=None)


def _secrets(path: Path) -> dict[str, str]:
    """The variables in a file of NAME=value lines, which only its owner may read."""
    if not path.exists():
        return {}
    path.chmod(0o600)
    lines = path.read_text(encoding="utf-8").splitlines()
    pairs = [line.strip().removeprefix("export ").partition("=") for line in lines]
    return {
        name.strip(): value.strip().strip("'\"")
        for name, equals, value in pairs
        if equals and not name.startswith("#")
    }


def _show(line: str) -> None:
    try:
        sys.stdout.write(line)
        sys.stdout.flush()
    except OSError:  # the session's terminal is gone; the log goes on
        pass


def _lines_of(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    return [line[:_LONGEST] for line in text.splitlines()]


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):  # not there, or half written when the machine went
        return {}
    return found if isinstance(found, dict) else {}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
