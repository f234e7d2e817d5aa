"""Requests and their answers, as `protocol.txt` has them."""

import json
from pathlib import Path

import pytest
from bridge_client import Client, Json, exactly

from hackmatrix.integrations.process.answers import REWARD_NAMES

CASES = Path(__file__).with_name("protocol.txt").read_text().split("\n== ")[1:]
FIELDS = {"reset": "", "step": "actionIndex", "setState": "state"}  # that stand alone in a line


def request_of(line: str) -> bytes:
    command, _, given = line.partition(" ")
    if not command.startswith(("reset", "step", "setState", "get")):
        return line.encode().decode("unicode_escape").encode("latin-1")
    fields = f',"{FIELDS[command]}":{given}' if FIELDS.get(command) else f",{given[1:-1]}"
    return f'{{"action":"{command}"{fields if given else ""}}}'.encode()


@pytest.mark.parametrize("case", CASES, ids=[case.partition("\n")[0] for case in CASES])
def test_the_answer_is_that_of_the_file(case: str) -> None:
    client, before = Client(), None
    answer: Json = {}
    for line in filter(None, case.splitlines()[1:]):
        kind, _, rest = line.partition(" ")
        if kind == ">":
            before = client.state()
            answer = client.send(request_of(rest))
            observation = answer.pop("observation", {})
            parts = answer.get("info", {}).pop("reward_breakdown", None)
        elif kind == "error":
            assert list(answer) == ["error"]
            assert rest in answer["error"]
            assert len(answer["error"]) < 200
        elif kind == "cell":
            row, col = map(int, rest[:3].split(","))
            nothing = {"isDataSiphon": False, "isExit": False, "siphonCenter": False}
            expected = {"row": row, "col": col, **nothing, **json.loads(rest[4:])}
            assert exactly(observation["cells"][row][col]) == exactly(expected)
        elif kind == "pays":
            expected = dict.fromkeys(REWARD_NAMES.values(), 0.0) | json.loads(rest)
            assert exactly(parts) == exactly(expected)
        elif kind != "unchanged":
            expected = json.loads(rest)
            shown = {name: observation[name] for name in expected} if kind == "shows" else answer
            assert exactly(shown) == exactly(expected)
        if kind in ("error", "unchanged"):
            assert client.state() == before


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b'{"action":"step","actionIndex":%s}' % (b"9" * 5000), "a number has too many digits"),
        (b'{"action":"step","actionIndex":%s}' % (b"9" * 4000), "expected 0..27, got 999"),
        (b"[" * 100_000, "not JSON: nested too deeply"),
    ],
    ids=["a long number", "a number", "depth"],
)
def test_lines_without_end_are_refused(line: bytes, error: str) -> None:
    client = Client()
    client.ask("reset")
    answer = client.send(line)
    assert error in answer["error"]
    assert len(answer["error"]) < 200
