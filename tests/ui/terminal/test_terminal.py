"""The game in a terminal: what is drawn, and a game played by keys on a pseudo-terminal."""

import contextlib
import json
import os
import pty
import shutil
import subprocess
import sys
import time
from importlib import resources
from pathlib import Path

import pytest
from rich.console import Console

from hackmatrix.agents.roster.judge import Odds
from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.opinion import Opinion
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.cli.main import main
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.actions import valid_actions
from hackmatrix.game.engine.replay import GameId
from hackmatrix.game.rules.actions import FIRST_PROGRAM, NUM_ACTIONS
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.ui.session.descriptions import KEYS, PROGRAM_KEYS
from hackmatrix.ui.session.session import Session
from hackmatrix.ui.terminal import app as tui
from hackmatrix.ui.terminal.keys import message_of
from hackmatrix.ui.terminal.screen_text import board, status_numbers

pytestmark = pytest.mark.thorough

BOARD = Path(__file__).parents[3] / "docs" / "board.txt"


def drawn(*parts: object) -> str:
    console = Console(width=90, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(*parts)
    return capture.get()


def test_everything_on_the_board_has_a_letter_or_a_word() -> None:
    state = Game.from_text(BOARD.read_text()).state
    text = drawn(board(state))
    signs = ["@||.", "V||", "D|..*", "G||", "C||+", "<4>", "CRASH", "^6", "EXIT", "siphon", "$$$"]
    assert [sign for sign in signs if sign not in text] == []
    assert "stage 3/8   turn 14   spawn in 3 +4   score 23" in drawn(status_numbers(state))


def test_what_is_hidden_is_not_drawn() -> None:
    state = Game.new(7).state
    before = drawn(board(state))
    for piece in state.transmissions:
        piece.type = type(piece.type)((piece.type + 1) % 4)
    assert drawn(board(state)) == before


def test_keys_play_and_look_back() -> None:
    session = Session(GameId(7))
    assert message_of(session, "down") == {"do": "act", "action": 1}
    assert message_of(session, "p") == {"do": "act", "action": 5}
    assert message_of(session, ",") is None
    session.handle({"do": "act", "action": 1})
    assert message_of(session, ",") == {"do": "go", "node": 0}
    assert message_of(session, "\n") is None
    watched = Session(GameId(7), cast(resolve("exit")))
    assert message_of(watched, "\n") == {"do": "agent"}
    suggested = message_of(watched, "1")
    assert suggested is not None
    assert suggested["action"] == watched.handle({"do": "hello"})["agent"]["suggests"]


def test_keys_go_to_variations_and_to_moments_of_the_line() -> None:
    session = Session(GameId(7), cast(resolve("random")))
    session.handle({"do": "agent", "steps": 4})
    wins, sure = (0.9, 0.86, 0.5, 0.6, 0.3), (0.9, 0.4, 0.9, 0.9, 0.3)
    session.opinions = {n: Opinion((p, 1 - p), None) for n, p in enumerate(sure)}
    session.odds = {n: Odds(win, 4.0) for n, win in enumerate(wins)}

    def gone(key: str) -> int:
        message = message_of(session, key)
        assert message is not None
        session.handle(message)
        return session.at

    assert message_of(session, "]") is None  # there is but one line
    assert [gone(key) for key in ("home", "/", "/", "/")] == [0, 1, 3, 1]
    session.at = 0
    session.opinions[1] = Opinion((0.4, 0.3, 0.3), 4.9)
    session.opinions[4] = Opinion((0.4, 0.3, 0.3), 1.5)
    assert [gone(key) for key in ("'", "'")] == [1, 4]
    session.handle({"do": "go", "node": 2})
    taken = session.tree.nodes[3].action
    valid = valid_actions(session.tree.state(2))
    session.handle({"do": "act", "action": next(a for a in valid if a != taken)})
    assert [gone(key) for key in ("[", "]", ",", ".")] == [3, 5, 2, 3]


def test_every_program_has_a_key_and_so_would_the_next_ones() -> None:
    session = Session(GameId(7))
    others = "snt,.[]/'? 123456789"
    assert len({*KEYS, *others}) == len(KEYS) + len(others)
    asked = [message_of(session, key) for key in KEYS]
    programs = [{"do": "act", "action": action} for action in range(FIRST_PROGRAM, NUM_ACTIONS)]
    assert [*PROGRAM_KEYS] == [program.name for program in PROGRAMS]
    assert asked == [*programs, *[None] * (len(KEYS) - len(PROGRAMS))]
    assert len(KEYS) > len(PROGRAMS)
    assert {*KEYS} < {*tui._HIDDEN.values()}


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node on PATH")
def test_keys_of_the_page_run_programs() -> None:
    """Letters with Shift where WASD moves; other keys as they are."""
    file = resources.files("hackmatrix.ui.page") / "static" / "keys.js"
    code = f"""
        import {{ actionOf, labelOf }} from {json.dumps(str(file))};
        const programs = {json.dumps([{"key": key} for key in KEYS])};
        const pressed = (key, shiftKey, wasd) => actionOf({{ key, shiftKey }}, programs, wasd);
        const each = (press) => programs.map((program, i) => press(program) === i + 5);
        console.log(JSON.stringify([
          each((p) => pressed(p.key, false, false)),
          each(({{ key }}) => pressed(key.toUpperCase(), /[a-z]/.test(key), true)),
          [..."wsadep"].map((key) => pressed(key, false, true)),
          [labelOf(programs[0], "+", true), labelOf(programs[0], "+", false),
           labelOf(programs.at(-1), "+", true)],
        ]));"""
    command = ["node", "--input-type=module", "-e", code]
    plain, wasd, moves, labels = json.loads(subprocess.check_output(command, text=True))
    assert all(plain + wasd)
    assert moves == [0, 1, 2, 3, 4, None]
    assert labels == ["+P", "P", KEYS[-1]]


START = (
    "from hackmatrix.cli.main import main; "
    "raise SystemExit(main(['play', '--terminal', '--seed', '7']))"
)


class OnATerminal:
    """A process that runs some code, and our end of its terminal."""

    def __init__(self, code: str) -> None:
        self.seen = b""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:  # the child, whose terminal this is
            os.environ.update(COLUMNS="90", LINES="40", TERM="xterm")
            os.execv(sys.executable, [sys.executable, "-c", code])

    def wait_for(self, text: bytes) -> None:
        until = time.monotonic() + 60
        while text not in self.seen:
            assert time.monotonic() < until, self.seen[-2000:]
            self.seen += os.read(self.terminal, 65536)

    def end(self) -> int:
        """Reads all that it writes until its process ends, with this code."""
        with contextlib.suppress(OSError):  # it has closed
            while part := os.read(self.terminal, 65536):
                self.seen += part
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


# Other tests of this process may use JAX; the child runs another program at once.
@pytest.mark.filterwarnings("ignore:os.fork")
def test_a_game_in_a_terminal() -> None:
    game = OnATerminal(START)
    game.wait_for(b"step 0")
    os.write(game.terminal, b"\x1b[B")
    game.wait_for(b"step 1")
    os.write(game.terminal, b"q")
    game.wait_for(b"not owned")
    os.write(game.terminal, b"\x04")
    assert game.end() == 0


@pytest.mark.filterwarnings("ignore:os.fork")
def test_without_textual_it_says_what_to_install() -> None:
    game = OnATerminal("import sys; sys.modules['textual'] = None; " + START)
    assert game.end() == 2
    assert game.seen.decode().splitlines() == [
        "hackmatrix play: error: needs textual: pip install 'hackmatrix[terminal]'"
    ]


def test_without_a_terminal_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", "--terminal", "--seed", "7"]) == 2
    assert capsys.readouterr().err == "hackmatrix play: error: --terminal needs a terminal\n"
