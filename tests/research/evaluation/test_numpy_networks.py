"""Networks evaluated without JAX, as the core alone does it: they play as on the page."""

import json
import subprocess
import sys
from typing import Any

import pytest

from hackmatrix.agents import shipped
from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.game import native
from hackmatrix.game.engine.replay import GameId
from hackmatrix.game.rules.actions import FIRST_PROGRAM
from hackmatrix.game.rules.chance import EVALUATION_STREAM
from hackmatrix.game.rules.programs import ProgramId
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.lockstep_games import numpy_player
from hackmatrix.ui.session.session import Session

pytestmark = pytest.mark.thorough

WITHOUT_JAX = """
import sys
sys.modules.update(dict.fromkeys(["jax", "jaxlib", "flax", "optax", "orbax"]))
"""
COMMAND = WITHOUT_JAX + "from hackmatrix.cli.main import main\nsys.exit(main(sys.argv[1:]))"


def without_jax(code: str, *argv: str) -> Any:
    command = [sys.executable, "-c", code, *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=200)


def test_the_command_evaluates_the_packaged_agent() -> None:
    done = without_jax(COMMAND, "evaluate", "shipped", "exit", "--episodes", "2", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["agent"] == ["shipped", "exit"]


def test_python_evaluates_it_by_name_and_loaded() -> None:
    code = WITHOUT_JAX + (
        "import hackmatrix\n"
        "how = {'episodes': 3, 'max_steps': 50}\n"
        "by_name = hackmatrix.evaluate('shipped', **how)\n"
        "loaded = hackmatrix.evaluate(hackmatrix.load_agent('shipped'), **how)\n"
        "print(by_name.games == loaded.games, by_name.episodes)"
    )
    done = without_jax(code)
    assert (done.returncode, done.stdout) == (0, "True 3\n"), done.stderr
    for line in done.stderr.splitlines():
        assert line.endswith(
            ": JAX is not installed, so NumPy plays, slower: pip install 'hackmatrix[train]'"
        )
    assert done.stderr.count("\n") == 2


@pytest.mark.parametrize("words", ["evaluate shipped@4", "evaluate random --env CartPole-v1"])
def test_what_only_jax_plays_is_one_line(words: str) -> None:
    done = without_jax(COMMAND, *words.split(), "--episodes", "2")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "pip install 'hackmatrix[" in done.stderr


@pytest.mark.parametrize("is_native", [False, True])
def test_its_games_are_those_of_the_page(is_native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if is_native and not native.available:
        pytest.skip("left out")
    monkeypatch.setattr(native, "available", is_native)
    report = numpy_player(shipped.PARAMS, Limits(2, 5, 60, first=7), greedy=False)(())
    session = Session(GameId(EVALUATION_STREAM + 5, 8), cast(resolve("shipped")))
    session.handle({"do": "agent", "steps": 60})
    assert report.accounts[1].actions == bytes(session.tree.line(session.at))


def test_programs_can_be_forbidden() -> None:
    push = FIRST_PROGRAM + ProgramId.PUSH
    play = numpy_player(shipped.PARAMS, Limits(8, 5, 200), greedy=True)
    assert any(push in account.actions for account in play(()).accounts)
    assert not any(push in account.actions for account in play([push]).accounts)
