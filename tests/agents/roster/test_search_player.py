"""A player that searches, beside the network: loaded behind the page, asked of one position."""

import multiprocessing
import subprocess
import sys
import threading
import zlib
from pathlib import Path
from typing import Any

import pytest

from hackmatrix.agents import shipped
from hackmatrix.agents.networks.policy import load_policy
from hackmatrix.agents.roster import search_player as searching
from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.search_player import Searching, SearchProcess, shares
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.agents.search.analysis import Analysis, Analyst, SearchedAction
from hackmatrix.core.errors import UserError
from hackmatrix.game.engine.observation import observe, observe_saved
from hackmatrix.game.engine.replay import GameId
from hackmatrix.runs.params import save_params
from hackmatrix.ui.session.session import Session


class Visits:
    """Visits the first valid action three times, others once, and counts what it is asked."""

    asked = 0
    remembered = -1

    def analyse_record(self, record: bytes, saved: Any, valid: Any, seed: int) -> Analysis:
        del record, seed
        self.asked += 1
        self.remembered = len(saved)
        actions = [action for action, is_valid in enumerate(valid) if is_valid]
        choices = [
            SearchedAction(action, 0.1, 3 if i == 0 else 1, 0.5, ())
            for i, action in enumerate(actions)
        ]
        return Analysis(2.5, tuple(choices), actions[0])


class Here:
    """In place of the process: an analyst in this one, which needs neither JAX nor time."""

    analyst = Visits()

    def __init__(self, *_: Any) -> None:
        pass

    def wait(self) -> None:
        pass

    def ask(self, *asked: Any) -> Any:
        return shares(self.analyst, *asked)  # type: ignore[arg-type]

    def stop(self) -> None:
        pass


def session(**options: Any) -> Session:
    return Session(GameId(7), cast(resolve("shipped@16"), search_first=False), **options)


def test_its_shares_are_the_simulations_and_its_choice_is_played(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    analyst = Visits()
    monkeypatch.setattr(Here, "analyst", analyst)
    monkeypatch.setattr(searching, "SearchProcess", Here)
    watched = session()
    assert list(watched.agents) == ["shipped", "shipped@16", "raw", "scripted", "exit", "random"]
    watched.handle({"do": "agent", "steps": 30})
    asked = analyst.asked
    assert asked == 0
    answer = watched.handle({"do": "control", "agent": "shipped@16"})
    assert analyst.asked == 1  # of this position alone, however long the game is
    assert analyst.remembered == len(watched.tree.state(watched.at).saved)
    shares = answer["agent"]["probabilities"]
    valid = [action for action, entry in enumerate(answer["actions"]) if "why" not in entry]
    assert sum(p > 0 for p in shares) == len(valid)
    assert (answer["agent"]["suggests"], answer["agent"]["value"]) == (valid[0], 0.5)
    assert shares[valid[0]] == pytest.approx(3.5 / (3.5 + len(valid) - 1), abs=1e-6)
    names = [entry[0] for entry in watched.handle({"do": "others"})["others"]]
    assert names == list(watched.agents)


def test_it_is_prepared_once_and_who_asks_meanwhile_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on, made = threading.Event(), []

    class Slow(Here):
        def wait(self) -> None:
            goes_on.wait(60)
            made.append(1)

    monkeypatch.setattr(searching, "SearchProcess", Slow)
    make = Searching("shipped@4", shipped.PARAMS, 4)
    make.prepare()
    answers: list[Any] = []
    waiting = threading.Thread(target=lambda: answers.append(make()))
    waiting.start()
    waiting.join(0.1)
    assert not answers
    goes_on.set()
    waiting.join(60)
    assert (len(answers), made) == (1, [1])


def test_nobody_waits_for_it_when_the_page_ends_and_its_process_ends_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[SearchProcess] = []

    def start(*given: Any) -> SearchProcess:
        started.append(SearchProcess(*given))
        return started[-1]

    monkeypatch.setattr(searching, "SearchProcess", start)
    make = Searching("shipped@4", shipped.PARAMS, 4)
    make.prepare()
    (process,) = multiprocessing.active_children()
    threading.Timer(0.1, make.stop).start()
    with pytest.raises(UserError, match="has ended"):
        make()
    process.join(60)
    assert not process.is_alive()
    for ask in (started[0].wait, lambda: started[0].ask(b"", [], [])):
        with pytest.raises(UserError, match="the process that searches has ended"):
            ask()


def test_a_network_that_can_not_be_searched_is_refused_at_once(tmp_path: Path) -> None:
    about = load_policy(shipped.PARAMS).about
    config = {**about["config"], "normalize_rewards": True}
    save_params(tmp_path / "x.npz", load_policy(shipped.PARAMS).params, {"config": config})
    with pytest.raises(UserError, match=r"x.npz: search needs .* normalize_rewards false"):
        cast(resolve(f"{tmp_path}/x.npz@4"))


def test_an_agent_named_with_its_search_is_at_the_controls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(searching, "SearchProcess", Here)
    watched = Session(GameId(7), cast(resolve("shipped@16")))
    assert list(watched.agents)[:2] == ["shipped@16", "shipped"]
    assert watched.handle({"do": "agent"})["last"]["by"] == "shipped@16"


def test_jax_is_loaded_only_when_it_is_asked() -> None:
    code = """
import sys
from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.ui.session.session import Session
session = Session(agents=cast(resolve("shipped@4"), search_first=False))
print("board" in session.handle({"do": "hello"}), "jax" in sys.modules)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("True False\n", "")


@pytest.mark.slow
def test_it_is_the_search_of_analyse() -> None:
    watched = session()
    answer = watched.handle({"do": "control", "agent": "shipped@16"})
    state = watched.tree.state(watched.at)
    record, saved = observe(state), observe_saved(state)
    valid = ["why" not in entry for entry in answer["actions"]]
    analyst = Analyst(load_policy(shipped.PARAMS), 16)
    expected = analyst.analyse_record(record, saved, valid, zlib.crc32(record))
    assert answer["agent"]["suggests"] == expected.search
    (chosen,) = [choice for choice in expected.choices if choice.action == expected.search]
    assert answer["agent"]["value"] == pytest.approx(chosen.value)
    assert watched.handle({"do": "agent"})["last"]["action"] == expected.search
    for child in multiprocessing.active_children():
        child.kill()
