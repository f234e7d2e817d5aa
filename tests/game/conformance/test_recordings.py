"""`hackmatrix conformance`: the engine plays every recorded step of the original."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from recordings import RECORDINGS, game, lines, raw_game

from hackmatrix.cli.main import main
from hackmatrix.game.conformance.recorded_dice import RecordedDice
from hackmatrix.game.conformance.step import first_difference
from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.stage import begin_stage
from hackmatrix.game.engine.state import Player, State
from hackmatrix.game.rules.actions import ACTION_NAMES
from hackmatrix.game.rules.board import CORNERS
from hackmatrix.game.rules.stages import START_BONUSES

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """Three games, not packed."""
    path = tmp_path / "few.jsonl"
    path.write_bytes(b"\n".join(lines()[:3]))
    return path


def report(capsys: Capture, *files: Path, code: int) -> Any:
    assert main(["conformance", *map(str, files), "--json"]) == code
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def altered(few: Path, **changes: Any) -> Path:
    """The file with fields of the last step of its second game changed."""
    games = [json.loads(line) for line in few.read_bytes().splitlines()]
    games[1]["steps"][-1].update(changes)
    few.write_text("\n".join(map(json.dumps, games)))
    return few


@pytest.mark.thorough
def test_recorded_steps_are_reproduced_or_declared(tmp_path: Path, capsys: Capture) -> None:
    """Of every eighth game; `tests/commands` and the next test play all."""
    path = tmp_path / "some.jsonl"
    path.write_bytes(b"\n".join(lines()[::8]))
    found = report(capsys, path, code=0)
    assert found["steps"] > 2_500
    assert (found["failed"], found["chance_faults"]) == (0, [])


@pytest.mark.slow
def test_every_recorded_step_is_reproduced_or_declared(capsys: Capture) -> None:
    found = report(capsys, RECORDINGS, code=0)
    assert (found["steps"], found["failed"]) == (26_704, 0)
    assert found["reproduced"] + found["declared"] == found["steps"]
    assert found["declared"] < 0.05 * found["steps"]
    assert found["by_rule"] == {"1": 82, "2": 414, "3": 255}  # as the recordings' makers counted
    assert list(found["by_action"]) == list(ACTION_NAMES)
    assert all(action["reproduced"] >= 300 for action in found["by_action"].values())
    assert (found["first_failures"], found["chance_faults"]) == ([], [])


def start_bonus(player: Player) -> tuple[int, int, int]:
    return player.credits, player.energy, player.siphons


def test_first_states_are_new_games() -> None:
    """Of the games that were not begun by hand."""
    checked = 0
    for number, line in enumerate(lines()):
        if not line.startswith(b'{"policy":"random"'):
            continue
        recorded = game(number).initial.state
        assert isinstance(recorded, State)
        corner, bonus = recorded.player.cell, start_bonus(recorded.player)
        assert corner in CORNERS
        assert bonus in START_BONUSES
        player = Player(corner, credits=bonus[0], energy=bonus[1], siphons=bonus[2])
        state = State(player=player, dice=Dice(0, 0), exit=corner)
        RecordedDice(state, recorded)
        begin_stage(state)
        assert first_difference(state, recorded) is None
        checked += 1
    assert checked > 50


# --- the command ---------------------------------------------------------------------------------


def test_the_table(few: Path, capsys: Capture) -> None:
    assert main(["conformance", str(few)]) == 0
    head, *_, total = capsys.readouterr().out.splitlines()
    assert head.split() == ["action", "steps", "reproduced", "declared", "rule", "1", "failed"]
    assert total.split() == ["total", "90", "89", "1", "1", "."]
    assert report(capsys, few, few, code=0)["steps"] == 180


def test_a_failed_step(few: Path, capsys: Capture) -> None:
    last = len(raw_game(1)["steps"]) - 1
    assert main(["conformance", str(altered(few, died=True))]) == 1
    line = capsys.readouterr().out.splitlines()[-1]
    assert line == f"{few}: game 1 step {last} (down): died: engine false, recorded true"
    found = report(capsys, few, code=1)
    assert found["failed"] == found["by_action"]["down"]["failed"] == 1
    assert found["first_failures"] == [
        {
            "file": str(few),
            "game": 1,
            "step": last,
            "action": "down",
            "difference": "died: engine false, recorded true",
        }
    ]


def test_neither_jax_nor_numpy_is_needed(few: Path) -> None:
    code = (
        "import sys\n"
        "sys.modules['jax'] = sys.modules['numpy'] = None\n"
        "from hackmatrix.cli.main import main\n"
        f"sys.exit(main(['conformance', {str(few)!r}]))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL).returncode == 0


# --- wrong input ---------------------------------------------------------------------------------

WRONG_FILES = {
    "no games": (b"", "no recorded games in it"),
    "no JSON": (b"\x00\x01\n", "line 1: no JSON, so no recorded game"),
    "half a line": (b'{"policy": "random", "ini', "line 1: no JSON, so no recorded game"),
    "deeply nested": (b"[" * 100_000, "line 1: no JSON, so no recorded game"),
    "a number": (b"7\n", "line 1: expected an object, got 7"),
    "foreign": (b'{"moves": []}\n', "line 1: initial: missing"),
    "half a gzip file": (
        RECORDINGS.read_bytes()[:20_000],
        "corrupt gzip file: Compressed file ended before the end-of-stream marker was reached",
    ),
    "a gzip file of no games": (gzip.compress(b"hello\n"), "line 1: no JSON, so no recorded game"),
}


@pytest.mark.parametrize(("content", "message"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_a_wrong_file(content: bytes, message: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "wrong"
    path.write_bytes(content)
    assert main(["conformance", str(path)]) == 2
    assert capsys.readouterr() == ("", f"hackmatrix conformance: error: {path}: {message}\n")


WRONG_FIELDS = [
    ({"won": 0}, "won: expected true or false, got 0"),
    ({"action": 28}, "action: expected 0..27, got 28"),
    ({"valid": [1, True]}, "valid[1]: expected a whole number, got true"),
    ({"order": [[0], 1]}, "order[1]: expected a list, got 1"),
    ({"reward": {}}, "reward.damage: missing"),
    ({"after": {}}, "after.atk_uses: missing"),
    ({"after": None}, "after: expected an object, got null"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG_FIELDS)
def test_a_wrong_field(changes: dict[str, Any], message: str, few: Path, capsys: Capture) -> None:
    last = len(raw_game(1)["steps"]) - 1
    assert main(["conformance", str(altered(few, **changes))]) == 2
    where = f"{few}: line 2: steps[{last}].{message}"
    assert capsys.readouterr() == ("", f"hackmatrix conformance: error: {where}\n")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["cells", 7, "kind"], "lava", "cells[7].kind: expected one of empty, data"),
        (["cells", 7, "lava"], 1, 'cells[7]: unknown field "lava"'),
        (["player", "hp"], 1.5, "player.hp: expected a whole number, got 1.5"),
        (["exit"], [0], "exit: expected 2 values, got 1"),
        (["cells"], [], "cells: expected 36 values, got 0"),
        (["enemies"], [{"type": "virus"}], "enemies[0].col: missing"),
    ],
)
def test_a_wrong_field_of_a_state(
    path: list[Any], value: Any, message: str, few: Path, capsys: Capture
) -> None:
    after = json.loads(lines()[1])["steps"][-1]["after"]
    inner = after
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    assert main(["conformance", str(altered(few, after=after))]) == 2
    assert f".after.{message}" in capsys.readouterr().err
