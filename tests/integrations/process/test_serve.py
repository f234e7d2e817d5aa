"""The process itself: whole games over a real pipe, any bytes at all, and how it ends."""

import io
import json
import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bridge_client import Client
from hypothesis import example, given, settings
from hypothesis import strategies as st
from paths import DOCS

from hackmatrix.cli import main as cli
from hackmatrix.cli.serve import FLAGS
from hackmatrix.game.engine import Game
from hackmatrix.game.foresight.features import features
from hackmatrix.game.rules.actions import ACTION_NAMES
from hackmatrix.game.rules.rewards import UNIT
from hackmatrix.integrations.process.session import ProcessSession, serve

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


@pytest.fixture
def process() -> Iterator[Process]:
    process = Process()
    yield process
    assert process.end() == (0, b"", b"")


# --- whole games ---------------------------------------------------------------------------------

TYPES = ["virus", "daemon", "glitch", "cryptog"]
BLOCKS = ["data", "program", "question"]


def one_hot(index: int, size: int) -> list[float]:
    return [float(i == index) for i in range(size)]


def cell_features(cell: Json) -> list[float]:
    """The 42 channels of section 12 of the rules, from an answer."""
    enemy, block = cell.get("enemy", {}), cell.get("block", {})
    turns = cell.get("transmission", {}).get("turnsUntilSpawn", 0)
    return [
        *one_hot(TYPES.index(enemy["type"]) if enemy else -1, 4),
        enemy.get("hp", 0) / 3,
        float(enemy.get("isStunned", False)),
        float(enemy.get("spawnedFromSiphon", False)),
        *one_hot(BLOCKS.index(block["blockType"]) if block else -1, 3),
        block.get("points", 0) / 9,
        float(block.get("isSiphoned", False)),
        *one_hot(block.get("programActionIndex", 0) - 5, 23),
        min(block.get("transmissionSpawnCount", 0) / 9, 1),
        min(turns / 4, 1),
        cell.get("credits", 0) / 3,
        cell.get("energy", 0) / 3,
        float(cell["isDataSiphon"]),
        float(cell["isExit"]),
        float(cell["siphonCenter"]),
    ]


def classic(answer: Json) -> list[float]:
    """The classic layout of section 12 of the rules, from an answer."""
    cells = [cell for row in answer["cells"] for cell in row]
    assert [(cell["row"], cell["col"]) for cell in cells] == [divmod(i, 6) for i in range(36)]
    return [
        answer["playerRow"] / 5,
        answer["playerCol"] / 5,
        answer["playerHP"] / 3,
        min(answer["credits"] / 50, 1),
        min(answer["energy"] / 50, 1),
        (answer["stage"] - 1) / 7,
        answer["dataSiphons"] / 10,
        (answer["baseAttack"] - 1) / 2,
        float(answer["showActivated"]),
        float(answer["scheduledTasksDisabled"]),
        *(float(action in answer["ownedPrograms"]) for action in range(5, 28)),
        *(feature for cell in cells for feature in cell_features(cell)),
    ]


def agree(answer: Json, game: Game) -> None:
    state = game.state
    assert classic(answer["observation"]) == features(game.observation(), "classic")
    assert answer["observation"]["turn"] == state.turn
    assert answer["observation"]["score"] == state.player.score
    assert answer["observation"]["ownedPrograms"] == [5 + number for number in state.owned]


@pytest.mark.thorough
def test_whole_games_are_those_of_the_engine(process: Process) -> None:
    rng = random.Random(1)
    steps = stages = 0
    for seed in range(12):
        game = Game.new(seed)
        agree(process.ask("reset", seed=seed), game)
        while game.state.over is None:
            valid = game.valid_actions()
            assert process.ask("getValidActions") == {"validActions": valid}
            action = rng.choice(valid) if valid else 0
            outcome = game.step(action)
            answer = process.ask("step", actionIndex=action)
            agree(answer, game)
            assert answer["reward"] == pytest.approx(outcome.reward, abs=1e-9)
            told = sum(answer["info"]["reward_breakdown"].values())
            assert told == pytest.approx(outcome.reward - outcome.parts["step_penalty"] * UNIT)
            assert answer["done"] == outcome.done
            assert len(process.ask("getInternalState")["enemies"]) == len(game.state.enemies)
            steps += 1
            stages += outcome.stage_completed
        assert process.ask("getValidActions") == {"validActions": []}
    assert steps > 200
    assert stages > 0


