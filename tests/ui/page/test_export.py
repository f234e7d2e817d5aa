"""The page as files: the same game and the same agent in a browser without a server of ours."""

import gzip
import json
import os
import random
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import opened, settled
from hosting import hosted
from page_views import OVERLAPS, PHONE, TOO_SMALL, violations
from paths import ROOT

from hackmatrix.agents import shipped
from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.position_policies import load
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.cli.main import main
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.observation import observe
from hackmatrix.game.engine.replay import GameId
from hackmatrix.game.rules.actions import SIPHON
from hackmatrix.ui.page.export import _PYODIDE, _agent, export
from hackmatrix.ui.page.in_browser import PAGES, make_policy
from hackmatrix.ui.session.session import Session

SECONDS = 240  # for Python to start, also where other tests take the processor
MOVES = ("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight")
PYODIDE = Path(os.environ.get("HACKMATRIX_PYODIDE", ROOT / "node_modules" / "pyodide"))


def watching(agent: str) -> Session:
    """The session of `hackmatrix watch AGENT`."""
    return Session(PAGES["watch"], cast(resolve(agent)))


def agents_moves(session: Session, steps: int) -> list[int]:
    session.handle({"do": "agent", "steps": steps})
    return list(session.tree.line(session.at))


@pytest.fixture(scope="module")
def site(no_pyodide: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exported page without Pyodide itself."""
    site = tmp_path_factory.mktemp("export") / "site"
    assert main(["page", "--export", str(site), "--pyodide", str(no_pyodide)]) == 0
    return site


def test_the_agent_in_plain_python_is_the_agent() -> None:
    policy, plain = load(shipped.PARAMS), make_policy(*_agent(resolve("shipped")))
    rng, game = random.Random(0), Game.new(5)
    for _ in range(12):
        logits, value = policy(observe(game.state), [True] * 28)
        found, worth = plain(observe(game.state), [True] * 28)
        assert found == pytest.approx(list(logits), rel=1e-4, abs=1e-4)
        assert worth == pytest.approx(value, rel=1e-4, abs=1e-4)
        game.step(rng.choice(game.valid_actions()))


@pytest.mark.parametrize("agent", [pytest.param("shipped", marks=pytest.mark.thorough), "scripted"])
def test_the_archive_is_all_that_a_session_needs(
    agent: str, no_pyodide: Path, tmp_path: Path
) -> None:
    command = ["page", "--export", str(tmp_path / "it"), "--agent", agent]
    assert main([*command, "--pyodide", str(no_pyodide)]) == 0
    zipfile.ZipFile(tmp_path / "it" / "python.zip").extractall(tmp_path)
    code = """
import json, sys
sys.path.insert(0, "")
from hackmatrix.ui.page.in_browser import begin
answer = begin("watch")
print(json.dumps(json.loads(answer('{"do": "agent", "steps": 10}'))["added"]))
answer = begin("play")
print(json.loads(answer('{"do": "act", "action": 99}'))["error"])
first = json.loads(answer('{"do": "puzzle", "rating": 1000}'))
valid = next(i for i, action in enumerate(first["actions"]) if "why" not in action)
node = json.loads(answer(json.dumps({"do": "act", "action": valid})))["at"]
for message in ({"do": "review", "nodes": [node]}, {"do": "finish", "games": 1}, {"do": "ghost"}):
    print(sorted(json.loads(answer(json.dumps(message)))))
"""
    # Isolated: neither this checkout nor installed packages are found.
    command = [sys.executable, "-I", "-S", "-c", code]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    added, error, *reviewed = result.stdout.splitlines()
    reviews = agent == "shipped"
    kinds = (["moves"], ["finished"], ["hits", "places", "score", "won"])
    assert reviewed == [str(kind if reviews else ["error"]) for kind in kinds]
    assert [node[2] for node in json.loads(added)] == agents_moves(watching(agent), 10)
    assert error == "action: expected 0..27, got 99"


def test_the_first_position_is_a_file(site: Path) -> None:
    for page, name in (("play", "index.html"), ("watch", "watch.html")):
        first = json.loads((site / f"{page}.json").read_text())
        assert first["game"] == str(PAGES[page])
        assert first["about"]["agents"] == ["shipped", "scripted", "exit", "random"]
        assert first["about"]["playing"] == (page == "play")
        assert first["controls"] == (None if page == "play" else "shipped")
        html = (site / name).read_text()
        assert f'data-page="{page}"' in html
        assert "default-src 'none'" in html


def test_every_file_lies_there_compressed_too(site: Path) -> None:
    packed = set(site.rglob("*.gz"))
    plain = {path for path in site.rglob("*") if path.is_file()} - packed
    texts = {path for path in plain if path.suffix != ".zip"}
    assert texts == {path.with_suffix("") for path in packed}
    for path in packed:
        assert gzip.decompress(path.read_bytes()) == path.with_suffix("").read_bytes()


@pytest.mark.thorough
def test_it_is_for_everybody_while_python_begins(browser: Any, site: Path) -> None:
    with hosted(site) as address:
        context = browser.new_context(**PHONE, color_scheme="light")
        page = context.new_page()
        page.goto(f"{address}watch.html")
        page.wait_for_selector("body:not(.loading)")
        page.wait_for_selector("#waking")
        assert violations(page) == []
        assert page.evaluate(OVERLAPS) == []
        assert page.evaluate(TOO_SMALL) == []
        context.close()


@pytest.mark.thorough
def test_it_opens_without_a_network_once_it_was_opened_and_can_be_installed(
    browser: Any, site: Path
) -> None:
    """Pyodide is empty here: the board needs none."""
    with hosted(site) as address:
        context = browser.new_context()
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector("body[data-ready]")
        page.evaluate("async () => { await navigator.serviceWorker.ready; }")
        manifest = json.loads((site / "manifest.webmanifest").read_text())
        for file in (manifest["start_url"], *(icon["src"] for icon in manifest["icons"])):
            assert (site / file).exists()
        context.set_offline(True)
        page.reload()
        page.wait_for_selector("body[data-ready]")
        assert page.locator("#grid button").count() == 36
        assert page.locator("#picture .piece").count() >= 1
        page.goto(f"{address}watch.html")
        page.wait_for_selector("body[data-ready]")
        context.close()


def exporting(site: Path, pyodide: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "hackmatrix", "page", "--export", str(site)]
    return subprocess.Popen([*command, "--pyodide", str(pyodide)])


@pytest.mark.thorough
def test_a_kill_leaves_no_half_site_and_the_next_run_a_whole_one(
    tmp_path: Path,
) -> None:
    folder, pyodide = tmp_path / "sites", tmp_path / "pyodide"
    for each in (folder, pyodide):
        each.mkdir()
    for file in _PYODIDE:
        (pyodide / file).write_bytes(b"x" * 5_000_000)  # for a while
    process = exporting(folder / "site", pyodide)
    deadline = time.monotonic() + SECONDS
    while not any(folder.rglob("pyodide")) and time.monotonic() < deadline:
        time.sleep(0.001)
    process.kill()
    process.wait()
    assert any(folder.iterdir())  # it was under way
    assert not (folder / "site").exists()
    assert exporting(folder / "site", pyodide).wait() == 0
    assert [path.name for path in folder.iterdir()] == ["site"]
    assert {"index.html", "index.html.gz", "python.zip", "pyodide"} <= {
        path.name for path in (folder / "site").iterdir()
    }


def test_an_empty_folder_is_filled_also_if_it_is_the_current_one(
    tmp_path: Path, no_pyodide: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for site in (tmp_path / "empty", tmp_path / "here"):
        site.mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for named in (tmp_path / "empty", Path()):
        size, packed = export(named, resolve("scripted"), no_pyodide)
        files = [path for path in named.rglob("*") if path.is_file() and path.suffix != ".gz"]
        assert size == sum(path.stat().st_size for path in files)
        sent = sum(len(gzip.compress(path.read_bytes())) for path in files)
        assert packed == pytest.approx(sent, rel=0.01)
        assert named / "index.html" in files
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "here"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give --export FOLDER"),
        (["--export", "taken"], "holds something already"),
        (["--export", "new", "--pyodide", "nowhere"], "npm install --no-save pyodide"),
        (["--export", "new", "--agent", "nowhere.npz"], "no such file"),
    ],
)
def test_what_can_not_be_exported_is_one_line_and_writes_nothing(
    arguments: list[str],
    words: str,
    no_pyodide: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "index.html").write_text("mine")
    assert main(["page", "--pyodide", str(no_pyodide), *arguments]) == 2
    message = capsys.readouterr().err
    assert words in message
    assert message.count("\n") == 1
    assert [path.name for path in tmp_path.rglob("*")] == ["taken", "index.html"]
    assert (tmp_path / "taken" / "index.html").read_text() == "mine"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exported page with Pyodide."""
    if not PYODIDE.is_dir():
        pytest.skip("needs Pyodide: npm install --no-save pyodide")
    site = tmp_path_factory.mktemp("host") / "a" / "site"
    assert main(["page", "--export", str(site), "--pyodide", str(PYODIDE)]) == 0
    return site


@pytest.fixture(scope="module")
def address(whole: Path) -> Iterator[str]:
    """The page at a web server that knows nothing of it."""
    with hosted(whole) as it:
        yield it


def test_what_a_browser_loads_is_below_8_megabytes(whole: Path) -> None:
    files = [path for path in whole.rglob("*") if path.is_file() and path.suffix != ".gz"]
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) < 8e6


