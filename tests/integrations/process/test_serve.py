"""The process itself: its answers over a real pipe, how it is called and how it ends."""

import io
import json
import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from bridge_client import Client
from paths import DOCS

from hackmatrix.cli import main as cli
from hackmatrix.cli.serve import FLAGS
from hackmatrix.game.engine import Game
from hackmatrix.game.foresight.features import features
from hackmatrix.game.rules.actions import ACTION_NAMES
from hackmatrix.integrations.gymnasium.backends import ProcessBackend

Json = dict[str, Any]
BINARY = Path(sys.executable).with_name("hackmatrix-game")
pytestmark = pytest.mark.timeout(120)  # a process that forgets to flush hangs
DOC = DOCS / "serve.md"


class Process:
    """The game over a pipe, as a client starts it."""

    def __init__(self, *flags: str) -> None:
        pipe = subprocess.PIPE
        command = [str(BINARY), "--headless-cli", *flags]
        # With PYTHONUNBUFFERED in the environment a forgotten flush would not show.
        env = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
        self.popen = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=env)

    def ask(self, action: str, **fields: Any) -> Json:
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        self.popen.stdin.write(json.dumps({"action": action, **fields}).encode() + b"\n")
        self.popen.stdin.flush()
        answer: Json = json.loads(self.popen.stdout.readline())
        return answer

    def end(self) -> tuple[int, bytes, bytes]:
        out, err = self.popen.communicate(timeout=60)
        return self.popen.returncode, out, err


# --- games ---------------------------------------------------------------------------------------

KINDS = ["virus", "daemon", "glitch", "cryptog"]
RICH = {
    "player": {"row": 0, "col": 0, "credits": 500, "energy": 500, "dataSiphons": 20},
    "ownedPrograms": list(range(5, 28)),
    "resources": [{"row": 0, "col": 1, "dataSiphon": True}],
    "blocks": [{"row": 2, "col": 2, "type": "program", "programType": "wait"}],
    "transmissions": [{"row": 3, "col": 3, "turnsRemaining": 9, "enemyType": "virus"}],
    "enemies": [{"type": kind, "row": 5, "col": i, "hp": 2} for i, kind in enumerate(KINDS)],
}


classic = partial(features, layout="classic")


class AnswersOf(ProcessBackend):
    """What an answer shows, as a record."""

    def __init__(self, answer: Json) -> None:
        self._observation = answer["observation"]


def test_a_rich_game_is_that_of_the_engine() -> None:
    """All programs on the way: the engine goes on from the state the session was set to."""
    client, rng, used = Client(), random.Random(2), Counter[int]()
    for seed in range(20):
        client.ask("reset", seed=seed)
        client.ask("setState", state=RICH)
        game = Game.from_dict(client.state())
        for _ in range(20):
            if game.state.over:
                break
            action = min(game.valid_actions(), key=lambda a: (used[a], rng.random()))
            outcome = game.step(action)
            used[action] += 1
            answer = client.ask("step", actionIndex=action)
            assert classic(AnswersOf(answer).record()) == classic(game.observation())
            assert (answer["done"], answer["reward"]) == (outcome.done, round(outcome.reward, 3))
            assert answer["observation"]["turn"] == game.state.turn
            assert answer["observation"]["score"] == game.state.player.score
            assert answer["observation"]["ownedPrograms"] == [5 + n for n in game.state.owned]
    assert set(used) == set(range(len(ACTION_NAMES)))


# --- a real process ------------------------------------------------------------------------------


def test_over_a_pipe_too() -> None:
    sent = (
        b'\n\xff\n{"action":"reset"}\r\n[]\n{"action":"getActionSpace"}'  # no line end at the end
    )
    result = subprocess.run([BINARY], input=sent, capture_output=True, timeout=60)
    answers = [list(json.loads(line)) for line in result.stdout.splitlines()]
    assert answers == [["error"], ["error"], ["observation"], ["error"], ["actionSpaceSize"]]
    assert (result.returncode, result.stderr) == (0, b"")


def test_debug_is_a_short_line_a_step_on_stderr() -> None:
    """Each answer has 4,000 characters, which in a training of a million steps fill a disk."""
    process, rng = Process("--debug-scenario", "--speed", "9", "--debug"), random.Random(0)
    process.ask("reset", seed=7)
    steps, valid = 0, [0]
    while valid := process.ask("getValidActions")["validActions"]:
        process.ask("step", actionIndex=rng.choice(valid))
        steps += 1
    process.popen.stdin.write(b"x" * 100_000 + b"\n")  # type: ignore[union-attr]
    code, _, said = process.end()
    unknown, first, *lines, last, refused = said.splitlines()
    assert code == 0
    assert unknown == b"hackmatrix-game: warning: not known and ignored: --debug-scenario --speed 9"
    assert first == b"reset: stream 7 episode 0"
    assert last.startswith(b"over: ")
    assert len(lines) == steps > 5
    assert all(re.fullmatch(rb"stage \d turn \d+: \S+, -?[\d.]+", line) for line in lines)
    assert refused.startswith(b"refused: b'xxx")
    assert len(refused) < 300