RICH = {
    "player": {"row": 0, "col": 0, "credits": 500, "energy": 500, "dataSiphons": 20},
    "ownedPrograms": list(range(5, 28)),
    "resources": [{"row": 0, "col": 1, "dataSiphon": True}],
    "blocks": [{"row": 2, "col": 2, "type": "program", "programType": "wait"}],
    "transmissions": [{"row": 3, "col": 3, "turnsRemaining": 9, "enemyType": "virus"}],
    "enemies": [{"type": kind, "row": 5, "col": i, "hp": 2} for i, kind in enumerate(TYPES)],
}


def test_a_rich_game_is_that_of_the_engine(process: Process) -> None:
    """All programs on the way: the engine goes on from the state the process was set to."""
    client, rng, used = Client(), random.Random(2), Counter[int]()
    for seed in range(20):
        process.ask("reset", seed=seed)
        client.ask("reset", seed=seed)
        process.ask("setState", state=RICH)
        client.ask("setState", state=RICH)
        game = Game.from_dict(client.state())
        for _ in range(20):
            if game.state.over:
                break
            action = min(game.valid_actions(), key=lambda a: (used[a], rng.random()))
            game.step(action)
            used[action] += 1
            agree(process.ask("step", actionIndex=action), game)
    assert set(used) == set(range(len(ACTION_NAMES)))


# --- any bytes -----------------------------------------------------------------------------------

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
anything = st.recursive(
    scalars,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(), values, max_size=3),
    max_leaves=5,
)
number = st.integers(-1, 28)
place = {"row": st.integers(-1, 6), "col": st.integers(0, 5)}