def test_the_agent_plays_as_behind_the_server_also_from_a_link(browser: Any, address: str) -> None:
    theirs = agents_moves(watching("shipped"), 50)
    letter = "abcdefghijklmnopqrstuvwxyzAB"[theirs[0]]
    with opened(browser, f"{address}watch.html#seed=e0.0&line={letter}") as page:
        page.set_default_timeout(1000 * SECONDS)
        page.select_option("#speed", "0")
        settled(page, 1, SECONDS)
        assert page.locator("#bars li").count() >= 1
        page.keyboard.press("End")
        page.wait_for_function("() => hackmatrix.game.nodes.length > 50")
        ours = page.evaluate("hackmatrix.game.nodes.slice(1, 51).map((node) => node.action)")
        assert ours == theirs


def test_the_game_its_coach_and_its_review_need_no_server(browser: Any, address: str) -> None:
    rng = random.Random(2)
    with opened(browser, address) as page:
        page.set_default_timeout(1000 * SECONDS)
        page.select_option("#speed", "0")
        assert page.evaluate("() => hackmatrix.game.id") != str(PAGES["play"])
        page.check("#coach")
        game, step = Game.new(*GameId.read(page.evaluate("() => hackmatrix.game.id"))), 0
        while step < 8 and (valid := [a for a in game.valid_actions() if a <= SIPHON]):
            action, step = rng.choice(valid), step + 1
            page.keyboard.press("s" if action == SIPHON else MOVES[action])
            position = settled(page, step, SECONDS)
            outcome = game.step(action)
            assert position["last"]["reward"] == outcome.reward
            assert position["seen"]["player"]["credits"] == game.state.player.credits
            if step == 1:
                page.wait_for_selector("#light.good, #light.fair, #light.bad")
        assert page.locator("#waking").count() == 0
        page.keyboard.press("!")
        page.wait_for_selector("#report-progress", state="hidden")
        page.wait_for_selector("#report:visible")
        assert 0 <= int(page.inner_text("#accuracy").split()[1]) <= 100
        assert "wins" in page.inner_text("#agent-numbers")
        page.evaluate("() => document.getElementById('retry').click()")
        page.wait_for_function("() => hackmatrix.position.controls === null && !hackmatrix.busy")
        page.reload()  # the game goes on
        page.wait_for_selector("body[data-ready]")
        settled(page, step, SECONDS)
        before = page.evaluate("() => hackmatrix.game.id")
        page.click("#next-game")
        page.wait_for_function("(before) => hackmatrix.game.id !== before", arg=before)
