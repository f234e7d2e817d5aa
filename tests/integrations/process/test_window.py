"""The window of the process: the protocol as without it, persons' moves on stdout, every end."""

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from hackmatrix.core.errors import UserError
from hackmatrix.game.engine import Game
from hackmatrix.integrations.process.client import GameProcess
from hackmatrix.integrations.process.session import ProcessSession
from hackmatrix.integrations.process.window import Tab, Window

BINARY = Path(sys.executable).with_name("hackmatrix-game")
SAID = re.compile(r"hackmatrix-game: the game is shown at http://(127\.0\.0\.1:\d+)/\n")
Json = dict[str, Any]
pytestmark = [pytest.mark.timeout(180), pytest.mark.thorough]


def request(action: str, **fields: Any) -> bytes:
    return json.dumps({"action": action, **fields}).encode() + b"\n"


def session_lines() -> list[bytes]:
    """Every request, a whole game by random actions, an invalid action, and what is no request."""
    game, dice = Game.new(5), random.Random(5)
    lines = [b"\n", b"{\n", b"\xff\n", request("step", actionIndex=0), request("getValidActions")]
    lines += [request("getActionSpace"), request("fly"), request("reset", seed=5)]
    while valid := game.valid_actions():
        lines.append(request("step", actionIndex=dice.choice(valid)))
        game.step(json.loads(lines[-1])["actionIndex"])
        lines += [request("getValidActions"), request("getInternalState")]
    lines += [request("step", actionIndex=1), request("step", actionIndex=28)]
    player = {"row": 0, "col": 4, "dataSiphons": 1}
    enemy = {"type": "daemon", "row": 3, "col": 4, "hp": 900}
    lines.append(request("setState", state={"player": player, "enemies": [enemy]}))
    lines.append(request("setState", state={"player": {"row": 9, "col": 0}}))
    return [*lines, request("step", actionIndex=0), request("step", actionIndex=27), b"no end"]


def test_the_protocol_is_that_without_a_window() -> None:
    serve = [sys.executable, "-m", "hackmatrix", "serve", "--exact-breakdown"]
    lines = session_lines()
    told = [
        subprocess.run(command, input=b"".join(lines), capture_output=True, timeout=120)
        for command in ([str(BINARY), "--headless-cli"], [*serve, "--visual-cli", "--no-open"])
    ]
    assert told[0].stdout.count(b"\n") == len(lines)
    assert told[1].stdout == told[0].stdout
    assert [result.returncode for result in told] == [0, 0]
    assert told[0].stderr == b""
    assert re.fullmatch(rb"hackmatrix serve: the game is shown at http://\S+/\n", told[1].stderr)


# --- both at once --------------------------------------------------------------------------------


def window() -> tuple[Window, list[str]]:
    lines: list[str] = []
    return Window(ProcessSession(), lines.append), lines


def test_the_lines_of_client_and_persons_are_one_game_in_order() -> None:
    """What came out, replayed in its order in a session without a window, comes out again."""
    shared, lines = window()
    dice = random.Random(1)
    asked = [request("reset", seed=3)]
    for turn in range(200):
        # Moves to and fro, so that the game goes on; now and then another begins.
        asked.append(request("step", actionIndex=dice.randrange(4)) if turn % 3 else asked[0])
    tabs, moved, done = [Tab(shared), Tab(shared)], threading.Event(), threading.Event()

    def play(tab: Tab) -> None:
        while not done.is_set():
            tab.handle({"do": "hello"})
            for action in range(4):
                tab.handle({"do": "act", "action": action})
            if any(line.startswith('{"manual"') for line in lines):
                moved.set()

    def requests() -> Iterator[bytes]:
        """Those of the client, who waits once after a new game has begun."""
        yield from asked[:101]
        assert moved.wait(60)
        yield from asked[101:]

    threads = [threading.Thread(target=play, args=(tab,)) for tab in tabs]
    for thread in threads:
        thread.start()
    shared.serve(requests())
    done.set()
    for thread in threads:
        thread.join()
    again, left = ProcessSession(), iter(asked)
    for line in lines:
        manual = json.loads(line).get("manual")
        told = again.answer(json.dumps(manual).encode() if manual else next(left))
        assert line == (
            f'{{"manual":{json.dumps(manual, separators=(",", ":"))},{told[1:]}' if manual else told
        )
    assert next(left, None) is None
    assert len(lines) > len(asked)  # persons moved, too


def test_a_page_follows_step_by_step_and_from_far_behind_at_once() -> None:
    shared, _ = window()
    tab = Tab(shared)
    told: list[None] = []
    tab.notify = lambda: told.append(None)
    calm = {"player": {"row": 0, "col": 4}, "scheduledTasksDisabled": True}
    steps = [request("step", actionIndex=action) for action in [0, 1] * 17]
    shared.serve([request("setState", state=calm), *steps[:3]])
    assert len(told) == 4
    first = tab.handle({"do": "follow"})
    assert (first["at"], len(first["nodes"]), first["behind"]) == (0, 1, 3)
    ats = [tab.handle({"do": "follow"}) for _ in range(3)]
    assert [(a["at"], [n[0] for n in a["added"]], a["behind"]) for a in ats] == [
        (1, [1], 2),
        (2, [2], 1),
        (3, [3], 0),
    ]
    assert ats[-1]["last"]["by"] == "client"
    assert tab.handle({"do": "follow"}) == {"behind": 0}
    # Who looks back stays there until the last known step is shown again.
    tab.handle({"do": "go", "node": 1})
    shared.serve(steps[3:4])
    told.clear()
    assert tab.handle({"do": "follow"}) == {"behind": 0}
    assert "gone on" in tab.handle({"do": "act", "action": 0})["error"]
    assert tab.handle({"do": "go", "node": 3})["at"] == 3
    assert told == [None]
    assert tab.handle({"do": "follow"})["at"] == 4
    shared.serve(steps[4:])
    after = tab.handle({"do": "follow"})
    assert (after["at"], len(after["added"]), after["behind"]) == (34, 30, 0)


