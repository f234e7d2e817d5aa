"""Lines of every kind, by the thousand: one answer each, errors change nothing, memory is flat."""

import gc
import json
import random
import re
import resource
from pathlib import Path
from typing import Any

import pytest

from hackmatrix.integrations.process.session import ProcessSession

pytestmark = pytest.mark.thorough

VALID, INTERNAL = b"getValidActions", b"getInternalState"
ACTIONS = ["reset", "step", "getValidActions", "setState", "getInternalState", "getActionSpace"]
KINDS = ["virus", "Daemon", "glitch", "cryptog"]
# Words of Python, and of JSON libraries, that a client's author should not have to know.
PYTHON = re.compile(
    r"None|True|False|Error|Exception|Traceback|dict|NoneType|\bint\b|\bstr\b|\bnan\b|\binf\b|"
    r"codec|delimiter|0x[0-9a-f]{6}|object at|argument"
)


class Fuzz:
    """Makes lines: whole games, hand-made positions, and both with anything in any place."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def line(self, valid: list[int]) -> bytes:
        rng = self.rng
        kind = rng.random()
        if kind < 0.45 and valid:
            return b'{"action":"step","actionIndex":%d}\n' % rng.choice(valid)
        if kind < 0.6:
            request = {"action": rng.choice(ACTIONS), "actionIndex": rng.randrange(28)}
            request["state"] = self.state()
        elif kind < 0.8:
            request = {"action": "setState", "state": self.state()}
        else:
            request = {"action": rng.choice(ACTIONS), "actionIndex": self.number(0, 27)}
        if rng.random() < 0.3:
            self.damage(request)
        line = json.dumps(request).encode()
        if rng.random() < 0.15:
            at = rng.randrange(len(line))
            line = line[:at] + rng.randbytes(rng.randrange(4)).replace(b"\n", b"") + line[at + 1 :]
        return line + b"\n"

    def state(self) -> Any:
        place = {"row": self.number(0, 5), "col": self.number(0, 5)}
        return {
            "player": {**place, "hp": self.number(0, 3), "energy": self.number(0, 32767)},
            "enemies": self.items(type=KINDS, hp=[1, 2, 3, 32767], stunned=[False, True]),
            "transmissions": self.items(enemyType=KINDS, turnsRemaining=[0, 1, 5, 32767]),
            "blocks": self.items(type=["data", "program"], programType=["PUSH", "siph+", None]),
            "resources": self.items(credits=[0, 3, 999], energy=[0, 2], dataSiphon=[False, True]),
            "ownedPrograms": [self.number(5, 27) for _ in range(self.rng.randrange(12))],
            "stage": self.number(1, 8),
        }

    def items(self, **fields: list[Any]) -> list[Any]:
        rng = self.rng
        return [
            {
                "row": rng.randrange(6),
                "col": rng.randrange(6),
                **{name: rng.choice(values) for name, values in fields.items()},
            }
            for _ in range(rng.choice([0, 1, 2, 5, 20]))
        ]

    def number(self, low: int, high: int) -> Any:
        return self.rng.randint(low, high) if self.rng.random() < 0.97 else self.anything()

    def anything(self) -> Any:
        values = (None, True, -1, 28, 1.5, 2.0, 1e400, 10**30, "", "x" * 99, "\ud800", [], [[]], {})
        return self.rng.choice(values)

    def damage(self, request: Any) -> None:
        """Replaces or removes something at any depth."""
        holder = request
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not keys:
                return
            key = self.rng.choice(keys)
            inner = holder[key]
            if isinstance(inner, dict | list) and inner and self.rng.random() < 0.7:
                holder = inner
                continue
            if self.rng.random() < 0.5:
                holder[key] = self.anything()
            else:
                del holder[key]
            return


def memory(process: int | str = "self") -> int:
    """Bytes that a process holds."""
    pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * resource.getpagesize()


LONG = pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])


@pytest.mark.parametrize("lines", [300, LONG])
def test_any_lines(lines: int) -> None:
    session, fuzz = ProcessSession(), Fuzz(lines)
    valid: list[int] = []
    kinds = {"errors": 0, "steps": 0, "positions": 0}
    held = 0
    for number in range(lines):
        line = fuzz.line(valid)
        game = session._game
        before = game and game.to_dict()
        text = session.answer(line)
        assert "\n" not in text
        answer = json.loads(text)
        if "error" in answer:
            kinds["errors"] += 1
            assert list(answer) == ["error"]
            assert len(answer["error"]) < 250
            said = re.sub(r'"(\\.|[^"\\])*"', "", answer["error"])  # without what the client said
            assert not PYTHON.search(said), (line, said)
            assert session._game is game
            assert (game and game.to_dict()) == before
        else:
            kinds["steps"] += "reward" in answer
            kinds["positions"] += b"setState" in line
        valid = json.loads(session.answer(b'{"action":"getValidActions"}'))["validActions"]
        if not valid and number % 3 == 0:
            session.answer(b'{"action":"reset"}')
        if number == lines // 2:
            gc.collect()
            held = memory()
    assert min(kinds.values()) > lines / 50, kinds
    gc.collect()
    assert memory() - held < 8 * 2**20
