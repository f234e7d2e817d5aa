"""Modules of the page that need no browser, in Node."""

import json
import shutil
import subprocess
from importlib import resources
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node on PATH")


def evaluate(module: str, name: str, *arguments: Any) -> Any:
    """What a function of a module returns."""
    file = resources.files("hackmatrix.ui.page") / "static" / module
    code = f"""
        import {{ {name} }} from {json.dumps(str(file))};
        console.log(JSON.stringify({name}(...{json.dumps(arguments)})));"""
    command = ["node", "--input-type=module", "-e", code]
    return json.loads(subprocess.check_output(command, text=True))


def test_accuracy_is_lichess_s() -> None:
    flat = [0.5] * 31
    assert evaluate("accuracy.js", "gameAccuracy", [0.0] * 30, flat) == pytest.approx(100, abs=0.01)
    # Of a move alone: a loss of 10 % of winning is 63.6, as on lichess.
    assert evaluate("accuracy.js", "moveAccuracy", 0.1) == pytest.approx(63.6, abs=0.1)
    assert evaluate("accuracy.js", "moveAccuracy", 1) == 0


def test_a_fatal_blunder_ruins_the_accuracy_and_others_moves_do_not() -> None:
    costs: list[float | None] = [0.0] * 30
    costs[29] = 0.6
    chances = [0.6] * 30 + [0.0]
    fatal = evaluate("accuracy.js", "gameAccuracy", costs, chances)
    mean = (29 * 100 + evaluate("accuracy.js", "moveAccuracy", 0.6)) / 30
    assert fatal < 70 < 95 < mean
    costs[29] = None
    others = evaluate("accuracy.js", "gameAccuracy", costs, chances)
    assert others == pytest.approx(100, abs=0.01)


def test_the_likeliest_ways_are_few_and_told_apart_by_where_they_lead() -> None:
    left, up = [7, 6, 6, 6, 6, 0], [7, 13, 19, 25, 31]
    futures = [{"trail": left, "end": "died"}] * 9 + [{"trail": up, "end": None}] * 5
    futures += [{"trail": [7, cell], "end": "stage"} for cell in (1, 8)]
    ways = evaluate("trails.js", "likeliestWays", futures)
    assert [(way["trail"], way["died"]) for way in ways[:2]] == [(left, True), (up, False)]
    assert [way["share"] for way in ways] == [9 / 16, 5 / 16, 1 / 16]