def test_a_client_that_goes_away_is_no_error() -> None:
    process = Process()
    assert process.popen.stdin is not None
    assert process.popen.stdout is not None
    process.popen.stdout.close()
    process.popen.stdin.write(b'{"action":"reset"}\n')
    process.popen.stdin.close()
    assert process.popen.wait(60) == 0
    with process.popen.stderr or io.BytesIO() as stderr:
        assert stderr.read() == b""


def test_interrupt_is_quiet() -> None:
    # A suite started in the background ignores SIGINT, and the process would inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = Process()
    signal.signal(signal.SIGINT, before)
    process.ask("reset")
    os.kill(process.popen.pid, signal.SIGINT)
    process.popen.wait(timeout=60)  # `end` closes its stdin, and an end of input is an end as well
    assert process.end() == (130, b"", b"")


@pytest.mark.thorough
def test_the_link_of_the_documents_serves_visual_clients(tmp_path: Path) -> None:
    (lines,) = re.findall(r"```bash\n(PLACE=(\S+).*?)```", DOC.read_text(), re.S)
    path = {"PATH": f"{BINARY.parent}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-ec", lines[0]], cwd=tmp_path, env={**os.environ, **path}, check=True)
    result = subprocess.run(
        [tmp_path / lines[1], "--visual-cli"],
        cwd="/",
        env={"PATH": "/usr/bin:/bin"},
        input=b'{"action":"getActionSpace"}\n',
        capture_output=True,
        timeout=60,
    )
    assert (result.returncode, result.stdout) == (0, b'{"actionSpaceSize":28}\n')


# --- how it is called ----------------------------------------------------------------------------


def said_by(capsysbinary: Any, monkeypatch: Any, requests: bytes, *flags: str) -> list[Json]:
    """The answers of the command in this process."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(requests)))
    assert cli.main(["serve", *flags]) == 0
    out, err = capsysbinary.readouterr()
    assert err == b""
    return [json.loads(line) for line in out.splitlines()]


def test_programs_of_new_stages_can_be_limited(capsysbinary: Any, monkeypatch: Any) -> None:
    requests = b"".join(b'{"action":"reset","seed":%d}\n' % seed for seed in range(30))
    flags = ["--dev-mode", "--programs", "siph_plus, PUSH"]
    answers = said_by(capsysbinary, monkeypatch, requests, *flags)
    cells = [cell for each in answers for row in each["observation"]["cells"] for cell in row]
    blocks = [cell["block"] for cell in cells if "block" in cell]
    assert {block.get("programType", "push") for block in blocks} == {"push", "siph+"}


@pytest.mark.parametrize("names", ["push,pusch", ""])
def test_an_unknown_program_is_an_error(names: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["serve", f"--programs={names}"]) == 2
    wrong = names.rpartition(",")[2]
    assert capsys.readouterr().err == (
        f"hackmatrix serve: error: --programs: expected names such as push,pull, got {wrong!r}\n"
    )


@pytest.mark.parametrize(("flags", "parts"), [([], 15), (["--exact-breakdown"], 14)])
def test_the_breakdown_is_exact_if_asked(
    flags: list[str], parts: int, capsysbinary: Any, monkeypatch: Any
) -> None:
    """The binary always has the parts of the original alone: `test_client.py`."""
    requests = b'{"action":"reset","seed":1}\n{"action":"step","actionIndex":1}\n'
    _, answer = said_by(capsysbinary, monkeypatch, requests, *flags)
    assert len(answer["info"]["reward_breakdown"]) == parts


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_has_an_example(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["serve", flag]) == 0
    said = capsys.readouterr().out
    assert '| hackmatrix serve --headless-cli\n  {"actionSpaceSize":28}' in said
    assert all(name in said for name in FLAGS)


def test_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from hackmatrix.cli.serve import game_binary\n"
        "assert game_binary() == 0\n"
        "sys.exit(str({'jax', 'numpy', 'flax', 'argparse', 'rich', 'yaml'} & set(sys.modules)))\n"
    )
    request = b'{"action":"reset"}\n{"action":"step","actionIndex":0}\n'
    result = subprocess.run([sys.executable, "-c", code], input=request, capture_output=True)
    assert result.stdout.count(b"observation") == 2
    assert result.stderr == b"set()\n"


# --- the documentation ---------------------------------------------------------------------------


def test_the_session_in_the_documentation() -> None:
    (example,) = re.findall(r"```jsonl\n(.*?)```", DOC.read_text(), flags=re.DOTALL)
    lines = example.splitlines()
    client = Client()
    for asked, told in zip(lines[::2], lines[1::2], strict=True):
        assert (asked[:2], told[:2]) == ("> ", "< ")
        got = client.session.answer(asked[2:].encode())
        pattern = re.escape(told[2:]).replace(r"\.\.\.", ".*")
        assert re.fullmatch(pattern, got), f"{asked}\n{told}\n< {got}"


def test_the_documentation_names_every_key() -> None:
    client = Client()
    client.ask("reset", seed=3)
    answer = client.ask("step", actionIndex=1)
    text = DOC.read_text()
    keys = re.findall(r'"(\w+)":', json.dumps(answer))
    assert [key for key in set(keys) if f"`{key}`" not in text and f'"{key}"' not in text] == []
