"""The package as `pip install hackmatrix` alone brings it: no JAX, and no repository around."""

import json
import re
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from made_places import Places
from paths import DOCS
from subcommands import subcommands
from websockets.sync.client import connect

pytestmark = pytest.mark.timeout(600)

# Many commands in one process, whose lines come on stdin.
IN_ONE = """
import contextlib, io, json, sys
from hackmatrix.cli.main import main
for line in sys.stdin.read().splitlines():
    streams = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        try:
            code = main(line.split())
        except SystemExit as end:
            code = end.code or 0
    print(json.dumps([code, *(stream.getvalue() for stream in streams)]))
"""

GYMNASIUM = """
import gymnasium, hackmatrix
env = gymnasium.make("HackMatrix-v1")
_, info = env.reset(seed=7)
print(env.step(info["action_mask"].argmax())[1])
games = gymnasium.make_vec("HackMatrix-v1", num_envs=2)
print(games.reset(seed=7)[0]["player"].shape)
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    return folder


def run(places: Places, folder: Path, *command: str, given: str = "") -> Any:
    return subprocess.run(
        command,
        cwd=folder,
        env=places.environment(places.core),
        input=given,
        capture_output=True,
        text=True,
    )


def said(places: Places, folder: Path, *command: str, given: str = "") -> str:
    done = run(places, folder, *command, given=given)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    output: str = done.stdout
    return output


def each_said(places: Places, folder: Path, *lines: str) -> dict[str, tuple[int, str, str]]:
    """The exit codes, outputs and errors of lines that follow `hackmatrix`."""
    python = str(places.core / "python")
    told = said(places, folder, python, "-c", IN_ONE, given="\n".join(lines)).splitlines()
    return {line: tuple(json.loads(each)) for line, each in zip(lines, told, strict=True)}


@contextmanager
def page_of(places: Places, folder: Path, *words: str) -> Iterator[str]:
    """The address of the page that a command serves; it is ended by Ctrl+C."""
    with subprocess.Popen(
        ["hackmatrix", *words, "--port", "0"],
        cwd=folder,
        env=places.environment(places.core),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        printed = process.stdout.readline()
        assert printed.startswith("http://127.0.0.1:"), printed
        try:
            yield printed.split()[0]
        finally:
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=60)
    assert (rest, process.returncode) == ("", 0) or process.returncode == 130


def test_jax_is_not_there(places: Places, here: Path) -> None:
    """Else the tests below would say nothing."""
    python = str(places.core / "python")
    assert "No module named 'jax'" in run(places, here, python, "-c", "import jax").stderr
    assert said(places, here, python, "-m", "hackmatrix.game.native", "--games", "8")


def test_help(places: Places, here: Path) -> None:
    told = said(places, here, "hackmatrix", "--help")
    assert told.startswith("usage: hackmatrix")
    documents = Path(told.split()[-1])
    assert documents.is_relative_to(places.core.parent)
    assert {file.name for file in documents.glob("*.md")} == {x.name for x in DOCS.glob("*.md")}
    assert {file.suffix for file in documents.rglob("*.*")} == {".md"}


def test_help_of_every_command(places: Places, here: Path) -> None:
    lines = [f"{name} --help" for name in subcommands()]
    for line, (code, out, errors) in each_said(places, here, *lines).items():
        assert (code, errors) == (0, ""), line
        assert "usage: hackmatrix" in out, line


@pytest.mark.parametrize("words", [("play",), ("watch",), ("watch", "scripted")], ids=" ".join)
def test_the_page_is_served_and_plays(words: tuple[str, ...], places: Places, here: Path) -> None:
    with page_of(places, here, *words) as address:
        with urllib.request.urlopen(address, timeout=60) as answer:
            assert "<html" in answer.read().decode()
        socket, origin = address.replace("http", "ws"), address.rstrip("/")
        with connect(f"{socket}session", origin=origin) as tab:  # type: ignore[arg-type]
            tab.send(json.dumps({"do": "hello"}))
            assert "error" not in json.loads(tab.recv(timeout=60))
            if words[0] == "watch":
                tab.send(json.dumps({"do": "agent", "steps": 3}))
                assert "error" not in json.loads(tab.recv(timeout=60))


def test_built_in_players_are_evaluated(places: Places, here: Path) -> None:
    lines = [f"evaluate {player} --episodes 4" for player in ("scripted", "random", "exit")]
    in_text = each_said(places, here, *lines)
    in_json = each_said(places, here, *(f"{line} --json" for line in lines))
    for line in lines:
        told = json.loads(in_json[f"{line} --json"][1])
        assert told["episodes"] == 4
        assert re.search(rf"^win rate +{told['win_rate']:.3f} ", in_text[line][1], re.M)


def test_the_packaged_agent_is_evaluated(places: Places, here: Path) -> None:
    command = ("hackmatrix", "evaluate", "--episodes", "4")
    assert json.loads(said(places, here, *command, "--json"))["episodes"] == 4
    done = run(places, here, *command)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "NumPy plays, slower" in done.stderr


def test_the_game_is_served_as_a_process(places: Places, here: Path) -> None:
    asked = '{"action": "reset", "seed": 7}\n'
    for command in (("hackmatrix", "serve"), ("hackmatrix-game",)):
        assert "observation" in json.loads(said(places, here, *command, given=asked))


def test_gymnasium_plays(places: Places, here: Path) -> None:
    reward, shape = said(places, here, str(places.core / "python"), "-c", GYMNASIUM).splitlines()
    assert float(reward) < 10
    assert shape.startswith("(2,")


def test_a_game_becomes_a_picture(places: Places, here: Path) -> None:
    shutil.copy(DOCS / "won.json", here / "game.json")
    said(places, here, "hackmatrix", "replay", "game.json", "--svg", "game.svg")
    assert (here / "game.svg").read_text().startswith("<svg")


def test_settings_are_listed_and_resolved(places: Places, here: Path) -> None:
    listed = said(places, here, "hackmatrix", "train", "--list-configs")
    names = re.findall(r"^(\w+)  +\S", listed, re.M)
    assert {"best", "quick", "original"} <= set(names)
    lines = [f"train --config {name} --print-config" for name in names]
    for line, (_, out, _) in each_said(places, here, *lines).items():
        assert "total_timesteps: " in out, line


NEEDS = {  # the extra of a command
    "train": "train",
    "train --env CartPole-v1": "train",
    "evaluate shipped@2": "train",
    "evaluate random --env CartPole-v1": "train",
    "analyse position.txt shipped": "train",
    "bench env": "train",
    "bench train": "train",
    "clone games cloned.npz": "train",
    "data record games": "train",
    "data verify games": "train",
    "data export games a/b-v0": "minari",
    "tune": "tune",
    "watch shipped@2": "train",
    "watch --search 2": "train",
    "sb3 train": "sb3",
    "evaluate gs://bucket/run": "bucket",
    "train --checkpoint-dir gs://bucket/runs": "train",
    "replay game.json --gif game.gif": "film",
    "replay game.json --mp4 game.mp4": "mp4",
    "replay game.json --terminal": "terminal",
    "checkpoint convert params.npz agent.onnx": "exchange",
    "checkpoint verify params.npz": "train",
}


def test_what_needs_an_extra_says_so(places: Places, here: Path) -> None:
    places.prepare(here, "game.json position.txt")
    shipped = next(places.core.parent.rglob("final_params.npz"))
    for suffix in (".npz", ".json"):
        shutil.copy(shipped.with_suffix(suffix), here / f"params{suffix}")
    before = sorted(here.rglob("*"))
    for line, (code, out, errors) in each_said(places, here, *NEEDS).items():
        assert (code, out) == (2, ""), line
        install = rf"pip install 'hackmatrix\[{NEEDS[line]}\]'"
        assert re.fullmatch(rf"hackmatrix .*: needs [\w-]+: {install}( \(.*\))?\n", errors), line
    assert sorted(here.rglob("*")) == before


def test_what_needs_a_terminal_and_an_extra_says_so(places: Places, here: Path) -> None:
    line = "script -qec 'hackmatrix play --terminal' /dev/null"
    done = run(places, here, "bash", "-c", line)
    assert done.stdout == "hackmatrix play: error: needs rich: pip install 'hackmatrix[terminal]'\n"
