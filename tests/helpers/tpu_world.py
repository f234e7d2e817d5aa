"""A gcloud that needs no Google: `fake_gcloud.py`, its world and its calls."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import fake_gcloud
from paths import ROOT

from hackmatrix.cloud.tpu.gcloud import CommandResult, Gcloud, shell_line

HERE = ROOT / "tests" / "cloud" / "tpu"
FLAGS = HERE / "gcloud_flags.json"
RUN = "gs://my-bucket/hackmatrix/runs/hackmatrix-train"


class FakeGcloud:
    """The world of `fake_gcloud.py`, and the calls that it got."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.change(queue=None, node=None)

    def change(self, **changes: Any) -> None:
        (self.folder / "world.json").write_text(json.dumps({**self.world, **changes}))

    @property
    def world(self) -> dict[str, Any]:
        path = self.folder / "world.json"
        return json.loads(path.read_text()) if path.exists() else {}

    @property
    def calls(self) -> list[list[str]]:
        path = self.folder / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def actions(self) -> list[str]:
        """The steps so far, without looks."""
        return [action for call in self.calls if (action := action_of(call))]


def action_of(call: list[str]) -> str | None:
    command = next((word for word in call if word.startswith("--command=")), "")
    if "describe" in call or "ls" in call or "worker look" in command:
        return None
    if "worker start" in command:
        return "train"
    if "setup.sh" in command:
        return "set up"
    if "scp" in call:
        return None
    words = [word for word in call if word != "alpha"]
    return words[3] if words[0] == "compute" else words[1]


class GcloudInProcess(Gcloud):
    """Runs the fake in this process, which is much faster than a process for each call."""

    folder: Path

    def run(self, argv: list[str], *, timeout: float = 1.0, quiet: bool = False) -> CommandResult:
        del timeout
        if not quiet:
            self.say(shell_line(argv))
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = fake_gcloud.main(argv[1:], self.folder)
        return CommandResult(code, out.getvalue(), err.getvalue())
