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


@pytest.mark.parametrize("name", subcommands())
def test_help_of_every_command(name: str, places: Places, here: Path) -> None:
    assert "usage: hackmatrix" in said(places, here, "hackmatrix", *name.split(), "--help")


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


@pytest.mark.parametrize("player", ["scripted", "random", "exit"])
def test_built_in_players_are_evaluated(player: str, places: Places, here: Path) -> None:
    command = ("hackmatrix", "evaluate", player, "--episodes", "4")
    told = json.loads(said(places, here, *command, "--json"))
    assert told["episodes"] == 4
    assert re.search(rf"^win rate +{told['win_rate']:.3f} ", said(places, here, *command), re.M)


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
    for name in names:
        command = ("hackmatrix", "train", "--config", name, "--print-config")
        assert "total_timesteps: " in said(places, here, *command)


@pytest.mark.parametrize(
    ("line", "extra"),
    [
        ("train", "train"),
        ("train --env CartPole-v1", "train"),
        ("evaluate shipped@2", "train"),
        ("evaluate random --env CartPole-v1", "train"),
        ("analyse position.txt shipped", "train"),
        ("bench env", "train"),
        ("bench train", "train"),
        ("clone games cloned.npz", "train"),
        ("data record games", "train"),
        ("data verify games", "train"),
        ("data export games a/b-v0", "minari"),
        ("tune", "tune"),
        ("watch shipped@2", "train"),
        ("watch --search 2", "train"),
        ("sb3 train", "sb3"),
        ("evaluate gs://bucket/run", "bucket"),
        ("train --checkpoint-dir gs://bucket/runs", "train"),
        ("replay game.json --gif game.gif", "film"),
        ("replay game.json --mp4 game.mp4", "mp4"),
        ("replay game.json --terminal", "terminal"),
        ("checkpoint convert params.npz agent.onnx", "exchange"),
        ("checkpoint verify params.npz", "train"),
    ],
)
def test_what_needs_an_extra_says_so(line: str, extra: str, places: Places, here: Path) -> None:
    if re.search(r"replay|analyse", line):
        places.prepare(here, line)
    shipped = next(places.core.parent.rglob("final_params.npz"))
    for suffix in (".npz", ".json"):
        shutil.copy(shipped.with_suffix(suffix), here / f"params{suffix}")
    before = sorted(here.rglob("*"))
    done = run(places, here, "hackmatrix", *line.split())
    assert (done.returncode, done.stdout) == (2, "")
    said = rf"hackmatrix .*: needs [\w-]+: pip install 'hackmatrix\[{extra}\]'( \(.*\))?\n"
    assert re.fullmatch(said, done.stderr), done.stderr
    assert sorted(here.rglob("*")) == before


def test_what_needs_a_terminal_and_an_extra_says_so(places: Places, here: Path) -> None:
    line = "script -qec 'hackmatrix play --terminal' /dev/null"
    done = run(places, here, "bash", "-c", line)
    assert done.stdout == "hackmatrix play: error: needs rich: pip install 'hackmatrix[terminal]'\n"
