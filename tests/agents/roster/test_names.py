"""A name is one agent, whichever command it is given to."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import hackmatrix
from hackmatrix.agents import shipped
from hackmatrix.agents.roster.names import AgentName, check_environment, params_of, resolve
from hackmatrix.cli.main import main
from hackmatrix.core.errors import UserError
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.replay import GameId, Replay
from hackmatrix.research.datasets.folder import open_data_set
from hackmatrix.research.evaluation.agents import agent_player

NO_FILE = "no such file; built-in agents are scripted, exit, random, shipped, score, raw"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a position, a file of params and a run; an agent whose name has an @."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    for copy in ("mine", "run/final_params", "me@2"):
        for suffix in (".npz", ".json"):
            Path(copy + suffix).symlink_to(shipped.PARAMS.with_suffix(suffix))
    Path("me@3").symlink_to("run")
    Path("position.txt").write_text(Game.new(1).to_text())
    return tmp_path


AGENTS = {
    "random": AgentName("random", None, None),
    "scripted": AgentName("scripted", None, None),
    "shipped": AgentName("shipped", shipped.PARAMS, None),
    "shipped@64": AgentName("shipped", shipped.PARAMS, 64),
    "score@8": AgentName("score", shipped.SCORE_PARAMS, 8),
    "mine.npz": AgentName("mine.npz", Path("mine.npz"), None),
    "mine.npz@1": AgentName("mine.npz", Path("mine.npz"), 1),
    "run": AgentName("run", Path("run"), None),
    "run@10000": AgentName("run", Path("run"), 10_000),
    "me@2.npz": AgentName("me@2.npz", Path("me@2.npz"), None),
    "me@3": AgentName("me@3", Path("me@3"), None),
    "me@3@4": AgentName("me@3", Path("me@3"), 4),
}
REFUSED = {
    "nobody": f"nobody: {NO_FILE}",
    "nobody@5": f"nobody: {NO_FILE}",
    "me@home": f"me@home: {NO_FILE}",
    "x" * 5000: NO_FILE,
    "scripted@8": "scripted has no network to search with",
    "random@2": "random has no network to search with",
    "shipped@0": "shipped@0: after @ stand the simulations, 1 to 10000",
    "shipped@10001": "shipped@10001: after @ stand the simulations",
    "shipped@" + "9" * 5000: "after @ stand the simulations",
    "shipped@many": "shipped@many: after @ stand the simulations",
}


def test_a_name_is_an_agent() -> None:
    assert {text: resolve(text) for text in AGENTS} == AGENTS
    assert [str(agent) for agent in AGENTS.values()] == [*AGENTS]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(UserError) as raised:
        resolve(text)
    assert REFUSED[text] in str(raised.value)


def test_the_flag_is_another_spelling() -> None:
    assert resolve("shipped", 8) == resolve("shipped@8")
    with pytest.raises(UserError, match="shipped@8: give @8 or --search 9, not both"):
        resolve("shipped@8", 9)
    with pytest.raises(UserError, match="scripted has no network to search with"):
        resolve("scripted", 8)


def test_addresses_in_a_bucket_are_fetched() -> None:
    fetched = dict.fromkeys(["gs://b/me@home/x"], "mine.npz").__getitem__
    expected = AgentName("gs://b/me@home/x", Path("mine.npz"), 4)
    assert resolve("gs://b/me@home/x@4", fetched=fetched) == expected


def test_a_network_alone_is_a_network() -> None:
    assert params_of("shipped") == shipped.PARAMS
    for text in ("scripted", "shipped@4"):
        with pytest.raises(UserError, match=f"{text}: is no network"):
            params_of(text)
    shown = repr(hackmatrix.load_agent("shipped"))
    assert shown.startswith("Policy(")
    assert "environment='HackMatrix-v1', observation='tactical'" in shown
    assert len(shown) < 300
    assert hackmatrix.load_agent(Path("run")).path == Path("run/final_params.npz")


@pytest.mark.parametrize(
    ("names", "env", "plays"),
    [
        ([], "HackMatrix", True),
        (["exit", "shipped@2"], "HackMatrix-v1", True),
        (["random", "mine.npz"], "CartPole-v1", False),
        (["mine.npz", "random"], "my:game", True),
        (["mine.npz@2"], "my:game", True),
        (["shipped@2"], "my:game", False),
        ([], "my:game", False),
    ],
)
def test_who_plays_which_environment(names: list[str], env: str, plays: bool) -> None:
    if plays:
        check_environment(names, env)
    else:
        with pytest.raises(UserError, match=f"--env {env} goes with `random` alone"):
            check_environment(names, env)


def told(*given: Any, **_: Any) -> Any:
    """In the place of what plays: says whom it was given."""
    agents = [each for each in given if isinstance(each, AgentName)]
    raise UserError(f"was given {(agents or given)[0]}")


COMMANDS: dict[str, Callable[[str], list[str]]] = {
    "hackmatrix.research.evaluation.agents.agent_player": lambda it: ["evaluate", it],
    "hackmatrix.research.datasets.record.record": lambda it: ["data", "record", "d", "--agent", it],
    "hackmatrix.agents.roster.session_agents.cast": lambda it: ["watch", it],
    "hackmatrix.ui.page.export.export": lambda it: ["page", "--export", "site", "--agent", it],
}


@pytest.mark.parametrize("place", COMMANDS)
def test_every_command_knows_every_name(
    place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(place, told)
    for text in ("exit", "score@8", "mine.npz@1", "me@3"):
        assert main(COMMANDS[place](text)) == 2
        assert capsys.readouterr().err.endswith(f"was given {text}\n")
    for text in ("nobody", "random@2", "shipped@many"):
        assert main(COMMANDS[place](text)) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert REFUSED[text] in line


def test_the_command_for_networks_knows_those(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hackmatrix.agents.networks.policy.load_policy", told)
    command = "analyse position.txt {}"
    for text in ("shipped", "mine.npz", "run", "me@3"):
        assert main(command.format(text).split()) == 2
        assert capsys.readouterr().err.endswith(f"was given {AGENTS[text].params}\n")
    for text in ("scripted", "exit", "random"):
        assert main(command.format(text).split()) == 2
        assert "no network" in capsys.readouterr().err
    assert main(command.format("nobody").split()) == 2
    assert NO_FILE in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "agents"),
    [
        ("", "shipped raw scripted exit random"),
        ("--run run", "final_params raw scripted exit random"),
        ("--latest --checkpoint-dir .", "final_params raw scripted exit random"),
        ("game.json", "shipped raw scripted exit random"),
        ("shipped --search 4", "shipped shipped@4 raw scripted exit random"),
    ],
)
def test_who_is_watched(words: str, agents: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions: list[Any] = []
    monkeypatch.setattr("hackmatrix.cli.watch.show_page", lambda _, it, __: sessions.append(it()))
    monkeypatch.setattr("hackmatrix.agents.roster.search_player.SearchProcess", Mock())
    Path("game.json").write_text(json.dumps(Replay(GameId(5), ()).as_json()))
    main(["watch", *words.split()])
    assert list(sessions[0].agents) == agents.split()
    assert str(sessions[0].tree.game) == ("5" if words == "game.json" else "e0.0")


def test_analyse_searches_as_much_as_it_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def analyst(policy: Any, simulations: int) -> Any:
        raise UserError(f"{policy.path.name} {simulations}")

    monkeypatch.setattr("hackmatrix.agents.search.analysis.Analyst", analyst)
    for words, simulations in (("", 128), ("@256", 256), (" --search 8", 8)):
        assert main(f"analyse position.txt shipped{words}".split()) == 2
        assert capsys.readouterr().err.endswith(f"final_params.npz {simulations}\n")
    assert main(["analyse", "position.txt", "shipped@256", "--search", "8"]) == 2
    assert "shipped@256: give @256 or --search 8, not both" in capsys.readouterr().err


def test_a_search_has_one_name_in_reports(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def player(_: AgentName, *given: Any, **how: Any) -> Any:
        return agent_player(resolve("exit"), *given, **how)

    monkeypatch.setattr("hackmatrix.research.evaluation.agents.agent_player", player)
    few = ["--episodes", "2", "--max-steps", "3"]
    assert main(["evaluate", "shipped", "--search", "2", *few, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["agent"], said["search"]) == ("shipped@2", 2)
    assert main(["evaluate", "shipped@2", *few]) == 0
    assert capsys.readouterr().out.startswith("shipped@2, seed 0\n")


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_search_is_recorded() -> None:
    argv = ["data", "record", "games", "--agent", "shipped@2", "--episodes", "2"]
    assert main([*argv, "--max-steps", "3"]) == 0
    facts = open_data_set(Path("games")).facts
    assert (facts.agent, facts.search) == ("shipped", 2)


def test_names_are_read_without_jax_and_numpy() -> None:
    code = """
import sys
from hackmatrix.agents.roster.names import resolve
print(resolve("shipped@4"), {"jax", "numpy"} & set(sys.modules))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("shipped@4 set()\n", "")