def items(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    item = st.fixed_dictionaries({name: place[name] for name in place}, optional=fields)
    return st.lists(item | anything, max_size=4)


states = st.fixed_dictionaries(
    {"player": st.fixed_dictionaries(place, optional={"hp": number, "energy": number})},
    optional={
        "enemies": items(type=st.sampled_from(TYPES), hp=st.integers(0, 3)),
        "transmissions": items(enemyType=st.sampled_from(TYPES), turnsRemaining=number),
        "blocks": items(type=st.sampled_from(BLOCKS), points=number, programActionIndex=number),
        "resources": items(credits=number, dataSiphon=st.booleans()),
        "ownedPrograms": st.lists(number),
        "stage": number,
        "turn": scalars,
    },
)
requests = st.fixed_dictionaries(
    {"action": st.sampled_from(["reset", "step", "setState", "getValidActions"]) | st.text()},
    optional={
        "actionIndex": number | anything,
        "seed": number | anything,
        "state": states | anything,
    },
).map(lambda request: json.dumps(request).encode())
garbage = st.binary(max_size=30).map(lambda line: line.replace(b"\n", b""))
lines = st.lists(requests | garbage | anything.map(lambda value: json.dumps(value).encode()))


@settings(max_examples=200)
@given(lines)
def test_one_answer_a_line_whatever_it_says(requests: list[bytes]) -> None:
    sent, got = io.BytesIO(b"".join(line + b"\n" for line in requests)), io.BytesIO()
    serve(sent, got, ProcessSession())
    answers = got.getvalue().split(b"\n")
    assert answers.pop() == b""
    assert len(answers) == len(requests)
    for answer in map(json.loads, answers):
        assert list(answer) == ["error"] or answer.keys() <= {
            *("observation", "reward", "done", "info", "validActions")
        }


@pytest.mark.thorough
@settings(max_examples=200)
@given(lines)
@example([b'{"action":"reset","seed":1}', b'{"action":"step","actionIndex":true}'])
def test_an_error_changes_nothing(requests: list[bytes]) -> None:
    client = Client()
    for line in requests:
        before = client.state()
        answer = client.send(line)
        if "error" in answer:
            assert client.state() == before


def test_over_a_pipe_too() -> None:
    sent = (
        b'\n\xff\n{"action":"reset"}\r\n[]\n{"action":"getActionSpace"}'  # no line end at the end
    )
    result = subprocess.run([BINARY], input=sent, capture_output=True, timeout=60)
    answers = [list(json.loads(line)) for line in result.stdout.splitlines()]
    assert answers == [["error"], ["error"], ["observation"], ["error"], ["actionSpaceSize"]]
    assert (result.returncode, result.stderr) == (0, b"")


# --- how it is called and how it ends ------------------------------------------------------------


def test_the_end_of_input_ends_it() -> None:
    for command in ([BINARY], [sys.executable, "-m", "hackmatrix", "serve"]):
        result = subprocess.run(command, input=b"", capture_output=True, timeout=60)
        assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")


def test_info_and_debug_go_to_stderr() -> None:
    process = Process("--info")
    process.ask("reset", seed=7)
    assert process.end() == (0, b"", b"reset: stream 7 episode 0\n")
    process = Process("--debug")
    process.ask("reset", seed=7)
    process.ask("step", actionIndex=99)
    said = b"""\
reset: stream 7 episode 0
refused: b'{"action": "step", "actionIndex": 99}\\n': actionIndex: expected 0..27, got 99
"""
    assert process.end() == (0, b"", said)


def test_debug_is_a_short_line_a_step() -> None:
    """Each answer has 4,000 characters, which in a training of a million steps fill a disk."""
    process, rng = Process("--debug"), random.Random(0)
    process.ask("reset", seed=7)
    steps, valid = 0, [0]
    while valid := process.ask("getValidActions")["validActions"]:
        process.ask("step", actionIndex=rng.choice(valid))
        steps += 1
    process.popen.stdin.write(b"x" * 100_000 + b"\n")  # type: ignore[union-attr]
    _, _, said = process.end()
    first, *lines, last, refused = said.splitlines()
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


def test_unknown_flags_are_one_warning() -> None:
    process = Process("--debug-scenario", "--speed", "9", "--info")
    process.ask("reset", seed=7)
    said = b"hackmatrix-game: warning: not known and ignored: --debug-scenario --speed 9\n"
    assert process.end() == (0, b"", said + b"reset: stream 7 episode 0\n")


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


@pytest.mark.parametrize("flags", [["--programs=push,SIPH_PLUS"], ["--programs", "siph+, push"]])
def test_programs_of_new_stages_can_be_limited(flags: list[str]) -> None:
    process, found = Process("--dev-mode", *flags), Counter[str]()
    for seed in range(30):
        cells = [
            cell for row in process.ask("reset", seed=seed)["observation"]["cells"] for cell in row
        ]
        found.update(
            c["block"]["programType"] for c in cells if "programType" in c.get("block", {})
        )
    assert process.end() == (0, b"", b"")
    assert set(found) == {"push", "siph+"}


@pytest.mark.parametrize("flag", ["--programs=push,pusch", "--programs="])
def test_an_unknown_program_is_an_error(flag: str) -> None:
    result = subprocess.run([BINARY, flag], input=b"", capture_output=True, timeout=60)
    assert result.returncode == 2
    said = (
        rb"hackmatrix-game: error: --programs: expected names such as push,pull, got '(pusch)?'\n"
    )
    assert re.fullmatch(said, result.stderr)


def test_the_breakdown_is_exact_if_asked() -> None:
    """The binary has the parts of the original alone; the command has ours too, unless asked."""
    step = b'{"action":"reset","seed":1}\n{"action":"step","actionIndex":1}\n'
    for command, ours in (
        ([BINARY], False),
        ([sys.executable, "-m", "hackmatrix", "serve"], True),
        ([sys.executable, "-m", "hackmatrix", "serve", "--exact-breakdown"], False),
    ):
        result = subprocess.run(command, input=step, capture_output=True, timeout=60)
        breakdown = json.loads(result.stdout.splitlines()[1])["info"]["reward_breakdown"]
        assert ("stepPenalty" in breakdown, len(breakdown)) == (ours, 15 if ours else 14)


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