BAD = [
    (None, "a message is an object"),
    ({"do": "load", "replay": {}}, "do: expected one of hello, new, act, go, follow"),
    ({"do": "act", "action": 28}, "action: expected 0..27"),
    ({"do": "act", "action": 9}, "not"),
    ({"do": "go", "node": 2}, "node: expected 0..1"),
    ({"do": "new", "seed": "7.1"}, "no episodes"),
    ({"do": "new", "seed": str(2**31)}, "seed: expected 0.."),
]


@pytest.mark.parametrize(("message", "why"), BAD)
def test_what_a_page_may_not_ask_changes_and_writes_nothing(message: Any, why: str) -> None:
    shared, lines = window()
    tab = Tab(shared)
    assert "no game yet" in tab.handle({"do": "act", "action": 0})["error"]
    with pytest.raises(UserError, match="no game yet"):
        shared.play(tab, action="step", actionIndex=0)
    shared.serve([request("reset", seed=7), request("step", actionIndex=1)])
    tab.handle({"do": "hello"})
    assert why in tab.handle(message)["error"]
    assert len(lines) == 2
    assert (len(shared.tree.nodes), tab.at) == (2, 1)


# --- a real process ------------------------------------------------------------------------------


@contextmanager
def started(*flags: str, **environment: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The process and the host of its page."""
    pipe = subprocess.PIPE
    command = [str(BINARY), "--visual-cli", *flags]
    env = os.environ | environment
    # A suite started in the background ignores SIGINT, and the process would inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=env)
    signal.signal(signal.SIGINT, before)
    assert process.stderr is not None
    said = SAID.fullmatch(process.stderr.readline().decode())
    assert said is not None
    try:
        yield process, said[1]
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(BrokenPipeError):
                stream.close()  # type: ignore[union-attr]


def tab_of(host: str) -> ClientConnection:
    return connect(f"ws://{host}/session", origin=f"http://{host}")  # type: ignore[arg-type]


def said_to(tab: ClientConnection, **message: Any) -> Json:
    tab.send(json.dumps(message | {"id": 1}))
    while not (answer := json.loads(tab.recv(60))):
        pass  # a change by others
    return dict(answer)


def ask(process: subprocess.Popen[bytes], line: bytes) -> Json:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line)
    process.stdin.flush()
    return dict(json.loads(process.stdout.readline()))


@pytest.mark.parametrize("how", [None, signal.SIGINT, signal.SIGTERM])
def test_it_ends_with_its_input_or_a_signal_while_a_page_is_open(how: int | None) -> None:
    with started("--no-open") as (process, host), tab_of(host) as tab:
        said_to(tab, do="hello")
        ask(process, request("reset", seed=7))
        assert json.loads(tab.recv(60)) == {}
        assert said_to(tab, do="follow")["game"] == "7"
        if how is None:
            assert process.stdin is not None
            process.stdin.close()
        else:
            process.send_signal(how)
        codes = {None: 0, signal.SIGINT: 130, signal.SIGTERM: -signal.SIGTERM}
        assert process.wait(60) == codes[how]
        with pytest.raises(ConnectionClosed):
            tab.recv(60)
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read() + process.stderr.read() == b""


def test_it_ends_while_a_move_waits_for_a_client_that_reads_nothing() -> None:
    with started("--no-open") as (process, host), tab_of(host) as tab:
        tab.send(json.dumps({"do": "new", "seed": "7", "id": 1}))
        for _ in range(60):  # more than a pipe holds
            tab.send(json.dumps({"do": "new", "seed": "7", "id": 1}))
        answered = 0
        with contextlib.suppress(TimeoutError):
            while tab.recv(5):
                answered += 1
        assert 0 < answered < 60
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 0


def test_without_a_browser_it_says_so_and_serves() -> None:
    nothing = dict.fromkeys(("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "TERM"), "")
    with started(PATH="/nonexistent", **nothing) as (process, host):
        assert process.stderr is not None
        warning = f"found no browser: open http://{host}/ to see the game\n"
        assert process.stderr.readline().decode() == f"hackmatrix-game: warning: {warning}"
        assert ask(process, request("getActionSpace")) == {"actionSpaceSize": 28}


def test_a_browser_neither_reads_nor_writes_what_client_and_game_say(tmp_path: Path) -> None:
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    script = f"echo noise; echo noise >&2; cat > {seen}.new; echo $1 >> {seen}.new"
    browser.write_text(f"#!/bin/sh\n{script}; mv {seen}.new {seen}\n")
    browser.chmod(0o755)
    with started(BROWSER=f"{browser} %s") as (process, host):
        while not seen.exists():
            assert ask(process, request("getActionSpace")) == {"actionSpaceSize": 28}
        assert seen.read_text() == f"http://{host}/\n"


def test_our_client_takes_no_move_of_a_person_for_an_answer() -> None:
    with started("--no-open") as (process, host), tab_of(host) as tab:
        client = GameProcess(BINARY)
        client._process, client._has_answered = process, True
        client.ask("reset", seed=7)
        said_to(tab, do="hello")
        made = said_to(tab, do="act", action=1)
        assert made["added"][0][3] == "you"
        assert client.ask("getInternalState")["turnCount"] == 1
